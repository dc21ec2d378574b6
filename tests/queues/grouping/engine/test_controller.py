"""The pod grouper against an API server in memory: how often it writes, what it says, when it tries again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from kube.errors import (
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    ServerError,
)
from kube.gateway import EventType, WatchEvent
from kube.objects.cluster import PriorityClass
from kube.objects.meta import KubeObject
from kube.objects.pod import Pod
from kube.objects.podgroup import PodGroup
from kube.process.workqueue import WorkQueue
from kube.resources import (
    CONFIGMAPS,
    JOBS,
    NAMESPACES,
    PODGROUPS,
    PODS,
    PRIORITY_CLASSES,
    Resource,
)
from kube.store import Store
from queues.controllers.arguments import parse_selector
from queues.grouping.base import Settings
from queues.grouping.engine.controller import PodGrouper
from queues.grouping.engine.kinds import DiscoveryDocument, KindDirectory, plural_of
from queues.grouping.engine.lookups import ClusterLookups, OwnerCache, index_for_grouping
from tests.fakes.gateway import FakeGateway

KINDS: list[tuple[Resource, type[KubeObject]]] = [
    (PODS, Pod),
    (PODGROUPS, PodGroup),
    (PRIORITY_CLASSES, PriorityClass),
    (NAMESPACES, KubeObject),
]


@dataclass
class Warnings:
    written_events: list[tuple[str, str, str]] = field(default_factory=list)

    def warn(self, about: KubeObject, reason: str, message: str) -> None:
        self.written_events.append((about.key, reason, message))


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class CountingGateway(FakeGateway):
    """Counts reads too."""

    def get(self, resource: Resource, name: str, *, as_type: type, namespace: str = "") -> Any:
        self.calls.append(("get", resource.plural or "discovery", name))
        return super().get(resource, name, as_type=as_type, namespace=namespace)


class World:
    """A pod grouper whose store is fed by hand."""

    def __init__(self, **options: Any) -> None:
        self.gateway = CountingGateway()
        self.store = Store()
        self.clock = Clock()
        self.warnings = Warnings()
        index_for_grouping(self.store)
        owners = OwnerCache(
            self.gateway, KindDirectory(self.gateway, clock=self.clock), clock=self.clock
        )
        lookups = ClusterLookups(
            self.store, owners, options.pop("defaults_config_map", ("", "")), clock=self.clock
        )
        self.grouper = PodGrouper(
            self.gateway,
            self.store,
            lookups,
            self.warnings,
            queue=WorkQueue(clock=self.clock),
            **options,
        )
        self.grouper.follow()

    def pods(self, *pods: dict[str, Any]) -> None:
        self.gateway.seed(PODS, *pods)

    def settle(self) -> None:
        """Bring the store up to date and work until nothing is ready."""
        for resource, kind in KINDS:
            self.store.replace(resource, self.gateway.list(resource, as_type=kind))
        self.work()

    def work(self) -> None:
        """Work until nothing is ready."""
        while (key := self.grouper.queue.get(timeout_s=0)) is not None:
            self.grouper.work(key)
            self.grouper.queue.done(key)

    def verbs(self, verb: str) -> list[str]:
        return [
            f"{plural}/{name}"
            for call_verb, plural, name in self.gateway.calls
            if call_verb == verb
        ]


def pod(name: str, owner: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    body: dict[str, Any] = {"name": name, "namespace": "lab", **metadata}
    if owner is not None:
        body["ownerReferences"] = [
            {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
        ]  # fmt: skip
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": body,
        "spec": {"schedulerName": "kai-scheduler", "containers": []},
        "status": {"phase": "Pending"},
    }


def job(name: str = "j", **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "lab", "uid": f"u-{name}", **metadata},
        "spec": {},
    }


def test_a_hundred_pods_of_a_job_cost_one_read_one_create_and_a_patch_each() -> None:
    world = World()
    world.gateway.seed(JOBS, job())
    world.pods(*(pod(f"p{i}", job()) for i in range(100)))
    world.settle()
    assert world.verbs("get") == ["jobs/j"]
    assert world.verbs("create") == ["podgroups/pg-j-u-j"]
    assert sorted(world.verbs("patch")) == sorted(f"pods/p{i}" for i in range(100))
    assert world.gateway.raw(PODS, "p7", "lab")["metadata"]["annotations"] == {
        "pod-group-name": "pg-j-u-j"
    }
    group = world.gateway.raw(PODGROUPS, "pg-j-u-j", "lab")
    assert group["spec"] == {"queue": "default-queue", "priorityClassName": "train", "minMember": 1}
    world.settle()
    assert len(world.verbs("patch")) == 100
    assert world.warnings.written_events == []


def test_an_owners_edit_shows_at_the_next_pod_event_after_a_few_seconds() -> None:
    world = World()
    world.gateway.seed(JOBS, job())
    world.pods(pod("p0", job()))
    world.settle()
    world.gateway.patch(
        JOBS,
        "j",
        {"metadata": {"annotations": {"kai.scheduler/batch-min-member": "2"}}},
        namespace="lab",
    )
    world.clock.now += 6
    world.gateway.patch(PODS, "p0", {"status": {"phase": "Running"}}, namespace="lab", sub="status")
    world.settle()
    assert world.gateway.raw(PODGROUPS, "pg-j-u-j", "lab")["spec"]["minMember"] == 2


def test_a_pod_that_cannot_be_grouped_gets_an_event_and_is_retried_with_growing_pauses() -> None:
    world = World()
    world.gateway.seed(JOBS, job(annotations={"kai.scheduler/batch-min-member": "x"}))
    world.pods(pod("p0", job()))
    world.settle()
    message = "invalid min-member annotation value: 'x' is not a whole number from 0 to 2147483647"
    assert world.warnings.written_events == [("lab/p0", "PodGrouperWarning", message)]
    pauses = []
    for _ in range(8):
        pauses.append(world.grouper.queue._pause(None))
        world.clock.now += pauses[-1] or 0
        world.settle()
    assert [round(pause or 0) for pause in pauses] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert len(world.warnings.written_events) == 9
    world.gateway.patch(
        JOBS,
        "j",
        {"metadata": {"annotations": {"kai.scheduler/batch-min-member": "3"}}},
        namespace="lab",
    )
    world.clock.now += 60
    world.settle()
    assert world.gateway.raw(PODGROUPS, "pg-j-u-j", "lab")["spec"]["minMember"] == 3


def test_a_write_conflict_is_tried_again_without_an_event() -> None:
    world = World()
    world.pods(pod("p0", uid="u0"))
    world.gateway.fail_next("patch", "pods", ConflictError("conflict"))
    world.settle()
    assert world.warnings.written_events == []
    world.clock.now += 1
    world.settle()
    assert world.gateway.raw(PODS, "p0", "lab")["metadata"]["annotations"] == {
        "pod-group-name": "pg-p0-u0"
    }


def test_an_existing_object_of_the_same_name_is_ignored_but_other_refusals_are_reported() -> None:
    world = World()
    world.pods(pod("p0", uid="u0"), pod("p1", uid="u1"))
    immutable = 'Pod "p0" is invalid: metadata.uid: Invalid value: "u0": field is immutable'
    world.gateway.fail_next("patch", "pods", InvalidError(immutable))
    world.gateway.fail_next("patch", "pods", InvalidError("spec: Forbidden"))
    world.settle()
    assert world.warnings.written_events == [("lab/p1", "PodGrouperWarning", "spec: Forbidden")]


def test_a_failing_server_is_an_event_and_a_retry() -> None:
    world = World()
    world.pods(pod("p0", uid="u0"))
    world.gateway.fail_next("create", "podgroups", ServerError("no answer"))
    world.settle()
    assert world.warnings.written_events == [("lab/p0", "PodGrouperWarning", "no answer")]
    world.clock.now += 1
    world.settle()
    assert world.gateway.names(PODGROUPS) == ["pg-p0-u0"]


def test_a_pod_deleted_meanwhile_is_forgotten() -> None:
    world = World()
    world.pods(pod("p0", uid="u0"))
    world.gateway.fail_next("patch", "pods", NotFoundError("gone"))
    world.settle()
    assert (world.warnings.written_events, len(world.grouper.queue)) == ([], 0)


def test_a_group_made_by_somebody_else_meanwhile_is_taken_over() -> None:
    world = World()
    world.pods(pod("p0", uid="u0"))
    world.store.replace(PODS, world.gateway.list(PODS, as_type=Pod))
    stored = {
        "metadata": {"name": "pg-p0-u0", "namespace": "lab"},
        "spec": {"queue": "kept", "minMember": 5},
    }
    world.gateway.seed(PODGROUPS, stored)
    key = world.grouper.queue.get(timeout_s=0)
    assert key == "lab/p0"
    world.grouper.work(key)
    spec = world.gateway.raw(PODGROUPS, "pg-p0-u0", "lab")["spec"]
    assert spec == {"queue": "kept", "minMember": 1, "priorityClassName": "train"}


def test_an_owner_that_may_not_be_read_leaves_the_pod_as_its_own_owner() -> None:
    world = World()
    solver = {
        "apiVersion": "example.test/v1",
        "kind": "Solver",
        "metadata": {"name": "s", "uid": "u-s"},
    }
    world.pods(pod("p0", solver, uid="u0"))
    world.gateway.fail_next("get", "solvers", ForbiddenError("no"))
    world.settle()
    assert world.gateway.names(PODGROUPS) == ["pg-p0-u0"]


def test_an_unusual_plural_is_looked_up_in_the_discovery_document() -> None:
    world = World()
    mice = Resource(group="example.test", version="v1", plural="mice", kind="Mouse")
    document = DiscoveryDocument(
        group="example.test", version="v1", plural="", kind="APIResourceList", namespaced=False
    )
    world.gateway.seed(
        document,
        {
            "metadata": {"name": "example.test/v1"},
            "resources": [
                {"name": "mice", "kind": "Mouse", "namespaced": True},
                {"name": "mice/status", "kind": "Mouse"},
            ],
        },
    )
    mouse = {
        "apiVersion": "example.test/v1",
        "kind": "Mouse",
        "metadata": {"name": "m", "namespace": "lab", "uid": "u-m"},
    }
    world.gateway.seed(mice, mouse)
    world.pods(pod("p0", mouse), pod("p1", mouse))
    world.settle()
    assert world.gateway.names(PODGROUPS) == ["pg-m-u-m"]
    assert world.verbs("get") == ["mouses/m", "discovery/example.test/v1", "mice/m"]


def test_only_pods_of_selected_namespaces_are_grouped() -> None:
    world = World(namespace_labels={"team": "a"})
    world.gateway.seed(
        NAMESPACES,
        {"metadata": {"name": "lab", "labels": {"team": "a"}}},
        {"metadata": {"name": "other"}},
    )
    elsewhere = pod("p1", uid="u1")
    elsewhere["metadata"]["namespace"] = "other"
    unknown = pod("p2", uid="u2")
    unknown["metadata"]["namespace"] = "vanished"
    world.store.replace(NAMESPACES, world.gateway.list(NAMESPACES, as_type=KubeObject))
    world.pods(pod("p0", uid="u0"), elsewhere, unknown)
    world.settle()
    assert world.gateway.names(PODGROUPS) == ["pg-p0-u0"]


def test_defaults_per_kind_come_from_the_config_map_and_need_an_existing_class() -> None:
    world = World(defaults_config_map=("kai", "defaults"))
    types = '[{"typeName":"Job","group":"batch","priorityName":"build"},{"typeName":"Pod","priorityName":"gone"}]'
    world.gateway.seed(
        CONFIGMAPS, {"metadata": {"name": "defaults", "namespace": "kai"}, "data": {"types": types}}
    )
    world.gateway.seed(PRIORITY_CLASSES, {"metadata": {"name": "build"}, "value": 100})
    world.gateway.seed(JOBS, job())
    world.store.replace(
        PRIORITY_CLASSES, world.gateway.list(PRIORITY_CLASSES, as_type=PriorityClass)
    )
    world.pods(pod("p0", job()), pod("p1", uid="u1"))
    world.settle()
    assert world.gateway.raw(PODGROUPS, "pg-j-u-j", "lab")["spec"]["priorityClassName"] == "build"
    assert world.gateway.raw(PODGROUPS, "pg-p1-u1", "lab")["spec"]["priorityClassName"] == "train"


def test_subgroups_are_labelled_on_pods() -> None:
    world = World()
    resource = Resource(group="kubeflow.org", version="v1", plural="pytorchjobs", kind="PyTorchJob")
    owner = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "t", "namespace": "lab", "uid": "u-t"},
        "spec": {"pytorchReplicaSpecs": {"Master": {"replicas": 1}, "Worker": {"replicas": 1}}},
    }
    world.gateway.seed(resource, owner)
    world.pods(pod("m", owner, labels={"training.kubeflow.org/replica-type": "master"}))
    world.settle()
    labels = world.gateway.raw(PODS, "m", "lab")["metadata"]["labels"]
    assert labels["kai.scheduler/subgroup-name"] == "master"


def test_a_deleted_pods_failures_are_forgotten() -> None:
    world = World()
    world.pods(pod("p0", job()))
    world.settle()
    gone: Pod = world.store.get(PODS, "lab/p0")
    world.store.apply(
        PODS, WatchEvent(type=EventType.DELETED, object=gone, resource_version="999999")
    )
    assert world.grouper.queue._failures == {}


def test_another_schedulers_name_and_label_can_be_chosen() -> None:
    world = World(settings=Settings(scheduler_name="mine", queue_label="my/queue"))
    other = pod("p0", uid="u0", labels={"my/queue": "q"})
    other["spec"]["schedulerName"] = "mine"
    world.pods(other, pod("p1", uid="u1"))
    world.settle()
    assert world.gateway.names(PODGROUPS) == ["pg-p0-u0"]
    assert world.gateway.raw(PODGROUPS, "pg-p0-u0", "lab")["spec"]["queue"] == "q"


@pytest.mark.parametrize(
    ("text", "pairs"),
    [("", {}), ("a=b, c = d ,junk,=x", {"a": "b", "c": "d"}), ("a=b=c", {"a": "b=c"})],
)
def test_selectors_drop_malformed_pairs(text: str, pairs: dict[str, str]) -> None:
    assert parse_selector(text) == pairs


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("Job", "jobs"),
        ("InferenceService", "inferenceservices"),
        ("Proxy", "proxies"),
        ("Gateway", "gateways"),
        ("Ingress", "ingresses"),
    ],
)
def test_plurals(kind: str, plural: str) -> None:
    assert plural_of(kind) == plural

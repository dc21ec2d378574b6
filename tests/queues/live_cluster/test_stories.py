"""Workloads that change while they start, and flags of the pod grouper, on a live live.

What stands still is in test_grouping. Each test runs on the embedded API server and on a real one.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from kube.errors import NotFoundError
from kube.gateway import Gateway
from kube.resources import PODGROUPS, PODS
from queues.controllers.assembly import Controllers, Options
from queues.grouping.base import Settings
from queues.grouping.engine.lookups import KARTAS
from queues.grouping.offline.manifests import parse_manifests, read_manifests
from tests.queues.live_cluster.conftest import define
from tests.queues.live_cluster.objects import definitions_of, resource_of
from tests.queues.live_cluster.test_grouping import place, warnings
from tests.queues.live_cluster.waiting import eventually

Json = dict[str, Any]
MANIFESTS = Path(__file__).parent.parent / "manifests"
APART = "apart-scheduler"


@pytest.fixture
def live(gateway: Gateway, namespace: str, controllers: Controllers) -> Live:
    return Live(gateway, namespace)


class Live:
    """One namespace of a cluster with a pod grouper."""

    def __init__(self, gateway: Gateway, namespace: str) -> None:
        self.gateway = gateway
        self.namespace = namespace

    def create(self, obj: Json, *owners: Json) -> Json:
        """Create an object, of a kind that is defined for the purpose if need be."""
        body = copy.deepcopy(obj)
        define(self.gateway, definitions_of([body]))
        metadata = {k: v for k, v in body["metadata"].items() if k not in ("uid", "namespace")}
        if owners:
            metadata["ownerReferences"] = [reference(owner) for owner in owners]
        resource = resource_of(body)
        place = self.namespace if resource.namespaced else ""
        return self.gateway.create(resource, {**body, "metadata": metadata}, namespace=place)

    def pod(self, name: str, owner: Json | None = None, **metadata: Any) -> None:
        scheduler = metadata.pop("scheduler", "kai-scheduler")
        resources = metadata.pop("resources", {})
        body: Json = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, **metadata},
            "spec": {
                "schedulerName": scheduler,
                "containers": [{"name": "c", "image": "pause", "resources": resources}],
            },
        }
        self.create(body, *([owner] if owner else []))

    def set_status(self, obj: Json, status: Json) -> None:
        name = obj["metadata"]["name"]
        self.gateway.patch(
            resource_of(obj), name, {"status": status}, namespace=self.namespace, sub="status"
        )

    def group_of(self, pod: str) -> Json:
        """Return the pod group of a pod once it has one."""
        eventually(lambda: bool(self.place(pod)[0]), f"{pod} is grouped", 60.0)
        return self.group(self.place(pod)[0])

    def group(self, name: str) -> Json:
        pod_group: Json = self.gateway.get(PODGROUPS, name, as_type=dict, namespace=self.namespace)
        return pod_group

    def place(self, pod: str) -> tuple[str, str]:
        return place(self.gateway, self.namespace, pod)

    def warnings(self, pod: str) -> list[str]:
        return warnings(self.gateway, self.namespace, pod)


def reference(owner: Json) -> Json:
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }


@contextmanager
def grouper_apart(gateway: Gateway, **settings: Any) -> Iterator[None]:
    """Run a second pod grouper with other flags, for pods of a scheduler of its own."""
    options = Options(
        settings=Settings(scheduler_name=APART, **settings), keeps_status=False, concurrency=2
    )
    controllers = Controllers(gateway, options)
    controllers.start()
    try:
        yield
    finally:
        controllers.close()


def manifest_object(file: str, kind: str, name: str = "") -> Json:
    (pod_group,) = [
        obj
        for obj in read_manifests([MANIFESTS / file])
        if obj["kind"] == kind and name in ("", obj["metadata"]["name"])
    ]
    return pod_group


def test_an_mpi_job_counts_its_launcher_once_the_launcher_exists(live: Live) -> None:
    job = live.create(manifest_object("kubeflow.yaml", "MPIJob", "ring"))
    role = "training.kubeflow.org/job-role"
    labels = {"training.kubeflow.org/job-name": "ring", role: "worker"}
    for index in range(2):
        live.pod(f"ring-worker-{index}", job, labels=labels)
    group = live.group_of("ring-worker-1")
    name = group["metadata"]["name"]
    assert name == f"pg-ring-{job['metadata']['uid']}"
    assert (group["spec"]["minMember"], group["spec"]["queue"]) == (2, "bio")
    assert live.group_of("ring-worker-0")["metadata"]["name"] == name
    live.pod("ring-launcher", job, labels={**labels, role: "launcher"})
    assert live.group_of("ring-launcher")["metadata"]["name"] == name
    eventually(lambda: live.group(name)["spec"]["minMember"] == 3, "the launcher is counted")
    # A worker's later event does not take it back.
    live.gateway.patch(
        PODS, "ring-worker-0", {"metadata": {"labels": {"seen": "1"}}}, namespace=live.namespace
    )
    live.pod("ring-worker-2", job, labels=labels)
    live.group_of("ring-worker-2")
    assert live.group(name)["spec"]["minMember"] == 3


def test_a_ray_job_is_a_warning_until_its_cluster_has_a_name(live: Live) -> None:
    job = live.create(manifest_object("ray.yaml", "RayJob", "sweep"))
    spec = manifest_object("ray.yaml", "RayJob", "sweep")["spec"]["rayClusterSpec"]
    body = {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "sweep-x1"},
        "spec": spec,
    }
    ray = live.create(body, job)
    live.pod("sweep-head", ray, labels={"ray.io/group": "headgroup"})
    eventually(lambda: bool(live.warnings("sweep-head")), "the pod is warned about")
    assert live.warnings("sweep-head")[0] == (
        f"failed to extract rayClusterName for {live.namespace}/sweep of kind RayJob. Please make sure that the "
        "ray-operator is up and a rayCluster child-object has been created"
    )
    assert live.place("sweep-head") == ("", "")
    live.set_status(job, {"rayClusterName": "sweep-x1"})
    # Nothing happens to the pod: the grouper tries again by itself.
    group = live.group_of("sweep-head")
    assert group["metadata"]["name"] == f"pg-sweep-{job['metadata']['uid']}"
    assert group["metadata"]["ownerReferences"] == [reference(job)]
    assert group["spec"]["minMember"] == 3
    assert group["spec"]["queue"] == "optics"
    # No such class exists in the cluster; the label is believed.
    assert group["spec"]["priorityClassName"] == "vip"
    assert live.place("sweep-head")[1] == "headgroup"


def test_a_notebook_is_interactive_work_that_is_not_preempted(live: Live) -> None:
    notebook = live.create(manifest_object("kubeflow.yaml", "Notebook"))
    labels = {"app": "book"}
    pods = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "c", "image": "pause"}]},
    }
    body = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "book"},
        "spec": {
            "replicas": 0,
            "serviceName": "book",
            "selector": {"matchLabels": labels},
            "template": pods,
        },
    }
    middle = live.create(body, notebook)
    live.pod("book-0", middle, resources={"limits": {"nvidia.com/gpu": "1"}})
    group = live.group_of("book-0")
    name = group["metadata"]["name"]
    assert name == f"pg-book-{notebook['metadata']['uid']}"
    assert group["metadata"]["ownerReferences"] == [reference(notebook)]
    assert group["spec"] == {"queue": "bio", "priorityClassName": "build", "minMember": 1}
    condition = {"conditions": [{"type": "PodScheduled", "status": "True"}]}
    live.gateway.patch(
        PODS, "book-0", {"status": condition}, namespace=live.namespace, sub="status"
    )

    def firm() -> Any:
        status = live.group(name).get("status", {}).get("resourcesStatus", {})
        return status.get("allocatedNonPreemptible")

    eventually(lambda: firm() == {"nvidia.com/gpu": "1"}, "its GPU counts as non-preemptible")


def made_revision(live: Live, name: str) -> tuple[Json, dict[str, str]]:
    """Create a revision of a service, of two pods at least; return it and the labels of its pods."""
    service = live.create(manifest_object("serving.yaml", "Service"))
    label = {"serving.knative.dev/revision": name, "kai.scheduler/queue": "web"}
    body = {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Revision",
        "metadata": {
            "name": name,
            "labels": label,
            "annotations": {"autoscaling.knative.dev/min-scale": "2"},
        },
        "spec": {},
    }
    return live.create(body, service), label


def test_with_the_gang_flag_off_each_pod_of_a_revision_is_a_group(live: Live) -> None:
    revision, label = made_revision(live, "greet-1")
    with grouper_apart(live.gateway, knative_gang=False):
        for name in ("greet-a", "greet-b"):
            live.pod(name, revision, labels=label, scheduler=APART)
        for name in ("greet-a", "greet-b"):
            group = live.group_of(name)
            (owner,) = group["metadata"]["ownerReferences"]
            assert (owner["kind"], owner["name"]) == ("Pod", name)
            assert group["metadata"]["name"] == f"pg-{name}-{owner['uid']}"
            assert group["spec"] == {
                "queue": "web",
                "priorityClassName": "inference",
                "minMember": 1,
            }


def test_with_the_gang_flag_on_a_revision_is_one_group(live: Live) -> None:
    revision, label = made_revision(live, "greet-2")
    for name in ("greet-c", "greet-d"):
        live.pod(name, revision, labels=label)
    groups = [live.group_of(name) for name in ("greet-c", "greet-d")]
    assert {g["metadata"]["name"] for g in groups} == {f"pg-greet-2-{revision['metadata']['uid']}"}
    assert groups[0]["metadata"]["ownerReferences"] == [reference(revision)]
    assert groups[0]["spec"] == {"queue": "web", "priorityClassName": "inference", "minMember": 2}


@pytest.fixture
def puzzles(live: Live) -> Iterator[list[Json]]:
    """Yield two definitions of one kind, `Puzzle`; they are gone afterwards, the cluster's other Kartas stay."""
    text = (
        (MANIFESTS / "karta.yaml")
        .read_text()
        .replace("Solver", "Puzzle")
        .replace("solver", "puzzle")
    )
    (karta,) = [obj for obj in parse_manifests(text, "karta") if obj["kind"] == "Karta"]
    twins = [{**karta, "metadata": {**karta["metadata"], "name": name}} for name in ("one", "two")]
    yield twins
    for twin in twins:
        with suppress(NotFoundError):
            live.gateway.delete(KARTAS, twin["metadata"]["name"])


def test_a_karta_rules_alone_two_of_them_or_the_flag_off_mean_the_base_rules(
    live: Live, controllers: Controllers, puzzles: list[Json]
) -> None:
    puzzle = {
        "apiVersion": "example.test/v1",
        "kind": "Puzzle",
        "metadata": {"name": "maze", "labels": {"kai.scheduler/queue": "optics"}},
        "spec": {"lead": {"replicas": 1}, "helper": {"replicas": 3}},
    }
    karta = live.create(puzzle)
    uid = karta["metadata"]["uid"]
    role = "example.test/role"
    kartas = len(controllers.store.view().kinds[KARTAS])

    def is_known(count: int) -> None:
        eventually(
            lambda: len(controllers.store.view().kinds[KARTAS]) == kartas + count,
            "the Kartas are seen",
            60.0,
        )

    live.create(puzzles[0])
    is_known(1)
    for index, part in enumerate(("lead", "helper", "helper", "helper")):
        live.pod(f"maze-{index}", karta, labels={role: part})
    group = live.group_of("maze-3")
    assert group["metadata"]["name"] == f"pg-{uid}-puzzle"
    assert group["metadata"]["ownerReferences"] == [reference(karta)]
    assert group["spec"] == {
        "queue": "optics",
        "priorityClassName": "train",
        "minSubGroup": 2,
        "subGroups": [{"name": "lead", "minMember": 1}, {"name": "helper", "minMember": 3}],
    }
    eventually(
        lambda: [live.place(f"maze-{i}")[1] for i in range(4)] == ["lead", *["helper"] * 3],
        "each pod joins its part",
    )
    plain = {"queue": "optics", "priorityClassName": "train", "minMember": 1}
    with grouper_apart(live.gateway, karta_fallback=False):
        live.pod("maze-apart", karta, labels={role: "lead"}, scheduler=APART)
        group = live.group_of("maze-apart")
        assert group["metadata"]["name"] == f"pg-maze-{uid}"
        assert group["spec"] == plain
    other = live.create({**puzzle, "metadata": {**puzzle["metadata"], "name": "rebus"}})
    live.create(puzzles[1])
    is_known(2)
    live.pod("rebus-0", other, labels={role: "lead"})
    group = live.group_of("rebus-0")
    assert group["metadata"]["name"] == f"pg-rebus-{other['metadata']['uid']}"
    assert group["spec"] == plain
    assert live.place("rebus-0")[1] == ""


def test_a_workflows_queue_reaches_the_group_and_not_the_pod(live: Live) -> None:
    flow = live.create(manifest_object("serving.yaml", "Workflow"))
    for name in ("steps-a", "steps-b"):
        live.pod(name, flow)
    for name in ("steps-a", "steps-b"):
        group = live.group_of(name)
        (owner,) = group["metadata"]["ownerReferences"]
        assert group["metadata"]["name"] == f"pg-{name}-{owner['uid']}"
        assert group["spec"] == {"queue": "bio", "priorityClassName": "train", "minMember": 1}
        pod = live.gateway.get(PODS, name, as_type=dict, namespace=live.namespace)
        assert "labels" not in pod["metadata"]


def test_only_pods_that_the_label_selector_names_are_seen(live: Live) -> None:
    options = Options(
        settings=Settings(scheduler_name=APART),
        pod_selector="seen=yes",
        keeps_status=False,
        concurrency=2,
    )
    controllers = Controllers(live.gateway, options)
    live.pod("hidden", scheduler=APART)
    live.pod("other", labels={"seen": "yes"}, scheduler="somebody")
    live.pod("seen", labels={"seen": "yes"}, scheduler=APART)
    controllers.start()
    try:
        live.group_of("seen")
        mine = [
            key
            for key in controllers.store.view().kinds[PODS]
            if key.startswith(f"{live.namespace}/")
        ]
        assert mine == [f"{live.namespace}/seen"]
        assert live.place("hidden") == live.place("other") == ("", "")
    finally:
        controllers.close()

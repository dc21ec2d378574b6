"""The pod grouper with Kubernetes' gang API: a late Workload, a deleted one, and a cluster that serves none."""

from __future__ import annotations

from typing import Any

from kube.gateway import EventType, Listing, WatchEvent
from kube.objects.gang import Workload
from kube.objects.meta import convert
from kube.resources import PODGROUPS, PODS, WORKLOADS
from tests.queues.grouping.engine.test_controller import World, pod


def member(name: str, part: str = "workers") -> dict[str, Any]:
    body = pod(name, uid=f"u-{name}")
    body["spec"]["workloadRef"] = {"name": "training", "podGroup": part}
    return body


def see_workload(world: World, size: int, version: str, event: EventType) -> None:
    body = {
        "apiVersion": "scheduling.k8s.io/v1alpha1",
        "kind": "Workload",
        "metadata": {
            "name": "training",
            "namespace": "lab",
            "uid": "u-training",
            "resourceVersion": version,
        },
        "spec": {"podGroups": [{"name": "workers", "policy": {"gang": {"minCount": size}}}]},
    }
    change = WatchEvent(type=event, object=convert(body, Workload), resource_version=version)
    world.store.apply(WORKLOADS, change)
    world.work()


def test_a_pod_that_came_before_its_workload_is_grouped_as_soon_as_that_appears() -> None:
    world = World()
    world.pods(member("p0"), member("p1"))
    world.settle()
    message = "Workload lab/training, which the pod names, does not exist; the pod waits for it"
    assert world.warnings.written_events == [
        ("lab/p0", "PodGrouperWarning", message),
        ("lab/p1", "PodGrouperWarning", message),
    ]
    # Nothing is tried again until the Workload comes.
    world.clock.now += 600
    world.work()
    assert (len(world.warnings.written_events), len(world.grouper.queue)) == (2, 0)
    see_workload(world, 2, "900", EventType.ADDED)
    assert world.gateway.names(PODGROUPS) == ["training-workers"]
    assert world.gateway.raw(PODGROUPS, "training-workers", "lab")["spec"]["minMember"] == 2
    assert world.verbs("patch") == ["pods/p0", "pods/p1"]


def test_a_deleted_workload_leaves_its_pods_in_their_pod_group() -> None:
    world = World()
    see_workload(world, 2, "1", EventType.ADDED)
    world.pods(member("p0"))
    world.settle()
    see_workload(world, 2, "900", EventType.DELETED)
    world.settle()
    assert world.gateway.names(PODGROUPS) == ["training-workers"]
    assert world.warnings.written_events == []


def test_a_cluster_without_the_api_groups_by_owner_and_is_asked_nothing() -> None:
    world = World()
    world.store.replace(WORKLOADS, Listing(items=(), resource_version=""))
    world.pods(member("p0"))
    world.settle()
    assert world.gateway.names(PODGROUPS) == ["pg-p0-u-p0"]
    assert world.verbs("get") == []
    assert world.gateway.raw(PODS, "p0", "lab")["metadata"]["annotations"] == {
        "pod-group-name": "pg-p0-u-p0"
    }

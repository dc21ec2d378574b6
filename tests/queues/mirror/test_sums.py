"""What the mirror sums up: pods in their group, groups in their queue, pods on their node."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from kube.objects.node import NodeStatus
from kube.objects.pod import Container, ResourceRequirements
from kube.objects.podgroup import PodGroupStatus, ResourcesStatus
from kube.resources import NODES, PODGROUPS, PODS, PRIORITY_CLASSES, QUEUES
from queues.mirror.feed import Mirror
from queues.mirror.rollup import TreeView
from queues.models import Node, Pod, PodGroup
from tests.queues.cluster_objects import (
    a_group,
    a_node,
    a_pod,
    a_priority_class,
    a_queue,
    added,
    deleted,
    modified,
)

pytestmark = pytest.mark.django_db(transaction=False)


def test_pods_are_summed_up_in_their_group_whichever_comes_first(mirror: Mirror) -> None:
    mirror.consume([added(QUEUES, a_queue("team", 1))])
    mirror.consume([added(PODS, a_pod("p0", 2, group="g", gpus=2, node="n1", phase="Running"))])
    mirror.consume([added(PODGROUPS, a_group("g", 3, min_member=2))])
    group = PodGroup.objects.get(key="default/g")
    assert (group.state, group.pods, group.pods_bound, group.gpu) == ("partial", 1, 1, 2)
    mirror.consume([added(PODS, a_pod("p1", 4, group="g", gpus=2, node="n2"))])
    group.refresh_from_db()
    assert (group.state, group.pods_bound, group.gpu, group.nodes) == (
        "running",
        2,
        4,
        ["n1", "n2"],
    )
    assert group.started_at == datetime(2026, 11, 29, 12, 5, tzinfo=UTC)
    assert (group.owner_kind, group.owner_name) == ("Job", "train")


@pytest.mark.parametrize(
    ("pods", "state"),
    [
        ([], "pending"),
        ([{"phase": "Succeeded", "node": "n"}], "finished"),
        ([{"phase": "Failed", "node": "n"}], "failed"),
        ([{"phase": "Failed", "node": "n"}, {"phase": "Succeeded", "node": "n"}], "finished"),
        ([{"gated": True}], "gated"),
        ([{"gated": True}, {}], "pending"),
        ([{"node": "n", "phase": "Running"}], "running"),
    ],
)
def test_the_state_of_a_workload_follows_its_pods(
    mirror: Mirror, pods: list[dict[str, Any]], state: str
) -> None:
    mirror.consume([added(QUEUES, a_queue("team", 1)), added(PODGROUPS, a_group("g", 2))])
    mirror.consume(
        [added(PODS, a_pod(f"p{n}", 10 + n, group="g", **pod)) for n, pod in enumerate(pods)]
    )
    assert PodGroup.objects.get().state == state


def test_a_waiting_workload_shows_the_schedulers_own_reason(mirror: Mirror) -> None:
    message = "NonPreemptibleOverQuota: Non-preemptible workload is over quota. (...)"
    condition = {
        "type": "UnschedulableOnNodePool", "nodePool": "default", "reason": "Unschedulable",
        "message": message, "status": "True", "transitionID": "1",
        "lastTransitionTime": "2026-11-29T12:02:00Z",
        "reasons": [{"reason": "NonPreemptibleOverQuota", "message": "over quota"}],
    }  # fmt: skip
    mirror.consume([added(QUEUES, a_queue("team", 1))])
    mirror.consume([added(PODGROUPS, a_group("g", 2, conditions=[condition]))])
    mirror.consume([added(PODS, a_pod("p", 3, group="g", gpus=1, message="other text"))])
    group = PodGroup.objects.get()
    assert (group.reason_code, group.reason_text) == ("NonPreemptibleOverQuota", message)
    assert group.reason_since == datetime(2026, 11, 29, 12, 2, tzinfo=UTC)
    mirror.consume([modified(PODS, a_pod("p", 4, group="g", gpus=1, node="n", phase="Running"))])
    group.refresh_from_db()
    assert (group.state, group.reason_code, group.reason_text) == ("running", "", "")


def test_a_workload_waits_for_its_queue_and_is_looked_at_again_when_the_queue_comes(
    mirror: Mirror,
) -> None:
    mirror.consume([added(PODGROUPS, a_group("g", 2, queue="late"))])
    mirror.consume([added(PODS, a_pod("p", 3, group="g"))])
    assert PodGroup.objects.get().reason_code == "QueueDoesNotExist"
    mirror.consume([added(QUEUES, a_queue("late", 4, parent="nowhere"))])
    assert PodGroup.objects.get().reason_code == "QueueOrphan"
    mirror.consume([added(QUEUES, a_queue("nowhere", 5))])
    assert PodGroup.objects.get().reason_code == "NotEvaluated"
    mirror.consume([deleted(QUEUES, a_queue("late", 6, parent="nowhere"))])
    assert PodGroup.objects.get().reason_code == "QueueDoesNotExist"


def test_the_cached_tree_equals_the_rows_after_creations_moves_and_deletions(
    mirror: Mirror,
) -> None:
    chance = random.Random(3)
    names = [f"q{number}" for number in range(6)]
    parents: dict[str, str] = {}
    uids: dict[str, str] = {}
    for version in range(1, 120):
        name, parent = chance.choice(names), chance.choice(["", *names])
        uid = uids.setdefault(name, f"{name}-{version}")
        row = a_queue(name, version, parent=parent, uid=uid)
        if name in parents and chance.random() < 0.4:
            del parents[name], uids[name]
            mirror.consume([deleted(QUEUES, row)])
        else:
            parents[name] = parent
            mirror.consume([added(QUEUES, row)])
        cached, loaded = mirror.writer._tree, TreeView.load()
        assert cached is not None
        assert {shape.name: shape.parent for shape in cached.shapes.values()} == parents
        assert cached.shapes == loaded.shapes
        assert [cached.below([q]) for q in names] == [loaded.below([q]) for q in names]


def test_the_priority_comes_from_the_class_and_follows_it(mirror: Mirror) -> None:
    mirror.consume([added(PODGROUPS, a_group("g", 2, priority_class="build"))])
    assert PodGroup.objects.get().priority == 50
    mirror.consume([added(PRIORITY_CLASSES, a_priority_class("build", 100, 3))])
    assert PodGroup.objects.get().priority == 100


def test_each_new_eviction_time_counts_once(mirror: Mirror) -> None:
    key = "kai.scheduler/last-eviction-timestamp"
    mirror.consume([added(PODGROUPS, a_group("g", 2))])
    for version, time in (
        (3, "2026-11-29T12:00:00Z"),
        (4, "2026-11-29T12:00:00Z"),
        (5, "2026-11-29T13:00:00Z"),
    ):
        mirror.consume([modified(PODGROUPS, a_group("g", version, annotations={key: time}))])
    assert PodGroup.objects.get().evictions == 2


def test_a_node_sums_its_pods_and_gives_them_stable_cells(mirror: Mirror) -> None:
    mirror.consume([added(NODES, a_node("n1", 1))])
    mirror.consume(
        [
            added(PODS, a_pod("a", 2, node="n1", gpus=2)),
            added(PODS, a_pod("b", 3, node="n1", gpus=1)),
        ]
    )
    assert Pod.objects.get(name="a").devices == [0, 1]
    assert Pod.objects.get(name="b").devices == [2]
    mirror.consume([deleted(PODS, a_pod("a", 4, node="n1", gpus=2))])
    mirror.consume([added(PODS, a_pod("c", 5, node="n1", gpus=1))])
    assert (Pod.objects.get(name="b").devices, Pod.objects.get(name="c").devices) == ([2], [0])
    node = Node.objects.get()
    assert (node.used_gpu, node.used_cpu, node.used_memory, node.pods) == (2, 1000, 2 * 2**30, 2)
    assert (node.model, node.gpus, node.gpu_memory_mib) == ("H100", 8, 81559)
    assert node.taints == ["dedicated=ml:NoSchedule"]


def test_mig_slices_count_by_size_on_nodes_and_in_pods_and_groups(mirror: Mirror) -> None:
    slices = {"nvidia.com/mig-3g.20gb": "2", "nvidia.com/mig-1g.5gb": "1"}
    node = replace(a_node("n1", 1), status=NodeStatus(capacity=slices, allocatable=slices))
    limits = ResourceRequirements(limits={"nvidia.com/mig-3g.20gb": "1"})
    pod = a_pod("a", 3, node="n1", gpus=0)
    pod = replace(pod, spec=replace(pod.spec, containers=(Container(resources=limits),)))
    allocated = ResourcesStatus(allocated={"nvidia.com/mig-3g.20gb": "1"})
    group = replace(a_group("g", 4), status=PodGroupStatus(resources_status=allocated))
    mirror.consume([added(NODES, node), added(PODS, pod), added(PODGROUPS, group)])
    stored = Node.objects.get()
    assert (stored.gpus, stored.gpus_healthy, stored.used_gpu) == (7, 7, 3)
    assert (Pod.objects.get().gpu, Pod.objects.get().gpu_kind) == (3, "whole")
    assert PodGroup.objects.get().allocated_gpu == 3


def test_a_finished_pod_leaves_its_node(mirror: Mirror) -> None:
    mirror.consume([added(NODES, a_node("n1", 1)), added(PODS, a_pod("a", 2, node="n1", gpus=2))])
    mirror.consume([modified(PODS, a_pod("a", 3, node="n1", gpus=2, phase="Succeeded"))])
    assert Node.objects.get().used_gpu == 0


def test_part_devices_are_counted_once_through_their_reservation_pod(mirror: Mirror) -> None:
    share = {"annotations": {"gpu-fraction": "0.5"}, "labels": {"runai-gpu-group": "g-1"}}
    mirror.consume([added(NODES, a_node("n1", 1))])
    mirror.consume(
        [
            added(
                PODS,
                a_pod(
                    "res", 2, node="n1", gpus=1, namespace="kai-resource-reservation",
                    labels={"runai-gpu-group": "g-1"},
                ),
            ),
            added(PODS, a_pod("x", 3, node="n1", **share)),
            added(PODS, a_pod("y", 4, node="n1", **share)),
        ]
    )  # fmt: skip
    assert Node.objects.get().used_gpu == 1
    assert [Pod.objects.get(name=name).devices for name in ("res", "x", "y")] == [[0], [0], [0]]
    assert Pod.objects.get(name="x").gpu == 0.5

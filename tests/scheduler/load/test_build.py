"""A store view becomes the core's input, and rebuilding reuses what did not change."""

from __future__ import annotations

from math import inf

import pytest

from kube.resources import (
    BINDREQUESTS,
    NODES,
    PODGROUPS,
    PODS,
    PRIORITY_CLASSES,
    QUEUES,
    TOPOLOGIES,
)
from scheduler.core.cluster.inputs import PodSetInput, SubGroupInput, TaskRequest
from scheduler.core.cluster.inputs import TopologyConstraint as Constraint
from scheduler.core.cluster.status import TaskStatus
from scheduler.load.build import Snapshot, SnapshotBuilder
from scheduler.settings.params import ShardParams
from tests.scheduler.load.objects import (
    NOW,
    Cluster,
    bind_request,
    group,
    meta,
    node,
    pod,
    queue,
)

POOL = "kai.scheduler/node-pool"


def build(cluster: Cluster, **params: object) -> Snapshot:
    builder = SnapshotBuilder(ShardParams(**params), origin=NOW)  # type: ignore[arg-type]
    return builder.build(cluster.store.view(), NOW)


def statuses(snapshot: Snapshot) -> dict[str, tuple[TaskStatus, str]]:
    return {
        task.name: (task.status, task.node)
        for pod_group in snapshot.cluster.pod_groups
        for task in pod_group.tasks
    }


def test_one_pod_of_one_group_in_one_queue() -> None:
    cluster = Cluster().put(NODES, node("n1", labels={"nvidia.com/gpu.memory": "16384"}))
    cluster.put(
        QUEUES,
        queue(
            "q",
            parentQueue="top",
            resources={
                "gpu": {"quota": 2, "limit": -1, "overQuotaWeight": 3},
                "cpu": {"quota": -1, "limit": 4000, "overQuotaWeight": 1},
                "memory": {"quota": 100, "limit": 0},
            },
            reclaimMinRuntime="5m",
        ),
    )
    cluster.put(PODGROUPS, group("pg", minMember=1, priorityClassName="none"))
    cluster.put(
        PODS, pod("p", group="pg", requests={"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": "1"})
    )
    inputs = build(cluster).cluster
    (only_node,) = inputs.nodes
    assert only_node.allocatable == {
        "cpu": 32000.0,
        "memory": 128 * 2.0**30,
        "pods": 110.0,
        "gpu": 8.0,
    }
    assert (only_node.gpu_memory_mib, only_node.gpu_memory_known, only_node.ready) == (
        16300,
        True,
        True,
    )
    (only_queue,) = inputs.queues
    assert (only_queue.parent, only_queue.display_name, only_queue.priority) == ("top", "q", 100)
    assert (only_queue.gpu.quota, only_queue.gpu.limit, only_queue.gpu.over_quota_weight) == (
        2,
        inf,
        3,
    )
    assert (only_queue.cpu.quota, only_queue.cpu.limit) == (inf, 4000)
    assert (only_queue.memory.quota, only_queue.memory.limit) == (100e6, 0)
    assert (only_queue.reclaim_min_runtime_s, only_queue.preempt_min_runtime_s) == (300, None)
    (only_group,) = inputs.pod_groups
    assert (only_group.namespace, only_group.name, only_group.priority, only_group.preemptible) == (
        "ns",
        "pg",
        50,
        True,
    )
    assert only_group.root == SubGroupInput(pod_sets=(PodSetInput(min_available=1),))
    (task,) = only_group.tasks
    assert task.request == TaskRequest(cpu_milli=500, memory_bytes=2**30, gpus=1)
    assert (task.status, task.node) == (TaskStatus.PENDING, "")


def test_statuses_of_pods() -> None:
    cluster = Cluster().put(NODES, node("n1")).put(PODGROUPS, group("pg"))
    long_ago, just_now = "2025-12-31T23:57:00Z", "2025-12-31T23:59:59Z"
    cluster.put(
        PODS,
        pod("running", group="pg", node="n1", phase="Running"),
        pod("leaving", group="pg", node="n1", phase="Running", deleted=just_now),
        pod("stuck", group="pg", node="n1", phase="Running", deleted=long_ago),
        pod("bound", group="pg", node="n1"),
        pod("binding", group="pg"),
        pod("failed-binding", group="pg"),
        pod("gated", group="pg", schedulingGates=[{"name": "g"}]),
        pod("gone", group="pg", deleted=just_now),
        pod("done", group="pg", node="n1", phase="Succeeded"),
        pod("broken", group="pg", node="n1", phase="Failed"),
        pod("waiting", group="pg"),
    )
    cluster.put(BINDREQUESTS, bind_request("binding", "n1"))
    cluster.put(BINDREQUESTS, bind_request("failed-binding", "n1", status={"phase": "Failed"}))
    snapshot = build(cluster)
    assert statuses(snapshot) == {
        "running": (TaskStatus.RUNNING, "n1"),
        "leaving": (TaskStatus.RELEASING, "n1"),
        "stuck": (TaskStatus.STUCK_IN_RELEASING, "n1"),
        "bound": (TaskStatus.BOUND, "n1"),
        "binding": (TaskStatus.BINDING, "n1"),
        "failed-binding": (TaskStatus.GATED, ""),  # until its next attempt
        "gated": (TaskStatus.GATED, ""),
        "gone": (TaskStatus.RELEASING, ""),
        "done": (TaskStatus.SUCCEEDED, "n1"),
        "waiting": (TaskStatus.PENDING, ""),
    }
    assert [request.metadata.name for request in snapshot.spent_requests] == ["failed-binding"]


def test_bind_request_for_an_earlier_pod_or_a_missing_node_is_spent() -> None:
    cluster = Cluster().put(NODES, node("n1")).put(PODGROUPS, group("pg"))
    cluster.put(PODS, pod("again", group="pg"), pod("lost", group="pg"))
    cluster.put(BINDREQUESTS, bind_request("again", "n1", owner_uid="earlier"))
    cluster.put(BINDREQUESTS, bind_request("lost", "gone-node"))
    cluster.put(BINDREQUESTS, bind_request("foreign", "other", labels={POOL: "a100"}))
    snapshot = build(cluster)
    assert set(statuses(snapshot).values()) == {(TaskStatus.PENDING, "")}
    assert sorted(request.metadata.name for request in snapshot.spent_requests) == ["again", "lost"]


def test_fraction_keeps_its_gpu_groups_from_request_then_labels() -> None:
    cluster = Cluster().put(NODES, node("n1")).put(PODGROUPS, group("pg"))
    half = {"gpu-fraction": "0.5"}
    cluster.put(
        PODS,
        pod("binding", group="pg", annotations=half),
        pod(
            "single",
            group="pg",
            node="n1",
            phase="Running",
            annotations=half,
            labels={"runai-gpu-group": "g1"},
        ),
        pod(
            "several",
            group="pg",
            node="n1",
            phase="Running",
            annotations={**half, "gpu-fraction-num-devices": "2"},
            labels={"runai-gpu-group/g3": "g3", "runai-gpu-group/g2": "g2"},
        ),
    )
    cluster.put(BINDREQUESTS, bind_request("binding", "n1", selectedGPUGroups=["g9"]))
    tasks = {task.name: task for task in build(cluster).cluster.pod_groups[0].tasks}
    assert tasks["binding"].gpu_groups == ("g9",)
    assert tasks["single"].gpu_groups == ("g1",)
    assert tasks["several"].gpu_groups == ("g2", "g3")
    assert tasks["several"].request == TaskRequest(gpu_fraction=0.5, gpu_devices=2)


def test_shard_sees_only_its_own_objects_but_all_pods_on_its_nodes() -> None:
    mine = {POOL: "a100"}
    cluster = Cluster().put(NODES, node("n1", labels=mine), node("n2"))
    cluster.put(QUEUES, queue("q", labels=mine), queue("other"))
    cluster.put(PODGROUPS, group("pg", labels=mine), group("else"))
    cluster.put(
        PODS,
        pod("member", group="pg"),
        pod("visitor", group="else", node="n1", phase="Running"),
        pod("system", node="n1", phase="Running", schedulerName="default-scheduler"),
        pod("reservation", node="n1", phase="Running", labels={"app": "kai-resource-reservation"}),
        pod("elsewhere", node="n2", phase="Running"),
        pod("finished", node="n1", phase="Succeeded"),
    )
    inputs = build(cluster, partition_value="a100").cluster
    assert [item.name for item in inputs.nodes] == ["n1"]
    assert [item.name for item in inputs.queues] == ["q"]
    assert [item.name for item in inputs.pod_groups] == ["pg"]
    assert inputs.node_pool == "a100"
    assert {
        (item.task.name, item.is_foreign, item.is_reservation) for item in inputs.other_pods
    } == {
        ("visitor", False, False),
        ("system", True, False),
        ("reservation", False, True),
    }
    default = build(cluster).cluster
    assert [item.name for item in default.nodes] == ["n2"]
    assert [item.name for item in default.pod_groups] == ["else"]


def test_group_of_the_same_name_in_another_namespace_is_another_group() -> None:
    cluster = Cluster().put(PODGROUPS, group("pg"))
    elsewhere = pod("p", group="pg")
    elsewhere["metadata"]["namespace"] = "other"
    cluster.put(PODS, elsewhere)
    assert build(cluster).cluster.pod_groups[0].tasks == ()


def test_priority_and_preemptibility() -> None:
    cluster = Cluster()
    cluster.put(
        PRIORITY_CLASSES,
        {"metadata": meta("build"), "value": 100},
        {"metadata": meta("default"), "value": 70, "globalDefault": True},
    )
    cluster.put(
        PODGROUPS,
        group("a", priorityClassName="build"),
        group("b", priorityClassName="no"),
        group("c", priorityClassName="build", preemptibility="preemptible"),
        group("d", preemptibility="non-preemptible"),
        group("e", priorityClassName="build", preemptibility="semi-preemptible"),
    )
    groups = build(cluster).cluster.pod_groups
    assert [(item.name, item.priority, item.preemptible) for item in groups] == [
        ("a", 100, False),
        ("b", 70, True),
        ("c", 100, True),
        ("d", 70, False),
        ("e", 100, True),
    ]
    assert [item.name for item in groups if item.protects_minimum] == ["e"]


def test_subgroup_tree_with_aliases_and_an_orphan_pod() -> None:
    cluster = Cluster()
    cluster.put(
        TOPOLOGIES,
        {
            "metadata": meta("t"),
            "spec": {
                "levels": [
                    {"nodeLabel": "example.com/zone", "alias": "zone"},
                    {"nodeLabel": "kubernetes.io/hostname"},
                ]
            },
        },
    )
    cluster.put(
        PODGROUPS,
        group(
            "pg",
            minSubGroup=1,
            minMember=9,
            topologyConstraint={"topology": "t", "requiredTopologyLevel": "zone"},
            subGroups=[
                {"name": "head", "minMember": 1},
                {"name": "workers", "minSubGroup": 1},
                {
                    "name": "w0",
                    "parent": "Workers",
                    "minMember": 2,
                    "topologyConstraint": {
                        "topology": "t",
                        "preferredTopologyLevel": "kubernetes.io/hostname",
                    },
                },
            ],
        ),
    )
    label = "kai.scheduler/subgroup-name"
    cluster.put(
        PODS,
        pod("a", group="pg", labels={label: "w0"}),
        pod("b", group="pg", labels={label: "workers"}),
    )
    inputs = build(cluster).cluster
    assert inputs.topologies[0].levels == ("example.com/zone", "kubernetes.io/hostname")
    (only,) = inputs.pod_groups
    assert only.root == SubGroupInput(
        min_subgroups=1,
        topology=Constraint(topology="t", required_level="example.com/zone"),
        subgroups=(
            SubGroupInput(
                name="workers",
                min_subgroups=1,
                pod_sets=(
                    PodSetInput(
                        name="w0",
                        min_available=2,
                        topology=Constraint(topology="t", preferred_level="kubernetes.io/hostname"),
                    ),
                ),
            ),
        ),
        pod_sets=(PodSetInput(name="head", min_available=1),),
    )
    assert [task.name for task in only.tasks] == ["a"]
    assert [task.name for task in only.invalid_subgroup_tasks] == ["b"]


@pytest.mark.parametrize(
    "subgroups",
    [
        [{"name": "a", "minMember": 1}, {"name": "a", "minMember": 1}],
        [{"name": "a", "parent": "missing"}],
        [{"name": "a", "parent": "b"}, {"name": "b", "parent": "a"}],
    ],
)
def test_broken_subgroups_leave_one_pod_set(subgroups: list[dict[str, object]]) -> None:
    cluster = Cluster().put(PODGROUPS, group("pg", subGroups=subgroups))
    assert build(cluster).cluster.pod_groups[0].root == SubGroupInput(pod_sets=(PodSetInput(),))


def test_annotated_times_are_relative_to_the_cycle() -> None:
    cluster = Cluster().put(
        PODGROUPS,
        group(
            "pg",
            stalenessGracePeriod="-1s",
            preemptionDelay="5m",
            annotations={
                "kai.scheduler/last-start-timestamp": "2025-12-31T23:50:00Z",
                "kai.scheduler/stale-podgroup-timestamp": "not a time",
            },
        ),
    )
    (only,) = build(cluster).cluster.pod_groups
    assert (only.last_start, only.last_eviction, only.stale_since) == (-600, None, None)
    assert (only.staleness_grace_s, only.preemption_delay_s, only.created) == (-1, 300, 0)


def test_backed_off_group_is_left_out_until_its_pool_changes() -> None:
    condition = {"type": "UnschedulableOnNodePool", "nodePool": "default", "transitionID": "2"}
    older = {**condition, "nodePool": "a100", "transitionID": "1"}
    status = {"schedulingConditions": [condition, older]}
    cluster = Cluster().put(
        PODGROUPS,
        group("once", schedulingBackoff=1, status=status),
        group("forever", schedulingBackoff=-1, status=status),
    )
    assert [item.name for item in build(cluster).cluster.pod_groups] == ["forever"]
    moved = Cluster().put(
        PODGROUPS, group("once", schedulingBackoff=1, status=status, labels={POOL: "a100"})
    )
    assert [item.name for item in build(moved, partition_value="a100").cluster.pod_groups] == [
        "once"
    ]


def test_node_troubles() -> None:
    cluster = Cluster().put(
        NODES,
        node(
            "n1",
            unschedulable=True,
            taints=[{"key": "k", "effect": "NoSchedule"}],
            conditions=[
                {"type": "Ready", "status": "Unknown"},
                {"type": "DiskPressure", "status": "True"},
                {"type": "PIDPressure", "status": "False"},
            ],
        ),
        node(
            "n2",
            labels={"nvidia.com/gpu.memory": "17179869184", "nvidia.com/mig.strategy": "mixed"},
            allocatable={
                "nvidia.com/mig-1g.5gb": "7",
                "example.com/widget": "3",
                "ephemeral-storage": "1Ki",
            },
        ),
    )
    first, second = build(cluster).cluster.nodes
    assert (first.unschedulable, first.ready, first.pressures) == (True, False, ("DiskPressure",))
    assert [(taint.key, taint.effect) for taint in first.taints] == [("k", "NoSchedule")]
    assert (first.gpu_memory_mib, first.gpu_memory_known) == (100, False)
    assert (second.gpu_memory_mib, second.mig_enabled, second.mig_strategy) == (
        16300,
        True,
        "mixed",
    )
    assert second.allocatable == {
        "nvidia.com/mig-1g.5gb": 7.0,
        "example.com/widget": 3000.0,
        "ephemeral-storage": 1024.0,
    }


def test_rebuilding_reuses_what_did_not_change() -> None:
    cluster = Cluster().put(NODES, node("n1")).put(QUEUES, queue("q")).put(PODGROUPS, group("pg"))
    cluster.put(
        PODS, pod("a", group="pg", requests={"cpu": 1}), pod("b", group="pg", requests={"cpu": 1})
    )
    builder = SnapshotBuilder(ShardParams(), origin=NOW)
    before = builder.build(cluster.store.view(), NOW)
    cluster.put(PODS, pod("b", group="pg", requests={"cpu": 1}, node="n1", phase="Running"))
    after = builder.build(cluster.store.view(), NOW + 5)
    assert after.cluster.nodes[0] is before.cluster.nodes[0]
    assert after.cluster.queues[0] is before.cluster.queues[0]
    old, new = before.cluster.pod_groups[0].tasks, after.cluster.pod_groups[0].tasks
    assert new[0] is old[0]
    assert (old[1].status, new[1].status) == (TaskStatus.PENDING, TaskStatus.RUNNING)
    assert new[1].request is old[1].request is old[0].request
    assert new[1].constraints is old[0].constraints


def test_unreadable_request_leaves_only_that_pod_out() -> None:
    cluster = Cluster().put(NODES, node("n1")).put(PODGROUPS, group("pg"))
    cluster.put(PODS, pod("bad", group="pg", requests={"cpu": "lots"}), pod("good", group="pg"))
    assert list(statuses(build(cluster))) == ["good"]


def test_an_affinity_too_large_to_compare_leaves_only_that_pod_out() -> None:
    hosts = [f"host-{number}" for number in range(20_000)]
    expression = {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": hosts}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    cluster = Cluster().put(NODES, node("n1")).put(PODGROUPS, group("pg"))
    cluster.put(PODS, pod("bad", group="pg", affinity=affinity), pod("good", group="pg"))
    assert list(statuses(build(cluster))) == ["good"]

"""The message of a pod that nodes reject: every reason, from cluster objects to the pod's condition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kube.resources import (
    NODE_RESOURCE_TOPOLOGIES,
    NODES,
    PODGROUPS,
    PODS,
    RESOURCE_SLICES,
    SHARDS,
)
from tests.scheduler.explain.waiting_pod import NO_NODES, args, message_of_pod, queues, sits, wants
from tests.scheduler.load.objects import group, meta, node, pod
from tests.scheduler.loop.harness import Harness
from tests.scheduler.loop.harness import harness as open_harness

NIC = "example.com/nic"
MIG = "nvidia.com/mig-1g.5gb"
MEMORY_LABEL = {"nvidia.com/gpu.memory": "16000"}


@pytest.fixture
def harness() -> Iterator[Harness]:
    with open_harness() as opened:
        yield opened


# --------------------------------------------------------------------------------- too little room


@pytest.mark.parametrize(
    ("used_by_others", "pod_requests", "reason"),
    [
        ({"nvidia.com/gpu": "3"}, {"nvidia.com/gpu": "2"}, "resources: GPUs"),
        ({"cpu": "31"}, {"cpu": "2"}, "resources: CPU cores"),
        ({"memory": "127Gi"}, {"memory": "2Gi"}, "resources: memory"),
        ({NIC: "3"}, {NIC: "2"}, f"resources: {NIC}"),
    ],
)
def test_what_a_full_node_lacks(
    harness: Harness, used_by_others: dict[str, str], pod_requests: dict[str, str], reason: str
) -> None:
    has = {"cpu": "32", "memory": "128Gi", "pods": "110", "nvidia.com/gpu": "4", NIC: "4"}
    queues(harness).seed(NODES, node("n0", allocatable=has)).seed(
        PODS, sits("busy", used_by_others)
    )
    assert (
        message_of_pod(wants(harness, pod_requests))
        == f"{NO_NODES}: 1 node(s) didn't have enough {reason}."
    )


def test_all_lacking_resources_of_a_node_are_reported(harness: Harness) -> None:
    queues(harness).seed(NODES, node("n0", gpus=2))
    harness.seed(PODS, sits("busy", {"cpu": "30", "nvidia.com/gpu": "2"}))
    assert message_of_pod(wants(harness, {"cpu": "4", "nvidia.com/gpu": "1"})) == (
        f"{NO_NODES}: 1 node(s) didn't have enough resources: CPU cores. \n"
        "1 node(s) didn't have enough resources: GPUs."
    )


def test_a_mig_profile_that_is_used_up(harness: Harness) -> None:
    has = {"cpu": "32", "memory": "128Gi", "pods": "110", MIG: "2"}
    mixed = {"nvidia.com/mig.strategy": "mixed"}
    queues(harness).seed(NODES, node("n0", allocatable=has, labels=mixed))
    harness.seed(PODS, sits("busy", {MIG: "2"}))
    assert message_of_pod(wants(harness, {MIG: "1"})) == (
        f"{NO_NODES}: 1 node(s) didn't have enough of mig profile: nvidia.com/mig-1g.5gb."
    )


def test_more_device_memory_than_a_device_has(harness: Harness) -> None:
    queues(harness).seed(NODES, node("n0", labels=MEMORY_LABEL))
    assert message_of_pod(wants(harness, annotations={"gpu-memory": "20000"})) == (
        f"{NO_NODES}: 1 node(s) didn't have enough resources: GPU memory."
    )


OVERHEAD = {"cpu": "250m", "memory": "120Mi"}


def test_only_the_overhead_makes_a_pod_too_large(harness: Harness) -> None:
    queues(harness).seed(NODES, node("n0"), node("n1")).seed(PODS, sits("busy", {"cpu": "30"}))
    harness.seed(PODS, pod("full", node="n1", phase="Running", requests={"cpu": "31"}))
    assert message_of_pod(wants(harness, {"cpu": "2"}, overhead=OVERHEAD)) == (
        f"{NO_NODES}: 1 node(s) didn't have enough resources: CPU cores. \n"
        "1 node(s) didn't have enough resources: CPU cores. Not enough resources due to pod overhead "
        "resources. The overhead resources are  cpu: 250m memory: 120Mi."
    )


def test_overhead_of_a_fraction(harness: Harness) -> None:
    queues(harness).seed(NODES, node("n0", labels=MEMORY_LABEL)).seed(
        PODS, sits("busy", {"cpu": "30"})
    )
    half = {"gpu-fraction": "0.5"}
    assert message_of_pod(
        wants(harness, {"cpu": "2"}, annotations=half, overhead={"cpu": "1m"})
    ) == (
        f"{NO_NODES}: 1 node(s) didn't have enough resources: CPU cores. Not enough resources due to "
        "pod overhead resources. The overhead resources are  cpu: 1m."
    )


def test_overhead_is_not_blamed_where_more_is_missing(harness: Harness) -> None:
    queues(harness).seed(NODES, node("n0", gpus=1))
    harness.seed(PODS, sits("busy", {"cpu": "30", "nvidia.com/gpu": "1"}))
    assert message_of_pod(
        wants(harness, {"cpu": "2", "nvidia.com/gpu": "1"}, overhead=OVERHEAD)
    ) == (
        f"{NO_NODES}: 1 node(s) didn't have enough resources: CPU cores. \n"
        "1 node(s) didn't have enough resources: GPUs."
    )


def test_a_shared_device_needs_a_slot_for_its_reservation(harness: Harness) -> None:
    has = {"cpu": "32", "memory": "128Gi", "pods": "1", "nvidia.com/gpu": "4"}
    queues(harness).seed(NODES, node("n0", allocatable=has, labels=MEMORY_LABEL))
    assert message_of_pod(wants(harness, annotations={"gpu-fraction": "0.5"})) == (
        f"{NO_NODES}: 1 node(s) pod number exceeded."
    )


def test_the_queue_has_no_room_for_what_a_share_weighs_on_this_node(harness: Harness) -> None:
    queues(harness, quota=8, limit=0.3)
    harness.seed(NODES, node("n0", labels={"nvidia.com/gpu.memory": "400"}))
    harness.seed(NODES, node("big", gpus=1, labels={"nvidia.com/gpu.memory": "2000"}))
    harness.seed(PODS, pod("x", node="big", phase="Running", requests={"nvidia.com/gpu": "1"}))
    assert message_of_pod(wants(harness, annotations={"gpu-memory": "300"})) == (
        f"{NO_NODES}: 1 node does not have enough capacity. Reason: OverLimit, Details: The queue "
        "quota has reached the allowable limit of GPUs. Limit is 0.3 GPUs, currently 0 GPUs "
        "allocated and workload requested 0.75 GPUs. \n"
        "1 node(s) didn't have enough resources: GPUs."
    )


def test_and_the_same_for_work_that_cannot_be_preempted(harness: Harness) -> None:
    queues(harness, quota=0.3, limit=-1)
    harness.seed(NODES, node("n0", labels={"nvidia.com/gpu.memory": "400"}))
    harness.seed(NODES, node("big", gpus=1, labels={"nvidia.com/gpu.memory": "2000"}))
    harness.seed(PODS, pod("x", node="big", phase="Running", requests={"nvidia.com/gpu": "1"}))
    harness.seed(PODGROUPS, group("pg", preemptibility="non-preemptible"))
    harness.seed(PODS, pod("p", group="pg", annotations={"gpu-memory": "300"}))
    assert message_of_pod(harness) == (
        f"{NO_NODES}: 1 node does not have enough capacity. Reason: NonPreemptibleOverQuota, Details: "
        "Non-preemptible workload is over quota. Workload requested 0.75 GPUs, but The queue quota "
        "is 0.3 GPUs, while 0 GPUs are already allocated for non-preemptible pods. Use a preemptible "
        "workload to go over quota.. \n"
        "1 node(s) didn't have enough resources: GPUs."
    )


# ------------------------------------------------------------------------------------ kinds of GPU


def _mig_node(strategy: str) -> Any:
    has = {"cpu": "32", "memory": "128Gi", "pods": "110", "nvidia.com/gpu": "4", MIG: "2"}
    labels = {"nvidia.com/mig.strategy": strategy, **MEMORY_LABEL}
    return node("n0", allocatable=has, labels=labels)


def test_mig_by_annotation_is_served_nowhere(harness: Harness) -> None:
    queues(harness).seed(NODES, _mig_node("mixed"))
    assert message_of_pod(wants(harness, annotations={MIG: "1"})) == (
        f"{NO_NODES}: 1 Legacy MIG jobs cannot be scheduled on node n0."
    )


def test_mig_asks_for_a_mig_node(harness: Harness) -> None:
    stated = {"node-role.kubernetes.io/mig-enabled": "false"}
    has = {"cpu": "32", "memory": "128Gi", "pods": "110", MIG: "2"}
    queues(harness).seed(NODES, node("n0", allocatable=has, labels=stated))
    assert message_of_pod(wants(harness, {MIG: "1"})) == (
        f"{NO_NODES}: 1 MIG job cannot be scheduled on non-MIG node."
    )


def test_mig_keeps_away_from_mig_by_annotation(harness: Harness) -> None:
    queues(harness).seed(NODES, _mig_node("mixed"))
    harness.seed(PODGROUPS, group("old"))
    harness.seed(PODS, sits("old-0", group="old", annotations={MIG: "1"}))
    assert message_of_pod(wants(harness, {MIG: "1"})) == (
        f"{NO_NODES}: 1 MIG job cannot be scheduled on node with legacy MIG jobs: ns/old-0."
    )


@pytest.mark.parametrize(
    ("strategy", "reason"),
    [
        ("single", "only whole gpu jobs can run on a node with MigStrategy='single'"),
        ("mixed", "non MIG jobs cant run on a node with MigStrategy='mixed'"),
    ],
)
def test_fractions_keep_away_from_mig_nodes(harness: Harness, strategy: str, reason: str) -> None:
    queues(harness).seed(NODES, _mig_node(strategy))
    assert (
        message_of_pod(wants(harness, annotations={"gpu-fraction": "0.5"}))
        == f"{NO_NODES}: 1 {reason}."
    )


def test_fractions_keep_away_from_published_devices(harness: Harness) -> None:
    queues(harness).seed(NODES, node("n0", gpus=0, labels=MEMORY_LABEL))
    devices = [{"name": "gpu-0"}]
    spec = {
        "driver": "gpu.example.com",
        "nodeName": "n0",
        "pool": {"name": "n0"},
        "devices": devices,
    }
    harness.seed(RESOURCE_SLICES, {"metadata": meta("s"), "spec": spec})
    assert message_of_pod(wants(harness, annotations={"gpu-fraction": "0.5"})) == (
        f"{NO_NODES}: 1 fractional/shared GPU pods are not yet supported on DRA-only nodes."
    )


def test_device_memory_is_asked_of_a_node_that_does_not_say_how_much_it_has(
    harness: Harness,
) -> None:
    queues(harness).seed(NODES, node("n0"))
    assert message_of_pod(wants(harness, annotations={"gpu-memory": "50"})) == (
        f"{NO_NODES}: 1 node is not a gpu node or the gpu memory count on the node was not synced "
        "yet, task: <ns/p>, node: <n0>."
    )


def test_kinds_of_workers(harness: Harness) -> None:
    args(queues(harness), restrict_node_scheduling="true")
    harness.seed(NODES, node("n0", gpus=4, labels={"node-role.kubernetes.io/cpu-worker": ""}))
    assert message_of_pod(wants(harness, {"nvidia.com/gpu": "1"})) == (
        f"{NO_NODES}: 1 gpu task: <ns/p> can't run on non gpu nodes, node: <n0>."
    )


def test_kinds_of_workers_the_other_way_round(harness: Harness) -> None:
    args(queues(harness), restrict_node_scheduling="true")
    harness.seed(NODES, node("n0", labels={"node-role.kubernetes.io/gpu-worker": ""}))
    assert message_of_pod(wants(harness, {"cpu": "1"})) == (
        f"{NO_NODES}: 1 cpu task: <ns/p> can't run on non cpu nodes, node: <n0>."
    )


# ------------------------------------------------------------------------------- state of the node


def _condition(kind: str, status: str) -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": status}]}


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ({"unschedulable": True}, "node is unschedulable"),
        (_condition("Ready", "False"), "node has NotReady condition"),
        (_condition("Ready", "Unknown"), "node has NotReady condition"),
        (_condition("MemoryPressure", "True"), "node has MemoryPressure condition"),
        (_condition("DiskPressure", "True"), "node has DiskPressure condition"),
        (_condition("PIDPressure", "True"), "node has PIDPressure condition"),
        (_condition("NetworkUnavailable", "True"), "node has NetworkUnavailable condition"),
        (
            {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]},
            "node(s) had untolerated taint(s)",
        ),
    ],
)
def test_nodes_that_take_nobody(harness: Harness, state: dict[str, Any], reason: str) -> None:
    queues(harness).seed(NODES, node("n0", **state))
    assert message_of_pod(wants(harness, {"cpu": "1"})) == f"{NO_NODES}: 1 {reason}."


def test_host_ports_that_are_taken(harness: Harness) -> None:
    ports = [{"name": "main", "ports": [{"containerPort": 80, "hostPort": 80}]}]
    queues(harness).seed(NODES, node("n0")).seed(PODS, sits("web", containers=ports))
    assert message_of_pod(wants(harness, containers=ports)) == (
        f"{NO_NODES}: 1 node(s) didn't have free ports for the requested pod ports."
    )


def test_labels_of_the_node(harness: Harness) -> None:
    queues(harness).seed(NODES, node("n0"))
    assert message_of_pod(wants(harness, nodeSelector={"zone": "b"})) == (
        f"{NO_NODES}: 1 node(s) didn't match Pod's node affinity/selector."
    )


def _near(kind: str, label: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": label}}, "topologyKey": "host"}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


@pytest.mark.parametrize(
    ("mine", "theirs", "reason"),
    [
        (_near("podAffinity", "gone"), None, "node(s) didn't match pod affinity rules"),
        (_near("podAntiAffinity", "there"), None, "node(s) didn't match pod anti-affinity rules"),
        (
            None,
            _near("podAntiAffinity", "me"),
            "node(s) didn't satisfy existing pods anti-affinity rules",
        ),
    ],
)
def test_neighbours(
    harness: Harness, mine: dict[str, Any] | None, theirs: dict[str, Any] | None, reason: str
) -> None:
    queues(harness).seed(NODES, node("n0", labels={"host": "n0"}))
    harness.seed(PODGROUPS, group("there"))
    there = {"affinity": theirs} if theirs else {}
    harness.seed(PODS, sits("there-0", group="there", labels={"app": "there"}, **there))
    wanting = {"affinity": mine} if mine else {}
    assert (
        message_of_pod(wants(harness, labels={"app": "me"}, **wanting))
        == f"{NO_NODES}: 1 {reason}."
    )


def test_numa(harness: Harness) -> None:
    plugins = {"plugins": {"numa": {"enabled": True}}}
    queues(harness).seed(SHARDS, {"metadata": meta("default"), "spec": plugins})
    harness.seed(NODES, node("n0", gpus=4))
    harness.seed(
        NODE_RESOURCE_TOPOLOGIES,
        {
            "metadata": meta("n0"),
            "attributes": [{"name": "topologyManagerPolicy", "value": "single-numa-node"}],
            "zones": [
                {
                    "name": f"node-{index}",
                    "type": "Node",
                    "resources": [
                        {
                            "name": "nvidia.com/gpu",
                            "capacity": "2",
                            "allocatable": "2",
                            "available": "2",
                        }
                    ],
                }
                for index in range(2)
            ],
        },
    )
    assert message_of_pod(wants(harness, {"nvidia.com/gpu": "3"})) == (
        f"{NO_NODES}: 1 node cannot NUMA-align the pod's resources under its Topology Manager policy."
    )

"""The message of a pod group whose topology constraint cannot be met, short and long."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kube.resources import NODES, PODGROUPS, PODS, TOPOLOGIES
from tests.scheduler.explain.waiting_pod import args, message_of_group, queues, reasons
from tests.scheduler.load.objects import group, meta, node, pod
from tests.scheduler.loop.harness import Harness
from tests.scheduler.loop.harness import harness as open_harness

ONE_GPU = {"nvidia.com/gpu": "1"}
SUBGROUP = "kai.scheduler/subgroup-name"
NIC, MIG = "example.com/nic", "nvidia.com/mig-1g.5gb"


@pytest.fixture
def harness() -> Iterator[Harness]:
    with open_harness() as opened:
        yield opened


def with_racks(harness: Harness, *racks: str, **has: str) -> Harness:
    """Add a node in each rack of one zone, named after its rack."""
    levels = [{"nodeLabel": "zone"}, {"nodeLabel": "rack"}]
    harness.seed(TOPOLOGIES, {"metadata": meta("map"), "spec": {"levels": levels}})
    room = {"cpu": "8", "memory": "16G", "pods": "110", "nvidia.com/gpu": "1", **has}
    for rack in racks:
        harness.seed(NODES, node(rack, allocatable=room, labels={"zone": "z", "rack": rack}))
    return harness


def with_large_node(harness: Harness) -> Harness:
    """Add a node outside of the topology that has more of everything."""
    has = {"cpu": "64", "memory": "64G", "pods": "110", "nvidia.com/gpu": "8", NIC: "8", MIG: "8"}
    return harness.seed(NODES, node("large", allocatable=has))


def with_pod_group(
    harness: Harness, *requests: dict[str, str], level: str = "rack", name: str = "map"
) -> Harness:
    constraint = {"topology": name, "requiredTopologyLevel": level}
    harness.seed(PODGROUPS, group("pg", minMember=len(requests), topologyConstraint=constraint))
    return harness.seed(
        PODS, *(pod(f"p{n}", group="pg", requests=request) for n, request in enumerate(requests))
    )


NOT_MET = "topology map, requirement rack couldn't be satisfied for job <ns/pg>"


def test_a_topology_that_is_not_there(harness: Harness) -> None:
    with_racks(queues(harness), "r1")
    text = "PodSchedulingErrors: Requested topology nowhere does not exist."
    assert message_of_group(with_pod_group(harness, ONE_GPU, ONE_GPU, name="nowhere")) == text


def test_no_rack_takes_the_gang(harness: Harness) -> None:
    with_racks(queues(harness), "r1", "r2")
    assert message_of_group(with_pod_group(harness, ONE_GPU, ONE_GPU)) == (
        "Unable to schedule podgroup: node-group z.r1 can allocate only 1 of 2 required pods. \n"
        f"node-group z.r2 can allocate only 1 of 2 required pods. \n{NOT_MET}."
    )
    assert reasons(harness) == [
        (
            "Not enough resources for the workload",
            "node-group z.r1 can allocate only 1 of 2 required pods",
        ),
        (
            "Not enough resources for the workload",
            "node-group z.r2 can allocate only 1 of 2 required pods",
        ),
        ("PodSchedulingErrors", NOT_MET),
    ]


def test_the_smallest_domain_of_all_nodes_is_too_small(harness: Harness) -> None:
    with_racks(queues(harness), "r1", "r2")
    text = f"PodSchedulingErrors: {NOT_MET}: not enough resources in z to allocate the job."
    assert message_of_group(with_pod_group(harness, ONE_GPU, ONE_GPU, ONE_GPU)) == text


def test_the_whole_cluster_is_too_small(harness: Harness) -> None:
    with_racks(queues(harness), "r1")
    harness.seed(NODES, node("far", gpus=1, labels={"zone": "y", "rack": "r9"}))
    assert message_of_group(with_pod_group(harness, ONE_GPU, ONE_GPU, ONE_GPU)) == (
        f"PodSchedulingErrors: {NOT_MET}: not enough resources in the cluster to allocate the job."
    )


def test_a_subgroup_with_a_topology_constraint_of_its_own(harness: Harness) -> None:
    with_racks(queues(harness), "r1", "r2")
    constraint = {"topology": "map", "requiredTopologyLevel": "rack"}
    subgroups = [{"name": "work", "minMember": 2, "topologyConstraint": constraint}]
    harness.seed(PODGROUPS, group("pg", subGroups=subgroups))
    for n in range(2):
        harness.seed(PODS, pod(f"p{n}", group="pg", requests=ONE_GPU, labels={SUBGROUP: "work"}))
    assert message_of_group(harness) == (
        "Unable to schedule podgroup: node-group z.r1 can allocate only 1 of 2 required pods. \n"
        "node-group z.r2 can allocate only 1 of 2 required pods. \n"
        f"{NOT_MET}, subgroup work."
    )
    args(harness, detailed_fit_errors="true")
    assert message_of_group(harness) == (
        "\nUnable to schedule podgroup."
        "\n<z.r1>: subgroup work: node-group z.r1 can allocate only 1 of 2 required pods."
        "\n<z.r2>: subgroup work: node-group z.r2 can allocate only 1 of 2 required pods."
        f"\n{NOT_MET}, subgroup work."
    )


MIXED = [
    (
        {"nvidia.com/gpu": "2"},
        {NIC: "1"},
        "resources: GPUs",
        "resource: GPUs, requested: 2, available: 1",
    ),
    (
        {"cpu": "9500m", "nvidia.com/gpu": "1"},
        {"cpu": "1"},
        "resources: CPU cores",
        "resources: CPU cores, requested: 10.5, available: 8",
    ),
    (
        {"memory": "17.5G", "nvidia.com/gpu": "1"},
        {"memory": "1G"},
        "resources: memory",
        "resources: memory, requested: 18.5, available: 16",
    ),
    (
        {NIC: "5", "nvidia.com/gpu": "1"},
        {"cpu": "1"},
        f"resources: {NIC}",
        f"resource: {NIC}, requested: 5, available: 4",
    ),
    (
        {MIG: "3"},
        {"cpu": "1"},
        f"of mig profile: {MIG}",
        f"resource: {MIG}, requested: 3, available: 2",
    ),
]


@pytest.mark.parametrize(("large", "small", "short", "long"), MIXED)
def test_pods_that_differ_are_summed_up(
    harness: Harness, large: dict[str, str], small: dict[str, str], short: str, long: str
) -> None:
    with_large_node(with_racks(queues(harness), "r1", "r2", **{NIC: "4", MIG: "2"}))
    with_pod_group(harness, large, small)
    assert message_of_group(harness) == (
        f"Unable to schedule podgroup: 2 node-group(s) didn't have enough {short}. \n{NOT_MET}."
    )
    args(harness, detailed_fit_errors="true")
    assert message_of_group(harness) == (
        "\nUnable to schedule podgroup."
        f"\n<z.r1>: z.r1 didn't have enough {long}."
        f"\n<z.r2>: z.r2 didn't have enough {long}."
        f"\n{NOT_MET}."
    )


def test_all_that_one_domain_lacks_is_one_reason(harness: Harness) -> None:
    with_large_node(with_racks(queues(harness), "r1", "r2"))
    message_of_group(with_pod_group(harness, {"cpu": "9", "nvidia.com/gpu": "2"}, {"cpu": "1"}))
    lacking = (
        "node-group(s) didn't have enough resources: GPUs, "
        "node-group(s) didn't have enough resources: CPU cores"
    )
    assert reasons(harness) == [
        ("Not enough resources for the workload", lacking),
        ("Not enough resources for the workload", lacking),
        ("PodSchedulingErrors", NOT_MET),
    ]


def test_domains_with_room_that_running_pods_rule_out_are_not_named(
    harness: Harness,
) -> None:
    with_large_node(with_racks(queues(harness), "r1", "r2"))
    with_pod_group(harness, ONE_GPU)
    harness.seed(PODS, pod("home", group="pg", node="r1", phase="Running", requests=ONE_GPU))
    harness.cycle()
    (event,) = [text for _, reason, text in harness.events("pg") if reason == "Unschedulable"]
    assert event == (
        "Unable to schedule podgroup: node-group z.r1 can allocate only 0 of 1 required pods. \n"
        f"{NOT_MET}."
    )

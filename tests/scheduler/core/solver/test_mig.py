"""MIG slices: counted in every total, and taken only where the slice helps."""

from __future__ import annotations

import pytest

from scheduler.core.cluster.inputs import (
    PodSetInput,
    SubGroupInput,
    TaskRequest,
    TopologyConstraint,
    TopologyInput,
)
from scheduler.core.decisions import ActionName, Bind, Evict, Nominate, ReceivedType
from scheduler.core.plugins.proportion import cluster_total
from scheduler.core.session.session import Session
from scheduler.core.solver.room import GpuRoom
from tests.builders import ClusterBuilder, cluster

ALLOCATE, RECLAIM, PREEMPT = ActionName.ALLOCATE, ActionName.RECLAIM, ActionName.PREEMPT
CONSOLIDATION = ActionName.CONSOLIDATION
SMALL, LARGE = "nvidia.com/mig-1g.5gb", "nvidia.com/mig-3g.20gb"


def of(profile: str, count: float = 1) -> TaskRequest:
    return TaskRequest(cpu_milli=1.0, memory_bytes=1.0, mig=((profile, count),))


def mixed(built: ClusterBuilder, name: str, small: int, large: int, **labels: str) -> None:
    built.node(
        name,
        0,
        resources={SMALL: small, LARGE: large},
        mig_enabled=True,
        mig_strategy="mixed",
        labels=labels,
    )


def victims(session: Session) -> list[str]:
    return [item.task.name for item in session.decisions if isinstance(item, Evict)]


def places(session: Session) -> dict[str, str]:
    return {
        item.task.name: item.node
        for item in session.decisions
        if isinstance(item, (Bind, Nominate))
    }


def two_queues() -> ClusterBuilder:
    return cluster().queue("a", 1).queue("b", 3)


def test_slices_count_by_size_in_the_cluster_the_queue_and_the_room() -> None:
    built = two_queues()
    mixed(built, "n0", small=1, large=2)
    built.running("large", ["n0"], queue="a", request=of(LARGE))
    session = built.session()
    assert cluster_total(session.state, restrict=False)[2] == 7.0
    queue = session.state.queues.index_of["a"]
    assert session.policy.ledger.allocated[queue][2] == 3.0
    assert session.policy.ledger.requests[queue][2] == 3.0
    assert GpuRoom.of(session).gpus.tolist() == [4.0]


def test_devices_of_a_single_node_count_like_whole_ones() -> None:
    built = cluster().node("n0", 7, mig_enabled=True, mig_strategy="single").queue("a")
    session = (
        built.pending("whole", 1, gpus=2).pending("slice", 1, request=of(SMALL)).cycle(ALLOCATE)
    )
    assert places(session) == {"whole-0": "n0"}
    assert cluster_total(session.state, restrict=False)[2] == 7.0


def test_a_placed_slice_is_bound_as_one() -> None:
    built = cluster().queue("a")
    mixed(built, "n0", small=1, large=0)
    [bind] = built.pending("p", 1, request=of(SMALL)).cycle(ALLOCATE).decisions
    assert isinstance(bind, Bind)
    assert (bind.received_type, bind.gpu_groups) == (ReceivedType.MIG, ())


@pytest.mark.parametrize("mig_profile", [SMALL, LARGE])
def test_reclaim_takes_only_slices_that_the_reclaimer_can_use(mig_profile: str) -> None:
    built = two_queues()
    mixed(built, "n0", small=1, large=1)
    mixed(built, "n1", small=1, large=1)
    for node in ("n0", "n1"):
        built.running(f"large-{node}", [node], queue="a", request=of(LARGE))
        built.running(f"small-{node}", [node], queue="a", request=of(SMALL))
    session = built.pending("want", 1, queue="b", request=of(mig_profile)).cycle(RECLAIM)
    kind = "small" if mig_profile == SMALL else "large"
    assert victims(session) == [f"{kind}-n1-0"]
    assert places(session) == {"want-0": "n1"}


def test_a_larger_slice_is_no_room_for_a_smaller_one() -> None:
    built = two_queues()
    mixed(built, "n0", small=0, large=2)
    built.running("large", ["n0", "n0"], queue="a", minimum=1, request=of(LARGE))
    session = built.pending("want", 1, queue="b", request=of(SMALL)).cycle(RECLAIM)
    assert victims(session) == []


def test_a_gang_that_needs_one_rack_takes_its_slices_there_only() -> None:
    topology = TopologyInput(name="t", levels=("rack",))
    one_rack = SubGroupInput(
        topology=TopologyConstraint(topology="t", required_level="rack"),
        pod_sets=(PodSetInput(min_available=2),),
    )
    built = two_queues().having(topologies=(topology,))
    for name, rack in (("n0", "r0"), ("n1", "r0"), ("n2", "r1")):
        mixed(built, name, small=1, large=1, rack=rack)
        built.running(f"large-{name}", [name], queue="a", request=of(LARGE))
        built.running(f"small-{name}", [name], queue="a", request=of(SMALL))
    built.pending("gang", 2, queue="b", request=of(SMALL), root=one_rack)
    session = built.cycle(RECLAIM)
    assert sorted(victims(session)) == ["small-n0-0", "small-n1-0"]
    assert sorted(places(session).values()) == ["n0", "n1"]


def test_in_a_required_rack_too_a_victim_without_the_right_slice_stays() -> None:
    topology = TopologyInput(name="t", levels=("rack",))
    one_rack = SubGroupInput(
        topology=TopologyConstraint(topology="t", required_level="rack"),
        pod_sets=(PodSetInput(min_available=1),),
    )
    built = cluster().queue("a", 1, weight=0, priority=200).queue("b", 3, weight=0)
    built.having(topologies=(topology,))
    mixed(built, "n0", small=1, large=1, rack="r0")
    built.running("large", ["n0"], queue="a", request=of(LARGE))
    built.running("small", ["n0"], queue="a", request=of(SMALL))
    built.pending("want", 1, queue="b", request=of(LARGE), root=one_rack)
    # Without `small` queue a would hold nothing, and take the large slice back before b's turn.
    assert victims(built.cycle(RECLAIM)) == ["large-0"]


def test_consolidation_moves_slices_of_one_profile_only() -> None:
    built = cluster().queue("a")
    mixed(built, "n0", small=2, large=1)
    mixed(built, "n1", small=2, large=1)
    for node in ("n0", "n1"):
        built.running(f"small-{node}", [node], request=of(SMALL))
        built.running(f"large-{node}", [node], request=of(LARGE))
    session = built.pending("pair", 1, request=of(SMALL, 2)).cycle(CONSOLIDATION)
    assert victims(session) == ["small-n1-0"]
    assert places(session) == {"small-n1-0": "n0", "pair-0": "n1"}

"""Filters and bounds: what passes, what is refused, and that what is refused could not succeed."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler.core.cluster.constraints import (
    Expression,
    LabelSelector,
    NodeTerm,
    Operator,
    PodTerm,
    TaskConstraints,
)
from scheduler.core.cluster.inputs import (
    PodGroupInput,
    PodSetInput,
    SubGroupInput,
    TaskInput,
    TopologyConstraint,
    TopologyInput,
)
from scheduler.core.placement.place import Placer
from scheduler.core.session.session import Session
from scheduler.core.solver.bounds import Places, has_topology_constraint, is_hopeless, may_fit
from scheduler.core.solver.demand import ProbeDemand, tasks_fitting
from scheduler.core.solver.filters import VictimFilters
from scheduler.core.solver.room import GpuRoom
from scheduler.core.solver.slots import LocalGpuBound
from scheduler.core.solver.victims import VictimPool, VictimSequence
from tests.builders import ClusterBuilder, cluster, request


def demand(session: Session, name: str = "want", size: int | None = None) -> ProbeDemand:
    group = next(
        i for i, pod_group in enumerate(session.state.pod_groups.inputs) if pod_group.name == name
    )
    view = session.view(group)
    chunk = view.next_chunk(include_evicted=True)
    return ProbeDemand(session, view, chunk[:size])


def filters(session: Session, probe_demand: ProbeDemand) -> VictimFilters:
    return VictimFilters(session, probe_demand, GpuRoom.of(session).gpus)


def places(session: Session, probe_demand: ProbeDemand, settled=(), *, may_lose=True) -> Places:
    task = probe_demand.tasks[0]
    rules = Placer(session).rules(session.state.tasks.task_class[task], task)
    return Places(session, rules, probe_demand, settled, may_lose=may_lose)


def hopeless(session: Session, size: int | None = None, takeable: float = np.inf) -> bool:
    probe_demand = demand(session, size=size)
    room = GpuRoom.of(session).gpus
    return is_hopeless(
        session, places(session, probe_demand), probe_demand, room, batches(session), takeable
    )


def on_node(session: Session, node: int) -> list[int]:
    return [task for task, there in enumerate(session.state.tasks.node) if there == node]


def full(gpus: float = 4) -> ClusterBuilder:
    built = cluster().node("n0", gpus).node("n1", gpus).queue("a")
    for node in ("n0", "n1"):
        for number in range(int(gpus)):
            built.running(f"{node}-{number}", [node])
    return built


def batches(session: Session):
    pool = VictimPool(session)
    return VictimSequence(session, pool, pool.leaves, lambda _: True).all()


def test_equal_whole_devices_need_nodes_with_enough_of_them() -> None:
    session = full().pending("want", 2, gpus=2).session()
    test = filters(session, demand(session))
    assert not test.passes()
    test.add([0, 1], [1.0, 1.0])
    assert not test.passes()
    test.add([0], [1.0])
    assert not test.passes()
    test.add([0, 0], [1.0, 1.0])
    assert test.passes()
    assert test.rejected == 3


def bound_of(session: Session, *groups: str) -> LocalGpuBound:
    bound = LocalGpuBound.make(session, demand(session), GpuRoom.of(session).gpus)
    assert bound is not None
    names = session.state.pod_groups.name
    for batch in batches(session):
        if names(batch.pod_group).rpartition("/")[2] in groups:
            bound.add(batch)
    return bound


def test_a_node_is_ruled_out_while_its_own_victims_free_too_few_gpus() -> None:
    session = full().pending("want", gpus=2).session()
    bound = bound_of(session, "n0-0", "n1-0", "n1-1")
    assert [bound.may_fit(node) for node in (0, 1)] == [False, True]


def test_room_elsewhere_counts_for_a_demand_of_several_tasks() -> None:
    session = full().node("n2", 2).pending("want", 2, gpus=2).session()
    assert bound_of(session, "n0-0", "n0-1").may_fit(0)
    assert not bound_of(session, "n0-0").may_fit(0)


def test_the_nodes_of_a_pod_group_on_several_nodes_are_never_ruled_out() -> None:
    built = cluster().node("n0", 2).node("n1", 2).queue("a").running("both", ["n0", "n1"])
    session = built.running("r0", ["n0"]).running("r1", ["n1"]).pending("want", gpus=2).session()
    bound = bound_of(session, "both")
    assert [bound.may_fit(node) for node in (0, 1)] == [True, True]


def test_different_sizes_are_matched_largest_first() -> None:
    built = full().pending("want", 1, gpus=3)
    session = built.pending("other", 1, gpus=1).session()
    probe_demand = demand(session)
    probe_demand.gpus_per_task = 0.0
    probe_demand.gpus = [3.0, 1.0]
    test = filters(session, probe_demand)
    test.add([0, 1], [3.0, 0.5])
    assert not test.passes()
    test.add([1], [0.5])
    assert test.passes()


def test_an_empty_demand_passes() -> None:
    session = full().pending("want", 1, request=request(0)).session()
    assert filters(session, demand(session)).passes()


def test_a_task_that_names_its_node_needs_it_in_play() -> None:
    only_n1 = TaskConstraints(
        node_affinity=(
            NodeTerm(labels=(Expression(key="name", operator=Operator.IN, values=("n1",)),)),
        )
    )
    built = cluster().node("n0", 1, labels={"name": "n0"}).node("n1", 1, labels={"name": "n1"})
    built.queue("a").running("r0", ["n0"]).running("r1", ["n1"])
    session = built.pending("want", constraints=only_n1).session()
    test = filters(session, demand(session))
    test.add([0], [1.0])
    assert not test.passes()
    test.add([1], [1.0])
    assert test.passes()


def racks(pods: int, gpus: float = 1) -> Session:
    built = cluster().queue("a").having(topologies=(TopologyInput(name="t", levels=("rack",)),))
    for number in range(4):
        built.node(f"n{number}", 2, labels={"rack": f"r{number // 2}"})
        built.running(f"r{number}", [f"n{number}"], gpus=2)
    constraint = TopologyConstraint(topology="t", required_level="rack")
    root = SubGroupInput(topology=constraint, pod_sets=(PodSetInput(min_available=pods),))
    return built.pending("want", pods, gpus=gpus, root=root).session()


def test_a_gang_confined_to_a_rack_needs_one_with_enough() -> None:
    session = racks(3)
    test = filters(session, demand(session))
    test.add([0, 2], [2.0, 2.0])
    assert not test.passes()
    test.add([1], [2.0])
    assert test.passes()


def test_no_rack_is_large_enough_for_the_gang() -> None:
    assert hopeless(racks(5))
    assert not hopeless(racks(4))


def test_not_enough_even_without_any_victim_left() -> None:
    session = full().pending("want", 3, gpus=3).session()
    assert hopeless(session)
    assert not hopeless(session, size=2)


def test_rules_that_let_too_little_go_make_it_hopeless() -> None:
    session = full().pending("want", 2, gpus=2).session()
    assert hopeless(session, takeable=4.0)
    assert not hopeless(session, takeable=4.5)


def repelling(pods: int, **selector) -> Session:
    term = PodTerm(topology_key="rack", selector=LabelSelector(**selector))
    built = cluster().queue("a")
    for number in range(4):
        built.node(f"n{number}", 1, labels={"rack": f"r{number // 2}"})
        built.running(f"r{number}", [f"n{number}"])
    return built.pending(
        "want",
        pods,
        constraints=TaskConstraints(pod_anti_affinity=(term,)),
        task={"labels": {"app": "x"}},
    ).session()


def test_tasks_that_repel_each_other_need_as_many_domains() -> None:
    mine = {"expressions": (Expression(key="app", operator=Operator.IN, values=("x",)),)}
    assert hopeless(repelling(3, **mine))
    assert not hopeless(repelling(2, **mine))


@pytest.mark.parametrize(
    "selector",
    [
        {"expressions": (Expression(key="app", operator=Operator.IN, values=("y",)),)},
        {"expressions": ()},
        {"nothing": True},
    ],
)
def test_tasks_that_repel_others_do_not(selector) -> None:
    assert not hopeless(repelling(3, **selector))


def test_places_are_counted_per_node() -> None:
    session = full().pending("want", 2, gpus=2).session()
    probe_demand = demand(session)
    node_places = places(session, probe_demand)
    first, second = on_node(session, 0), on_node(session, 1)
    assert not may_fit(node_places, probe_demand, [first[0], second[0]])
    assert not may_fit(node_places, probe_demand, first[:3])
    assert may_fit(node_places, probe_demand, first)
    assert may_fit(node_places, probe_demand, [*first[:2], *second[:2]])
    assert may_fit(places(session, probe_demand, settled=first[:2]), probe_demand, second[:2])
    assert not may_fit(places(session, probe_demand, settled=first[:2]), probe_demand, second[:1])


def test_a_victim_that_must_move_needs_a_place_as_well() -> None:
    """Two GPUs are free on one node, one on another; a pod of two waits, and one like it runs there."""
    built = cluster().nodes(2, 4).queue("a")
    built.running("same", ["n0"], gpus=2).running("other", ["n0"], gpus=1)
    built.running("small", ["n1", "n1", "n1"], gpus=1)
    session = built.pending("want", gpus=2).session()
    probe_demand = demand(session)
    same, other = on_node(session, 0)
    assert may_fit(places(session, probe_demand), probe_demand, [same])
    assert not may_fit(places(session, probe_demand, may_lose=False), probe_demand, [same])
    assert not may_fit(places(session, probe_demand, [same], may_lose=False), probe_demand, [])
    assert may_fit(places(session, probe_demand, may_lose=False), probe_demand, [other])
    assert may_fit(
        places(session, probe_demand, [same], may_lose=False), probe_demand, on_node(session, 1)
    )


def test_every_resource_counts() -> None:
    built = cluster().node("n0", 4, cpu=4).queue("a")
    built.running("r0", ["n0"], request=request(1, cpu=2)).running(
        "r1", ["n0"], request=request(1, cpu=2)
    )
    session = built.pending("want", request=request(1, cpu=3)).session()
    probe_demand = demand(session)
    assert not may_fit(places(session, probe_demand), probe_demand, [0])
    assert may_fit(places(session, probe_demand), probe_demand, [0, 1])
    assert not hopeless(session)
    larger = built.pending("want-more", 2, request=request(1, cpu=3)).session()
    both = demand(larger, "want-more")
    assert is_hopeless(
        larger, places(larger, both), both, GpuRoom.of(larger).gpus, batches(larger), np.inf
    )


def test_nodes_the_rules_exclude_have_no_places() -> None:
    only_n1 = TaskConstraints(node_selector=(("name", "n1"),))
    built = cluster().node("n0", 1, labels={"name": "n0"}).node("n1", 1, labels={"name": "n1"})
    built.queue("a").running("r0", ["n0"]).running("r1", ["n1"])
    session = built.pending("want", constraints=only_n1).session()
    probe_demand = demand(session)
    assert not may_fit(places(session, probe_demand), probe_demand, on_node(session, 0))
    assert may_fit(places(session, probe_demand), probe_demand, on_node(session, 1))


def test_a_share_may_free_its_whole_device() -> None:
    built = cluster().node("n0", 2).queue("a")
    built.running("half", ["n0"], gpus=0.5, gpu_groups=[("g",)])
    session = built.pending("want", gpus=2).session()
    probe_demand = demand(session)
    assert not may_fit(places(session, probe_demand), probe_demand, [])
    assert may_fit(places(session, probe_demand), probe_demand, [0])
    assert not hopeless(session, takeable=0.0)
    assert GpuRoom.of(session).gpus.tolist() == [1.5]


def test_shares_and_mixed_chunks_are_left_to_the_trial() -> None:
    session = full().pending("want", gpus=0.5).session()
    probe_demand = demand(session)
    assert not places(session, probe_demand).is_known
    assert may_fit(places(session, probe_demand), probe_demand, [])
    assert not hopeless(session)


def test_room_follows_what_is_touched() -> None:
    session = full().session()
    assert GpuRoom.of(session).gpus.tolist() == [0.0, 0.0]
    session.state.nodes.idle_rows[2][1] = 3.0
    session.state.nodes.touched.append(1)
    assert GpuRoom.of(session).gpus.tolist() == [0.0, 3.0]


def test_a_part_of_a_chunk_is_a_gang_of_its_own() -> None:
    session = full().pending("want", 4).session()
    probe_demand = demand(session, size=3)
    assert tuple(probe_demand.view.next_chunk(include_evicted=True)) == probe_demand.tasks
    assert len(probe_demand.tasks) == 3
    assert (probe_demand.gpus_per_task, probe_demand.total_gpus, probe_demand.required[2]) == (
        1.0,
        3.0,
        3.0,
    )


def test_a_part_of_nested_subgroups_lowers_what_they_require() -> None:
    leaf = lambda name: PodSetInput(name=name, min_available=1)  # noqa: E731
    root = SubGroupInput(
        subgroups=(
            SubGroupInput(name="left", pod_sets=(leaf("l0"), leaf("l1"))),
            SubGroupInput(name="right", pod_sets=(leaf("r0"),)),
        )
    )
    built = full()
    tasks = tuple(
        TaskInput(name=name, uid=name, subgroup=name, request=request(1))
        for name in ("l0", "l1", "r0")
    )
    built.group(PodGroupInput(name="want", uid="want", queue="a", root=root, tasks=tasks))
    session = built.session()
    for size in (1, 2, 3):
        probe_demand = demand(session, size=size)
        assert tuple(probe_demand.view.next_chunk(include_evicted=True)) == probe_demand.tasks
        assert len(probe_demand.tasks) == size


def test_units_forgive_noise() -> None:
    assert tasks_fitting(2.9999999, 1.0) == 3
    assert tasks_fitting(-1.0, 1.0) == 0
    assert tasks_fitting(7.5, 2.0) == 3


def test_where_a_tree_has_topology_constraintes() -> None:
    constraint = TopologyConstraint(topology="t", required_level="rack")
    plain = SubGroupInput(pod_sets=(PodSetInput(),))
    inner = SubGroupInput(
        subgroups=(SubGroupInput(name="g", pod_sets=(PodSetInput(topology=constraint),)),)
    )
    for root, expected in ((plain, False), (inner, True)):
        session = full().pending("want", 1, root=root).session()
        assert (
            has_topology_constraint(session.view(session.state.pod_groups.pending.index(1)).root)
            is expected
        )

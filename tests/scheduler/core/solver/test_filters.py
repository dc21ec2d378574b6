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
from scheduler.core.session.session import Session
from scheduler.core.solver.bounds import PlacesBound, has_topology_wish, is_hopeless
from scheduler.core.solver.demand import Demand, whole_units
from scheduler.core.solver.filters import VictimFilters
from scheduler.core.solver.room import GpuRoom
from scheduler.core.solver.victims import VictimPool, VictimSequence
from tests.builders import ClusterBuilder, cluster, request


def demand(session: Session, name: str = "want", size: int | None = None) -> Demand:
    group = next(i for i, one in enumerate(session.state.groups.inputs) if one.name == name)
    view = session.view(group)
    chunk = view.next_chunk(real=False)
    return Demand(session, view, chunk[:size])


def filters(session: Session, wanted: Demand) -> VictimFilters:
    return VictimFilters(session, wanted, GpuRoom.of(session).gpus)


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


def test_different_sizes_are_matched_largest_first() -> None:
    built = full().pending("want", 1, gpus=3)
    session = built.pending("other", 1, gpus=1).session()
    wanted = demand(session)
    wanted.unit = 0.0
    wanted.gpus = [3.0, 1.0]
    test = filters(session, wanted)
    test.add([0, 1], [3.0, 0.5])
    assert not test.passes()
    test.add([1], [0.5])
    assert test.passes()


def test_a_want_of_nothing_passes() -> None:
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
    wish = TopologyConstraint(topology="t", required_level="rack")
    root = SubGroupInput(topology=wish, pod_sets=(PodSetInput(min_available=pods),))
    return built.pending("want", pods, gpus=gpus, root=root).session()


def test_a_gang_confined_to_a_rack_needs_one_with_enough() -> None:
    session = racks(3)
    test = filters(session, demand(session))
    test.add([0, 2], [2.0, 2.0])
    assert not test.passes()
    test.add([1], [2.0])
    assert test.passes()


def test_no_rack_is_large_enough_for_the_gang() -> None:
    session = racks(5)
    room = GpuRoom.of(session).gpus
    assert is_hopeless(session, demand(session), room, batches(session), np.inf)
    smaller = racks(4)
    room = GpuRoom.of(smaller).gpus
    assert not is_hopeless(smaller, demand(smaller), room, batches(smaller), np.inf)


def test_not_enough_even_without_any_victim_left() -> None:
    session = full().pending("want", 3, gpus=3).session()
    room = GpuRoom.of(session).gpus
    assert is_hopeless(session, demand(session), room, batches(session), np.inf)
    assert not is_hopeless(session, demand(session, size=2), room, batches(session), np.inf)


def test_rules_that_let_too_little_go_make_it_hopeless() -> None:
    session = full().pending("want", 2, gpus=2).session()
    room = GpuRoom.of(session).gpus
    assert is_hopeless(session, demand(session), room, batches(session), 4.0)
    assert not is_hopeless(session, demand(session), room, batches(session), 4.5)


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
    three = repelling(3, **mine)
    assert is_hopeless(three, demand(three), GpuRoom.of(three).gpus, batches(three), np.inf)
    two = repelling(2, **mine)
    assert not is_hopeless(two, demand(two), GpuRoom.of(two).gpus, batches(two), np.inf)


@pytest.mark.parametrize(
    "selector",
    [
        {"expressions": (Expression(key="app", operator=Operator.IN, values=("y",)),)},
        {"expressions": ()},
        {"nothing": True},
    ],
)
def test_tasks_that_repel_others_do_not(selector) -> None:
    session = repelling(3, **selector)
    room = GpuRoom.of(session).gpus
    assert not is_hopeless(session, demand(session), room, batches(session), np.inf)


def test_places_are_counted_per_node() -> None:
    session = full().pending("want", 2, gpus=2).session()
    wanted = demand(session)
    bound = PlacesBound(session, wanted, GpuRoom.of(session).gpus)
    on = lambda node: [t for t, n in enumerate(session.state.tasks.node) if n == node]  # noqa: E731
    assert not bound.allows([*on(0)[:1], *on(1)[:1]])
    assert not bound.allows(on(0)[:3])
    assert bound.allows(on(0))
    assert bound.allows([*on(0)[:2], *on(1)[:2]])


def test_shared_devices_are_left_to_the_trial() -> None:
    built = cluster().node("n0", 2).queue("a")
    built.running("half", ["n0"], gpus=0.5, gpu_groups=[("g",)])
    session = built.pending("want", gpus=2).session()
    wanted = demand(session)
    assert PlacesBound(session, wanted, GpuRoom.of(session).gpus).allows([])
    assert not is_hopeless(session, wanted, GpuRoom.of(session).gpus, [], 0.0)
    assert GpuRoom.of(session).gpus.tolist() == [1.5]


def test_room_follows_what_is_touched() -> None:
    session = full().session()
    assert GpuRoom.of(session).gpus.tolist() == [0.0, 0.0]
    session.state.nodes.idle_rows[2][1] = 3.0
    session.state.nodes.touched.append(1)
    assert GpuRoom.of(session).gpus.tolist() == [0.0, 3.0]


def test_a_part_of_a_chunk_is_a_gang_of_its_own() -> None:
    session = full().pending("want", 4).session()
    wanted = demand(session, size=3)
    assert tuple(wanted.view.next_chunk(real=False)) == wanted.tasks
    assert len(wanted.tasks) == 3
    assert (wanted.unit, wanted.total_gpus, wanted.required[2]) == (1.0, 3.0, 3.0)


def test_a_part_of_nested_subgroups_lowers_what_they_require() -> None:
    leaf = lambda name: PodSetInput(name=name, min_available=1)  # noqa: E731
    root = SubGroupInput(
        groups=(
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
        wanted = demand(session, size=size)
        assert tuple(wanted.view.next_chunk(real=False)) == wanted.tasks
        assert len(wanted.tasks) == size


def test_units_forgive_noise() -> None:
    assert whole_units(2.9999999, 1.0) == 3
    assert whole_units(-1.0, 1.0) == 0
    assert whole_units(7.5, 2.0) == 3


def test_where_a_tree_has_topology_wishes() -> None:
    wish = TopologyConstraint(topology="t", required_level="rack")
    plain = SubGroupInput(pod_sets=(PodSetInput(),))
    inner = SubGroupInput(groups=(SubGroupInput(name="g", pod_sets=(PodSetInput(topology=wish),)),))
    for root, expected in ((plain, False), (inner, True)):
        session = full().pending("want", 1, root=root).session()
        assert (
            has_topology_wish(session.view(session.state.groups.pending.index(1)).root) is expected
        )

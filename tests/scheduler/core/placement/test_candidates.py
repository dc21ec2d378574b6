"""The kept order of nodes equals what a plain loop over all nodes finds, whatever happened before."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.cluster.constraints import NO_CONSTRAINTS, HostPort, TaskConstraints
from scheduler.core.cluster.status import ACTIVE_ALLOCATED
from scheduler.core.config import DEFAULT_PLUGINS, PluginConfig, SchedulerConfig
from scheduler.core.decisions import ActionName, EvictReason
from scheduler.core.placement.candidates import Candidates
from scheduler.core.placement.place import Placer
from scheduler.core.placement.room import FREE, NONE, room_on
from scheduler.core.plugins.placement_strategy import NodePlacementArguments
from scheduler.core.session.nodeset import NodeSet
from scheduler.core.session.session import Session
from scheduler.core.session.statement import Statement
from tests.builders import cluster, request

REASON = EvictReason(ActionName.RECLAIM)
SPREAD = SchedulerConfig(
    plugins=tuple(
        PluginConfig("nodeplacement", NodePlacementArguments(cpu="spread", gpu="spread"))
        if plugin.name == "nodeplacement"
        else plugin
        for plugin in DEFAULT_PLUGINS
    )
)


def plain_scores(session: Session, task: int, chosen: list[int]) -> dict[int, float]:
    """Score the nodes of a set one by one, straight from the rules."""
    nodes, task_class = session.state.nodes, session.state.tasks.task_class[task]
    row = 0 if task_class.is_cpu_only else 2
    strategy = session.hooks.placement
    assert strategy is not None
    binpack = strategy.cpu_binpack if task_class.is_cpu_only else strategy.gpu_binpack
    amounts = {n: float(nodes.idle[row, n] + nodes.releasing[row, n]) for n in chosen}
    counted = [amounts[n] for n in chosen if nodes.allocatable[row, n] != 0]
    low, high = min(counted, default=0.0), max(counted, default=0.0)
    scores = {}
    for node in chosen:
        room = room_on(nodes, task_class, task_class.must_be_free, node)
        if room == NONE or nodes.inputs[node].unschedulable:
            continue
        score = 1000.0 if room == FREE else 0.0
        if task_class.is_cpu_only and nodes.allocatable[2, node] == 0:
            score += 10.0 + session.hooks.sharing_weight
        if nodes.allocatable[row, node] != 0:
            if not binpack:
                total = nodes.gpu_count[node] if row == 2 else float(nodes.allocatable[row, node])
                score += amounts[node] / total
            elif high and low == high:
                score += 9.0
            elif high:
                score += 9.0 * (1 - (amounts[node] - low) / (high - low))
        scores[node] = score
    return scores


def in_plain_order(scores: dict[int, float]) -> list[int]:
    return sorted(scores, key=lambda node: (-scores[node], node))


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    sizes=st.lists(st.sampled_from([0, 1, 2, 4, 8]), min_size=1, max_size=20),
    closed=st.sets(st.integers(0, 19)),
    steps=st.lists(st.tuples(st.booleans(), st.integers(0, 99)), max_size=20),
    spread=st.booleans(),
    part=st.sets(st.integers(0, 19), min_size=1),
)
def test_candidates_equal_a_plain_loop(
    sizes: list[int],
    closed: set[int],
    steps: list[tuple[bool, int]],
    spread: bool,
    part: set[int],
) -> None:
    built = cluster()
    for number, size in enumerate(sizes):
        built.node(f"n{number:02}", gpus=size, cpu=4 + size, unschedulable=number in closed)
    for number in range(8):
        built.pending(f"gpu{number}", gpus=1 + number % 3)
        built.pending(f"cpu{number}", request=request(0, cpu=1 + number % 4))
    session = built.session(SPREAD if spread else None)
    placer = Placer(session)
    chosen = sorted(n for n in part if n < len(sizes))
    sets = [session.all_nodes] + ([NodeSet.of(chosen)] if chosen else [])
    kept_candidates = [
        Candidates(
            session,
            session.state.tasks.task_class[task],
            placer.rules(session.state.tasks.task_class[task], task),
            nodes,
            task,
        )
        for task in (0, 1, 2)
        for nodes in sets
    ]
    statement = Statement(session, ActionName.RECLAIM)
    for evict, number in steps:
        _step(session, placer, statement, evict, number)
        for place, candidates in enumerate(kept_candidates):
            if (number + place) % 3:
                continue
            task, nodes = (0, 1, 2)[place // len(sets)], sets[place % len(sets)]
            scores = plain_scores(session, task, nodes.indices.tolist())
            assert list(candidates.in_order()) == in_plain_order(scores)
            best = candidates.best()
            assert best == (in_plain_order(scores) or [-1])[0]
            if best >= 0:
                task_class = session.state.tasks.task_class[task]
                needs = task_class.must_be_free
                room = room_on(session.state.nodes, task_class, needs, best)
                assert candidates.is_free(best) == (room == FREE)
    statement.discard()
    for place, candidates in enumerate(kept_candidates):
        task, nodes = (0, 1, 2)[place // len(sets)], sets[place % len(sets)]
        scores = plain_scores(session, task, nodes.indices.tolist())
        assert list(candidates.in_order()) == in_plain_order(scores)


def _step(session: Session, placer: Placer, statement: Statement, evict: bool, number: int) -> None:
    tasks = session.state.tasks
    if evict:
        able = [
            t for t in range(len(tasks)) if ACTIVE_ALLOCATED[tasks.status[t]] and tasks.node[t] >= 0
        ]
        able = [t for t in able if tasks.left_node[t] < 0 and tasks.status[t] != 3]
        if able:
            statement.evict(able[number % len(able)], REASON)
        return
    view = session.view(number % len(session.state.pod_groups))
    placer.place(
        statement,
        view,
        view.next_chunk(include_evicted=False),
        session.all_nodes,
        nominate_only=number % 5 == 0,
    )


def test_an_empty_set_has_no_best_node() -> None:
    session = cluster().node("n").pending("p").session()
    task_class = session.state.tasks.task_class[0]
    rules = Placer(session).rules(task_class, 0)
    none = Candidates(session, task_class, rules, NodeSet.of([]), 0)
    assert none.best() == -1
    assert list(none.in_order()) == []


def test_extra_scores_order_nodes_and_drop_those_without() -> None:
    import numpy as np

    session = cluster().nodes(3).pending("p").session()
    task_class = session.state.tasks.task_class[0]
    rules = Placer(session).rules(task_class, 0)
    nodes = NodeSet(session.all_nodes.indices, None, np.array([1.0, np.nan, 5.0]))
    assert list(Candidates(session, task_class, rules, nodes, 0).in_order()) == [2, 0]


def test_scores_are_finite_for_nodes_without_the_resource() -> None:
    session = cluster().node("a", gpus=0).node("b").pending("p", request=request(0)).session()
    task_class = session.state.tasks.task_class[0]
    kept_candidates = Candidates(
        session, task_class, Placer(session).rules(task_class, 0), session.all_nodes, 0
    )
    assert kept_candidates.best() == 0
    assert inf not in kept_candidates._value.tolist()


def test_a_run_of_equal_tasks_goes_where_asking_anew_each_time_would_send_it() -> None:
    built = cluster()
    for number, size in enumerate([8, 3, 8, 5, 0]):
        built.node(f"n{number}", gpus=size, cpu=7)
    for number in range(24):
        built.pending(f"p{number}", request=request(1))
    session = built.session()
    placer = Placer(session)
    task_class = session.state.tasks.task_class[0]
    kept_candidates = Candidates(
        session, task_class, placer.rules(task_class, 0), session.all_nodes, 0
    )
    for task in range(23):
        expected = (in_plain_order(plain_scores(session, task, list(range(5)))) or [-1])[0]
        assert kept_candidates.best() == expected
        if expected < 0:
            break
        statement = Statement(session, ActionName.ALLOCATE)
        statement.allocate(task, expected)
        statement.keep()
    assert session.state.nodes.idle[2].tolist() == [1.0, 0.0, 1.0, 0.0, 0.0]


def test_sizes_of_one_kind_share_what_does_not_depend_on_size() -> None:
    built = cluster().nodes(2)
    for number in range(3):
        built.pending(f"p{number}", request=request(1, cpu=1 + number))
    session = built.pending("other", request=request(0)).session()
    placer = Placer(session)
    rules = [
        placer.rules(task_class, task)
        for task, task_class in enumerate(session.state.tasks.task_class)
    ]
    assert rules[0].static_mask is rules[1].static_mask is rules[2].static_mask
    assert rules[3].static_mask is not rules[0].static_mask


def test_kept_orders_are_dropped_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.core.placement.place.MAX_CACHED_NODES", 5)
    built = cluster().nodes(2, gpus=8)
    for number in range(8):
        built.pending(f"p{number}", request=request(1, cpu=1 + number % 4))
    result = built.cycle(ActionName.ALLOCATE)
    assert len(result.decisions) == 8


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    shares=st.lists(st.tuples(st.integers(0, 4), st.sampled_from([2, 5, 8])), max_size=8),
    whole=st.lists(st.integers(0, 4), max_size=8),
    ports=st.sets(st.integers(0, 4)),
    evicted=st.sets(st.integers(0, 15)),
    simulated=st.booleans(),
)
def test_arrays_and_single_questions_agree(
    shares: list[tuple[int, int]],
    whole: list[int],
    ports: set[int],
    evicted: set[int],
    simulated: bool,
) -> None:
    web = TaskConstraints(host_ports=(HostPort(80),))
    built = cluster().nodes(5, gpus=2, gpu_memory_mib=1000).node("z", gpus=0)
    for number, (node, tenths) in enumerate(shares):
        built.running(
            f"s{number}", [f"n{node}"], gpus=tenths / 100, gpu_groups=[(f"g{number % 2}",)]
        )
    for number, node in enumerate(whole):
        built.running(f"w{number}", [f"n{node}"], gpus=1, minimum=0)
    for node in sorted(ports):
        built.running(f"web{node}", [f"n{node}"], request=request(0), constraints=web)
    asks = [
        request(0.5),
        request(0.3, gpu_devices=2),
        request(0, gpu_memory_mib=700),
        request(0, gpu_memory_mib=1200),
        request(1),
        request(0),
    ]
    for number, ask in enumerate(asks):
        built.pending(f"p{number}", request=ask, constraints=web if number % 2 else NO_CONSTRAINTS)
    session = built.session(SPREAD if simulated else None)
    tasks = session.state.tasks
    statement = Statement(session, ActionName.RECLAIM)
    for task in sorted(evicted):
        if task < len(tasks) and ACTIVE_ALLOCATED[tasks.status[task]]:
            statement.evict(task, REASON)
    placer = Placer(session)
    for task in range(len(tasks) - len(asks), len(tasks)):
        task_class = tasks.task_class[task]
        rules = placer.rules(task_class, task)
        best_nodes = []
        for small in (0, 99):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("scheduler.core.placement.candidates.SMALL", small)
                kept_candidates = Candidates(session, task_class, rules, session.all_nodes, task)
            order = list(kept_candidates.in_order())
            best_nodes.append(
                (
                    order,
                    [kept_candidates.is_free(node) for node in order],
                    kept_candidates._base.tolist(),
                )
            )
        assert best_nodes[0] == best_nodes[1]
    statement.discard()

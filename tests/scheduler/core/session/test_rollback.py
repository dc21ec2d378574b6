"""Whatever a statement tries, rolling back restores the state bit for bit."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.core.cluster.status import ACTIVE_ALLOCATED, TaskStatus
from scheduler.core.decisions import ActionName, EvictReason
from scheduler.core.errors import InvariantError
from scheduler.core.placement.place import Placer
from scheduler.core.session.session import Session
from scheduler.core.session.statement import Statement
from tests.builders import cluster, fingerprint, request

SHARES = [0.1, 0.3, 0.5, 0.25, 0.7]
REASON = EvictReason(ActionName.RECLAIM)


def busy_session(shares: list[float], whole: list[int]) -> Session:
    """Open a session with shared and whole devices running, and tasks of each kind pending."""
    built = cluster().nodes(3, gpus=4, gpu_memory_mib=1000).queue("a", 2.5).queue("b", 3)
    for number, share in enumerate(shares):
        group = (f"g{number % 2}",)
        built.running(
            f"shared{number}",
            [f"n{number % 3}"],
            gpus=share / 10,
            gpu_groups=[group],
            queue="ab"[number % 2],
        )
    for number, gpus in enumerate(whole):
        built.running(f"whole{number}", [f"n{number % 3}"], gpus=gpus, queue="a", minimum=0)
    for number in range(3):
        built.pending(f"want{number}", 2, gpus=SHARES[number], queue="b")
        built.pending(f"more{number}", 2, gpus=1 + number % 2, queue="a", minimum=1)
        built.pending(
            f"mem{number}", request=request(0, gpu_memory_mib=300, gpu_devices=1 + number % 2)
        )
    return built.session()


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
@given(
    shares=st.lists(st.sampled_from([1, 3, 5, 7]), min_size=1, max_size=6),
    whole=st.lists(st.sampled_from([1, 2]), max_size=3),
    steps=st.lists(
        st.tuples(
            st.sampled_from(["evict", "place", "simulate", "check", "back"]), st.integers(0, 99)
        ),
        max_size=25,
    ),
)
def test_rollback_restores_every_cell(
    shares: list[float], whole: list[int], steps: list[tuple[str, int]]
) -> None:
    session = busy_session(shares, whole)
    placer = Placer(session)
    start = fingerprint(session)
    statement = Statement(session, ActionName.RECLAIM)
    marks = [(statement.checkpoint(), start)]
    for step, number in steps:
        _do(session, placer, statement, marks, step, number)
    statement.discard()
    assert fingerprint(session) == start
    session.state.validate()
    assert session.decisions == []


def _do(session, placer, statement, marks, step, number):  # type: ignore[no-untyped-def]
    tasks, groups = session.state.tasks, session.state.pod_groups
    if step == "evict":
        able = [
            t
            for t in range(len(tasks))
            if ACTIVE_ALLOCATED[tasks.status[t]] and not tasks.is_virtual[t]
        ]
        if able:
            statement.evict(able[number % len(able)], REASON)
    elif step in ("place", "simulate"):
        view = session.view(number % len(groups))
        simulated = step == "simulate"
        chunk = view.next_chunk(include_evicted=simulated)
        before = fingerprint(session)
        placed = placer.place(statement, view, chunk, session.all_nodes, nominate_only=simulated)
        if not placed:
            assert fingerprint(session) == before
    elif step == "check":
        marks.append((statement.checkpoint(), fingerprint(session)))
    else:
        place = number % len(marks)
        checkpoint, expected = marks[place]
        del marks[place + 1 :]
        statement.rollback(checkpoint)
        assert fingerprint(session) == expected
    session.state.validate()
    _check_devices(session)


def _check_devices(session: Session) -> None:
    """Count from the tasks alone how many devices are free on each node."""
    state = session.state
    tasks, nodes = state.tasks, state.nodes
    for node in range(len(nodes)):
        gpus = 0.0
        for task in nodes.tasks[node]:
            is_there = tasks.left_node[task] == node or (
                tasks.node[task] == node and tasks.status[task] != TaskStatus.NOMINATED
            )
            if is_there and not tasks.task_class[task].is_shared:
                gpus += tasks.task_class[task].gpu_amount
        gpus += sum(1 for group in nodes.shared_gpus[node].values() if group[1] > 0)
        assert nodes.idle_rows[2][node] == 4 - gpus, (node, nodes.shared_gpus[node])


def test_an_evicted_task_that_gets_its_place_back_is_not_evicted() -> None:
    session = cluster().node("n", gpus=1).running("r", ["n"]).session()
    statement = Statement(session, ActionName.CONSOLIDATION)
    before = fingerprint(session)
    statement.evict(0, REASON)
    assert session.state.tasks.status[0] == TaskStatus.RELEASING
    statement.nominate(0, 0)
    assert statement.victims() == []
    assert fingerprint(session) == before
    assert statement.keep() == []


def test_a_task_moved_elsewhere_is_evicted_and_nominated() -> None:
    session = cluster().nodes(2, gpus=1).running("r", ["n0"]).session()
    statement = Statement(session, ActionName.CONSOLIDATION)
    statement.evict(0, REASON)
    statement.nominate(0, 1)
    evicted, nominated = statement.keep()
    assert (evicted.node, evicted.moved_to) == ("n0", "n1")  # type: ignore[union-attr]
    assert (nominated.node, nominated.is_moved_victim) == ("n1", True)  # type: ignore[union-attr]
    nodes = session.state.nodes
    assert nodes.releasing[2].tolist() == [1.0, -1.0]
    assert nodes.idle[2].tolist() == [0.0, 1.0]
    session.state.validate()


def test_rolling_an_unevict_back_brings_the_eviction_back() -> None:
    session = cluster().node("n", gpus=1).running("r", ["n"]).session()
    statement = Statement(session, ActionName.RECLAIM)
    statement.evict(0, REASON)
    mark = statement.checkpoint()
    statement.nominate(0, 0)
    statement.rollback(mark)
    assert statement.victims() == [0]
    [decision] = statement.keep()
    assert decision.task.name == "r-0"
    assert session.state.pod_groups.last_eviction == [0.0]


def test_evicting_a_nominated_task_gives_back_the_promise_and_deletes_nothing() -> None:
    session = cluster().nodes(2, gpus=1).running("r", ["n0"]).pending("p").session()
    first = Statement(session, ActionName.RECLAIM)
    first.evict(0, REASON)
    first.nominate(1, 0)
    first.keep()
    before = fingerprint(session)
    again = Statement(session, ActionName.PREEMPT)
    again.evict(1, REASON)
    assert session.state.nodes.releasing[2].tolist() == [1.0, 0.0]
    again.unevict(1)
    assert fingerprint(session) == before
    again.evict(1, REASON)
    again.nominate(1, 1)
    [decision] = again.keep()
    assert (decision.task.name, decision.node) == ("p-0", "n1")
    assert session.state.nodes.releasing[2].tolist() == [1.0, -1.0]
    session.state.validate()


def test_a_task_moved_twice_is_evicted_once() -> None:
    session = cluster().nodes(3, gpus=1).running("r", ["n0"]).session()
    for target in (1, 2):
        statement = Statement(session, ActionName.CONSOLIDATION)
        statement.evict(0, REASON)
        statement.nominate(0, target)
        statement.keep()
    kinds = [type(decision).__name__ for decision in session.decisions]
    assert kinds == ["Evict", "Nominate", "Nominate"]
    assert session.state.nodes.releasing[2].tolist() == [1.0, 0.0, -1.0]
    assert session.state.tasks.left_node == [0]


def test_a_promise_that_is_withdrawn_is_no_gpu_in_use() -> None:
    session = cluster().node("n", gpus=2).pending("p", gpus=1).session()
    used = session.state.nodes.whole_gpus_used
    first = Statement(session, ActionName.RECLAIM)
    first.nominate(0, 0)
    first.keep()
    assert used == [1.0]
    second = Statement(session, ActionName.PREEMPT)
    second.evict(0, REASON)
    assert used == [0.0]
    second.unevict(0)
    assert used == [1.0]
    second.discard()
    assert used == [1.0]


def test_a_shared_nomination_is_given_back_to_its_device() -> None:
    built = cluster().node("n", gpus=1).running("s", ["n"], gpus=0.5, gpu_groups=[("g",)])
    session = built.pending("p", gpus=0.5).session()
    first = Statement(session, ActionName.RECLAIM)
    first.nominate(1, 0, ("g",))
    first.keep()
    shared_gpu = list(session.state.nodes.shared_gpus[0]["g"])
    second = Statement(session, ActionName.RECLAIM)
    second.evict(1, REASON)
    assert session.state.nodes.shared_gpus[0]["g"][0] == 50.0
    second.unevict(1)
    assert list(session.state.nodes.shared_gpus[0]["g"]) == shared_gpu
    second.discard()


def test_a_move_that_is_taken_back_leaves_no_trace() -> None:
    built = cluster().nodes(2, gpus=2).running("s", ["n0"], gpus=0.5, gpu_groups=[("g",)])
    session = built.pending("p", gpus=0.5).session()
    statement = Statement(session, ActionName.CONSOLIDATION)
    statement.evict(0, REASON)
    start = statement.checkpoint()
    for node, gpu_group in ((1, "h"), (0, "h")):
        statement.nominate(0, node, (gpu_group,))
        moved = fingerprint(session)
        assert statement.moved() == [0]
        statement.unmove(0)
        assert (session.state.tasks.node[0], session.state.tasks.gpu_groups[0]) == (0, ("g",))
        session.state.validate()
        statement.unevict(0)
        assert (statement.victims(), statement.moved()) == ([], [])
        statement.rollback(start)
        assert statement.victims() == [0]
        statement.nominate(0, node, (gpu_group,))
        assert fingerprint(session) == moved
        statement.rollback(start)
    statement.nominate(0, 1, ("h",))
    statement.unmove(0)
    statement.unevict(0)
    assert statement.keep() == []
    assert session.state.nodes.idle[2].tolist() == [1.0, 2.0]
    assert session.state.nodes.releasing[2].tolist() == [0.0, 0.0]


def test_a_move_that_was_not_made_cannot_be_taken_back() -> None:
    session = cluster().node("n").running("r", ["n"]).session()
    statement = Statement(session, ActionName.RECLAIM)
    statement.evict(0, REASON)
    with pytest.raises(InvariantError, match="r-0 was not nominated"):
        statement.unmove(0)
    statement.discard()


def test_two_statements_cannot_be_open_at_once() -> None:
    session = cluster().node("n").pending("p").pending("q").session()
    Statement(session, ActionName.ALLOCATE).allocate(0, 0)
    with pytest.raises(InvariantError, match="neither kept nor undone"):
        Statement(session, ActionName.RECLAIM)


def test_unevicting_what_was_not_evicted_is_a_defect() -> None:
    session = cluster().node("n").running("r", ["n"]).session()
    with pytest.raises(InvariantError, match="r-0 was not evicted"):
        Statement(session, ActionName.RECLAIM).unevict(0)

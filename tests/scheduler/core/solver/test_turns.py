"""Turns inside a trial: the order of queues with everyone in it, and runs of bystanders."""

from __future__ import annotations

import random

import pytest

from scheduler.core.cluster.status import TaskStatus
from scheduler.core.session.order import GroupOrder
from scheduler.core.session.session import Session
from scheduler.core.solver.turns import PendingTable, TurnOrder
from tests.builders import ClusterBuilder, cluster


def index_of(session: Session, name: str) -> int:
    return next(
        i for i, pod_group in enumerate(session.state.pod_groups.inputs) if pod_group.name == name
    )


def turns(session: Session, *names: str) -> list[str]:
    views = [session.view(index_of(session, name)) for name in names]
    order = TurnOrder(session, PendingTable(session), views)
    inputs = session.state.pod_groups.inputs
    names_in_order = []
    while (view := order.pop()) is not None:
        names_in_order.append(inputs[view.pod_group].name)
    return names_in_order


def plainly(session: Session, *names: str) -> list[str]:
    """The same by letting every pending pod group have its turn."""
    groups = session.state.pod_groups
    indices = {index_of(session, name) for name in names}
    everyone = {g for g, pending in enumerate(groups.pending) if pending} | indices
    order = GroupOrder(session, [session.view(group) for group in sorted(everyone)])
    return [groups.inputs[v.pod_group].name for v in order.drain() if v.pod_group in indices]


def busy() -> ClusterBuilder:
    built = (
        cluster()
        .nodes(4, 8)
        .queue("x", 10)
        .queue("y", 10)
        .queue("x1", 4, parent="x")
        .queue("x2", 6, parent="x")
        .queue("y1", 5, parent="y")
    )
    for number in range(6):
        built.pending(f"x1-{number}", gpus=1 + number % 2, queue="x1", priority=50 + number % 3)
        built.pending(f"x2-{number}", queue="x2", gpus=4)
        built.pending(f"y1-{number}", queue="y1", gpus=1 + number)
    built.running("x1-r", ["n0", "n1"], queue="x1", gpus=2)
    return built.running("y1-r", ["n2"], queue="y1", gpus=3)


def test_bystanders_take_part_in_the_order_of_queues() -> None:
    session = busy().session()
    rng = random.Random(5)
    names = [pod_group.name for pod_group in session.state.pod_groups.inputs]
    for _ in range(200):
        chosen = rng.sample(names, rng.randint(1, 6))
        assert turns(session, *chosen) == plainly(session, *chosen)


def test_a_pod_group_that_had_its_turn_may_get_another() -> None:
    session = busy().session()
    views = [session.view(index_of(session, name)) for name in ("x1-0", "y1-0")]
    order = TurnOrder(session, PendingTable(session), views)
    first = order.pop()
    order.push(first)
    second = order.pop()
    third = order.pop()
    assert {first.pod_group, second.pod_group, third.pod_group} == {
        view.pod_group for view in views
    }
    assert [first, second, third].count(first) == 2
    assert order.pop() is None
    order.push(first)
    assert order.pop() is first


def test_the_board_follows_changes() -> None:
    session = busy().session()
    board = PendingTable(session)
    queue = session.state.queues.index_of["x2"]
    group = index_of(session, "x2-0")
    assert board.runs(queue).ends == [6] * 6
    session.state.pod_groups.pending[group] = 0
    board.refresh([group])
    assert len(board.entries(queue)) == 5
    assert len(board.runs(queue).requests) == 5
    session.state.pod_groups.pending[group] = 1
    board.refresh([group])
    assert len(board.entries(queue)) == 6
    for pod_group in [index_of(session, f"x2-{n}") for n in range(6)]:
        session.state.pod_groups.pending[pod_group] = 0
        board.refresh([pod_group])
    assert queue not in board.leaves
    assert board.entries(queue) == ()


@pytest.mark.parametrize("chosen", [("x1-0",), ("x1-r", "y1-r"), ("x2-5", "x1-5", "y1-5")])
def test_runs_end_where_requests_differ(chosen) -> None:
    session = busy().session()
    queue = session.state.queues.index_of["y1"]
    runs = PendingTable(session).runs(queue)
    assert runs.ends == [1, 2, 3, 4, 5, 6]
    assert turns(session, *chosen) == plainly(session, *chosen)


def test_a_session_keeps_its_board_and_catches_up() -> None:
    session = busy().session()
    board = PendingTable.of(session)
    queue = session.state.queues.index_of["x2"]
    assert len(board.entries(queue)) == 6
    group = index_of(session, "x2-3")
    session.state.set_status(session.state.pod_groups.first_task[group], TaskStatus.RUNNING)
    assert PendingTable.of(session) is board
    assert group not in [each for _, each in board.entries(queue)]

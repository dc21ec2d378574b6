"""The tree of queues hands out pod groups as asking every queue anew would."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.decisions import ActionName
from scheduler.core.session.gang import GangView
from scheduler.core.session.order import GroupOrder
from scheduler.core.session.session import Session
from scheduler.core.session.statement import Statement
from tests.builders import cluster


def _plain_next(session: Session, waiting: list[GangView]) -> GangView:
    """Find whose turn it is by asking every queue at every level again."""
    ledger = session.policy.ledger
    best_of: dict[int, GangView] = {}
    for view in sorted(waiting, key=session.pod_group_key):
        best_of.setdefault(view.queue, view)
    level = [q for q in range(len(ledger.names)) if ledger.parents[q] < 0]
    while True:
        candidates = []
        for queue in level:
            view = _best_below(session, queue, best_of)
            if view is not None:
                requested = session.requested_by(view.next_chunk(include_evicted=False))
                candidates.append((session.policy.key(queue, requested), queue))
        queue = min(candidates, key=lambda candidate: candidate[0])[1]
        if queue in best_of:
            return best_of[queue]
        level = [q for q in range(len(ledger.names)) if ledger.parents[q] == queue]


def _best_below(session: Session, queue: int, best_of: dict[int, GangView]) -> GangView | None:
    if queue in best_of:
        return best_of[queue]
    ledger = session.policy.ledger
    candidates = []
    for child in range(len(ledger.names)):
        if ledger.parents[child] == queue:
            view = _best_below(session, child, best_of)
            if view is not None:
                requested = session.requested_by(view.next_chunk(include_evicted=False))
                candidates.append((session.policy.key(child, requested), view))
    return min(candidates, key=lambda candidate: candidate[0])[1] if candidates else None


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    quotas=st.lists(st.sampled_from([0, 1, 2, 5]), min_size=4, max_size=4),
    jobs=st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from([0, 1, 2]), st.sampled_from([50, 75])),
        min_size=1,
        max_size=14,
    ),
    placed=st.integers(1, 3),
)
def test_turns_equal_those_of_asking_everyone_again(
    quotas: list[int], jobs: list[tuple[int, int, int]], placed: int
) -> None:
    built = cluster().nodes(3, gpus=4).queue("x", 4).queue("y", 2)
    for number, quota in enumerate(quotas):
        built.queue(f"q{number}", quota, parent="xy"[number % 2], priority=100 + quota % 2)
    for number, (queue, gpus, priority) in enumerate(jobs):
        built.pending(f"p{number}", 2, minimum=1, queue=f"q{queue}", gpus=gpus, priority=priority)
    session = built.session()
    waiting = [session.view(group) for group in range(len(jobs))]
    order = GroupOrder(session, waiting)
    turn = 0
    while waiting:
        expected = _plain_next(session, waiting)
        next_group = order.pop()
        assert next_group is expected
        waiting.remove(next_group)
        turn += 1
        if turn % placed == 0:
            _place_one(session, next_group)
            if next_group.next_chunk(include_evicted=False):
                order.push(next_group)
                waiting.append(next_group)
    assert order.pop() is None
    assert not order


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    jobs=st.lists(st.tuples(st.integers(0, 13), st.sampled_from([1, 2])), min_size=10, max_size=40)
)
def test_many_siblings_take_turns_as_few_do(jobs: list[tuple[int, int]]) -> None:
    built = cluster().nodes(9, gpus=8)
    for number in range(14):
        built.queue(f"q{number:02}", number % 4, weight=number % 3)
    for number, (queue, gpus) in enumerate(jobs):
        built.pending(f"p{number}", 2, minimum=1, queue=f"q{queue:02}", gpus=gpus)
    session = built.session()
    waiting = [session.view(group) for group in range(len(jobs))]
    order = GroupOrder(session, waiting)
    while waiting:
        expected = _plain_next(session, waiting)
        next_group = order.pop()
        assert next_group is expected
        waiting.remove(next_group)
        _place_one(session, next_group)
        if next_group.next_chunk(include_evicted=False) and len(waiting) % 3:
            order.push(next_group)
            waiting.append(next_group)
    assert not order


def _place_one(session: Session, view: GangView) -> None:
    statement = Statement(session, ActionName.ALLOCATE)
    statement.allocate(view.next_chunk(include_evicted=False)[0], 0)
    statement.keep()


def test_depth_keeps_the_best_whatever_comes_last() -> None:
    """KAI drops the element in the last slot of a heap (defect A)."""
    built = cluster().node("n")
    for number, priority in enumerate([60, 50, 90, 70, 80, 99]):
        built.pending(f"p{number}", priority=priority)
    session = built.session()
    order = GroupOrder(session, [session.view(g) for g in range(6)], depth=3)
    names = [session.state.pod_groups.inputs[view.pod_group].name for view in order.drain()]
    assert names == ["p5", "p2", "p4"]


def test_a_queue_that_empties_and_fills_again_keeps_its_place() -> None:
    built = cluster().node("n").queue("a", 1).queue("b", 5)
    built.pending("x", queue="a").pending("y", queue="b")
    session = built.session()
    order = GroupOrder(session, [session.view(0), session.view(1)])
    first = order.pop()
    assert first is not None
    order.push(first)
    assert [view.pod_group for view in order.drain()] == [first.pod_group, 1 - first.pod_group]


def test_a_change_in_a_queue_outside_the_order_is_followed() -> None:
    built = cluster().node("n").queue("x", 4).queue("y", 4)
    built.queue("x1", 4, parent="x").queue("x2", 4, parent="x").queue("y1", 4, parent="y")
    built.pending("mine", queue="x1").pending("other", queue="x2").pending("theirs", queue="y1")
    session = built.session()
    order = GroupOrder(session, [session.view(0), session.view(2)])
    statement = Statement(session, ActionName.ALLOCATE)
    statement.allocate(1, 0)
    statement.keep()
    assert [view.pod_group for view in order.drain()] == [2, 0]

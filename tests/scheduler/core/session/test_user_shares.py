"""In a queue with fairness among users, those who hold less go first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.actions.base import pending_views
from scheduler.core.cluster.inputs import PodGroupInput, PodSetInput, SubGroupInput, TaskInput
from scheduler.core.cluster.status import TaskStatus
from scheduler.core.config import SchedulerConfig
from scheduler.core.decisions import ActionName, Bind, Evict
from scheduler.core.session.gang import GangView
from scheduler.core.session.order import GroupOrder
from scheduler.core.session.session import Session
from scheduler.core.session.statement import Statement
from scheduler.core.session.user_shares import UserShares
from scheduler.explain.job_order import job_order
from scheduler.explain.standings import standings
from scheduler.explain.verdicts import verdicts
from tests.builders import ClusterBuilder, cluster, request


def _flooded(gpus: float = 8, **queue: bool) -> ClusterBuilder:
    """Return a queue in which one user submitted ten jobs before another submitted two."""
    built = cluster().node("n", gpus).queue("q", **queue)
    for number in range(10):
        built.pending(f"ann-{number}", queue="q", user="ann")
    for number in range(2):
        built.pending(f"bob-{number}", queue="q", user="bob")
    return built


def _order(session: Session) -> list[str]:
    groups = session.state.pod_groups
    return [groups.name(view.pod_group).lstrip("/") for view in _turns(session)]


def _turns(session: Session) -> Iterator[GangView]:
    """Return the turns when everything fits."""
    for view in GroupOrder(session, pending_views(session)).drain():
        yield view
        statement = Statement(session, ActionName.ALLOCATE)
        statement.allocate(view.next_chunk(include_evicted=False)[0], 0)
        statement.keep()


def _bound(session: Session) -> list[str]:
    return [decision.task.name for decision in session.decisions if isinstance(decision, Bind)]


def test_without_the_option_age_decides() -> None:
    assert _bound(_flooded(4).cycle()) == [f"ann-{number}-0" for number in range(4)]


def test_users_take_turns_from_the_first_cycle_on() -> None:
    session = _flooded(4, user_fairness=True).cycle()
    assert _bound(session) == ["ann-0-0", "bob-0-0", "ann-1-0", "bob-1-0"]


def test_what_runs_counts() -> None:
    built = cluster().node("n", 8).queue("q", user_fairness=True)
    built.running("old", ["n"] * 3, queue="q", user="ann")
    built.pending("ann-0", queue="q", user="ann")
    for number in range(4):
        built.pending(f"bob-{number}", queue="q", user="bob")
    assert _order(built.session())[:4] == ["bob-0", "bob-1", "bob-2", "ann-0"]


def test_priority_decides_first() -> None:
    built = cluster().node("n", 8).queue("q", user_fairness=True)
    built.running("old", ["n"] * 3, queue="q", user="ann")
    built.pending("bob", queue="q", user="bob")
    built.pending("urgent", queue="q", user="ann", priority=75)
    assert _order(built.session())[-2:] == ["urgent", "bob"]


def test_a_broken_gang_of_the_busiest_user_is_completed_first() -> None:
    built = cluster().node("n", 8).queue("q", user_fairness=True)
    built.pending("bob", queue="q", user="bob")
    lost = TaskInput(name="lost", uid="lost", request=request())
    running = replace(lost, name="kept", uid="kept", status=TaskStatus.RUNNING, node="n")
    gang = SubGroupInput(pod_sets=(PodSetInput(min_available=2),))
    built.group(PodGroupInput(name="gang", queue="q", user="ann", root=gang, tasks=(running, lost)))
    assert _order(built.session()) == ["gang", "bob"]


def test_the_largest_part_of_any_resource_counts() -> None:
    built = cluster().node("n", 8, cpu=100).queue("q", user_fairness=True)
    built.running("cpu", ["n"], queue="q", user="ann", request=request(0, cpu=50))
    built.running("gpu", ["n"], queue="q", user="bob", request=request(2))
    built.pending("ann-0", queue="q", user="ann")
    built.pending("bob-0", queue="q", user="bob")
    users = built.session().attached(UserShares)
    assert users is not None
    assert [users.use(user) for user in range(2)] == [0.5, 0.25]


def test_other_queues_keep_their_order() -> None:
    built = _flooded(4, user_fairness=True).queue("plain")
    built.pending("carl-0", queue="plain", user="carl").pending(
        "carl-1", queue="plain", user="carl"
    )
    built.pending("dora-0", queue="plain", user="dora")
    order = [name for name in _order(built.session()) if name[:4] in ("carl", "dora")]
    assert order == ["carl-0", "carl-1", "dora-0"]


def test_the_order_that_people_see_is_that_of_the_turns() -> None:
    built = _flooded(1, user_fairness=True)
    session = built.cycle()
    placed = standings(session, verdicts(session, 0.0))
    by_place = sorted(placed, key=lambda name: placed[name].position or 0)
    # ann holds the only GPU now, so bob's workloads are next.
    assert by_place[:3] == ["/bob-0", "/bob-1", "/ann-1"]
    assert next(entry["id"] for entry in job_order(built.session())["global_order"]) == "/ann-0"


def test_the_reason_names_the_user_and_what_he_holds() -> None:
    session = _flooded(4, user_fairness=True).cycle()
    text = standings(session, verdicts(session, 0.0))["/ann-2"].text
    assert "In queue 'q' users who hold less go first. User 'ann' holds GPU: 2" in text


def test_depth_leaves_room_for_every_user() -> None:
    config = SchedulerConfig(queue_depth={ActionName.ALLOCATE: 4})
    session = _flooded(8, user_fairness=True).cycle(config=config)
    assert _bound(session) == ["ann-0-0", "bob-0-0", "ann-1-0", "bob-1-0"]


def test_of_equal_priority_the_busiest_user_loses_first() -> None:
    built = cluster().node("n", 4).queue("q", 1, user_fairness=True).queue("r", 3)
    built.running("ann-0", ["n"], queue="q", user="ann")
    built.running("ann-1", ["n"], queue="q", user="ann")
    built.running("ann-2", ["n"], queue="q", user="ann")
    built.running("bob-0", ["n"], queue="q", user="bob")
    built.pending("want", 2, queue="r")
    session = built.cycle(ActionName.ALLOCATE, ActionName.RECLAIM)
    evicted = {d.pod_group for d in session.decisions if isinstance(d, Evict)}
    assert evicted == {"ann-1", "ann-2"}


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    jobs=st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from([1, 2, 4]), st.sampled_from([50, 75])),
        min_size=1,
        max_size=16,
    )
)
def test_each_turn_is_that_of_the_user_who_holds_least(jobs: list[tuple[str, int, int]]) -> None:
    built = cluster().node("n", 64).queue("q", user_fairness=True)
    for number, (user, gpus, priority) in enumerate(jobs):
        built.pending(f"p{number}", queue="q", gpus=gpus, priority=priority, user=user)
    session = built.session()
    gpus_by_user = dict.fromkeys("abc", 0)
    waiting = list(enumerate(jobs))
    for view in _turns(session):
        best = min(waiting, key=lambda entry: (-entry[1][2], gpus_by_user[entry[1][0]], entry[0]))
        assert view.pod_group == best[0]
        gpus_by_user[best[1][0]] += best[1][1]
        waiting.remove(best)


def test_rolled_back_placements_leave_no_trace() -> None:
    session = _flooded(4, user_fairness=True).session()
    users = session.attached(UserShares)
    assert users is not None
    statement = Statement(session, ActionName.ALLOCATE)
    statement.allocate(0, 0)
    assert users.held[0] == [1000.0, 1e9, 1.0]
    statement.discard()
    assert users.held[0] == [0.0, 0.0, 0.0]

"""Limits on evictions: the search takes other victims, and says which limit is in the way if there are none."""

from __future__ import annotations

from typing import Any

from scheduler.core.cluster.disruption_limits import DisruptionLimit, LimitKind
from scheduler.core.cluster.inputs import PodSetInput, SubGroupInput
from scheduler.core.cluster.status import TaskStatus
from scheduler.core.decisions import ActionName, Evict, EvictReason, Nominate
from scheduler.core.session.fit import DisruptionRefusal, GroupFit, GroupReason
from scheduler.core.session.statement import Statement
from tests.builders import ClusterBuilder, cluster, status_of

CONSOLIDATION, RECLAIM, PREEMPT = ActionName.CONSOLIDATION, ActionName.RECLAIM, ActionName.PREEMPT
STALE = ActionName.STALE_GANG_EVICTION


def limit(allowed: int, *pods: str, subject: str = "ns/budget") -> DisruptionLimit:
    return DisruptionLimit(
        kind=LimitKind.BUDGET, subject=subject, allowed=allowed, pods=frozenset(pods)
    )


def victims(session: Any) -> list[str]:
    return [item.task.name for item in session.decisions if isinstance(item, Evict)]


def nominated(session: Any) -> dict[str, str]:
    return {item.task.name: item.node for item in session.decisions if isinstance(item, Nominate)}


def filled(*limits: DisruptionLimit) -> ClusterBuilder:
    """Four pods of one GPU on one node, the newest would be evicted first."""
    built = cluster().node("n0", 4).queue("a").having(disruption_limits=limits)
    for number in range(4):
        built.running(f"low{number}", ["n0"], priority=10)
    return built


def test_without_a_limit_the_newest_go() -> None:
    session = filled().pending("high", 2, priority=50).cycle(PREEMPT)
    assert victims(session) == ["low3-0", "low2-0"]


def test_pods_of_a_used_up_limit_stay_and_others_go() -> None:
    limits = limit(0, "low3-0", "low2-0")
    session = filled(limits).pending("high", 2, priority=50).cycle(PREEMPT)
    assert victims(session) == ["low1-0", "low0-0"]
    assert nominated(session) == {"high-0": "n0", "high-1": "n0"}


def test_a_limit_of_one_lets_one_pod_go_and_the_search_takes_another_one_besides() -> None:
    limits = limit(1, "low3-0", "low2-0")
    session = filled(limits).pending("high", 2, priority=50).cycle(PREEMPT)
    assert victims(session) == ["low3-0", "low1-0"]


def test_the_larger_of_two_pods_goes_where_only_it_is_enough() -> None:
    built = cluster().node("n0", 4).queue("a")
    built.having(disruption_limits=(limit(1, "big-0", "small-0"),))
    built.running("big", ["n0"], priority=10, gpus=3).running("small", ["n0"], priority=10)
    session = built.pending("high", 1, priority=50, gpus=3).cycle(PREEMPT)
    assert victims(session) == ["big-0"]


def test_what_one_pod_group_takes_is_not_left_for_the_next() -> None:
    built = filled(limit(1, "low3-0", "low2-0", "low1-0", "low0-0"))
    session = (
        built.pending("first", 1, priority=60)
        .pending("second", 1, priority=50, gpus=2)
        .cycle(PREEMPT)
    )
    assert victims(session) == ["low3-0"]
    assert nominated(session) == {"first-0": "n0"}
    second = next(i for i, g in enumerate(session.state.pod_groups.inputs) if g.name == "second")
    refusal = GroupFit(
        GroupReason.DISRUPTION_BUDGET,
        DisruptionRefusal((limit(1, "low3-0", "low2-0", "low1-0", "low0-0"),)),
    )
    assert session.fit.pod_groups[second] == [refusal]


def test_a_limit_that_leaves_no_victims_is_the_reason_and_nobody_goes() -> None:
    every = limit(0, "low3-0", "low2-0", "low1-0", "low0-0")
    session = filled(every).pending("high", 1, priority=50).cycle(PREEMPT)
    assert victims(session) == []
    high = next(i for i, g in enumerate(session.state.pod_groups.inputs) if g.name == "high")
    assert session.fit.pod_groups[high] == [
        GroupFit(GroupReason.DISRUPTION_BUDGET, DisruptionRefusal((every,)))
    ]


def test_pod_groups_that_ask_the_same_get_the_same_reason_without_a_search() -> None:
    every = limit(0, "low3-0", "low2-0", "low1-0", "low0-0")
    built = filled(every).pending("high", 1, priority=50).pending("same", 1, priority=50)
    session = built.cycle(PREEMPT)
    reasons = {
        group.name: [fit.reason for fit in session.fit.pod_groups.get(index, ())]
        for index, group in enumerate(session.state.pod_groups.inputs)
        if group.name in ("high", "same")
    }
    assert reasons == {
        "high": [GroupReason.DISRUPTION_BUDGET],
        "same": [GroupReason.DISRUPTION_BUDGET],
    }
    assert session.reports[0].attempted == 1


def test_a_solution_without_the_protected_pods_leaves_no_reason() -> None:
    session = filled(limit(0, "low3-0")).pending("high", 1, priority=50).cycle(PREEMPT)
    assert victims(session) == ["low2-0"]
    assert session.fit.pod_groups == {}


def test_a_gang_is_spared_as_a_whole() -> None:
    built = cluster().node("n0", 4).queue("a")
    built.having(disruption_limits=(limit(1, "gang-0", "gang-1"),))
    built.running("gang", ["n0", "n0"], priority=10).running("other", ["n0"], priority=20, gpus=2)
    session = built.pending("high", 1, priority=50, gpus=2).cycle(PREEMPT)
    assert victims(session) == ["other-0"]


def test_moving_a_pod_counts_as_an_eviction() -> None:
    def built(allowed: int) -> ClusterBuilder:
        small = cluster().nodes(2, 2).queue("a")
        small.having(disruption_limits=(limit(allowed, "x-0", "y-0"),))
        return small.running("x", ["n0"]).running("y", ["n1"]).pending("wide", 1, gpus=2)

    assert victims(built(1).cycle(CONSOLIDATION)) == ["y-0"]
    assert victims(built(0).cycle(CONSOLIDATION)) == []


def test_reclaim_keeps_to_limits_too() -> None:
    built = cluster().node("n0", 2).queue("a", 1).queue("b", 1)
    built.having(disruption_limits=(limit(0, "a1-0"),))
    built.running("a0", ["n0"], queue="a").running("a1", ["n0"], queue="a")
    session = built.pending("want", 1, queue="b").cycle(RECLAIM)
    assert victims(session) == ["a0-0"]


def test_several_limits_of_one_pod_all_count() -> None:
    limits = (limit(1, "low3-0"), limit(0, "low3-0", subject="ns/other"))
    session = filled(*limits).pending("high", 1, priority=50).cycle(PREEMPT)
    assert victims(session) == ["low2-0"]


def test_of_a_stale_gang_goes_what_its_limit_allows() -> None:
    built = cluster().node("n0", 4).queue("a")
    built.having(disruption_limits=(limit(1, "gang-0", "gang-1"),))
    root = SubGroupInput(pod_sets=(PodSetInput(min_available=3),))
    built.running("gang", ["n0", "n0"], root=root, stale_since=-3600.0)
    session = built.cycle(STALE)
    assert victims(session) == ["gang-0"]
    assert status_of(session, "gang-1") == TaskStatus.RUNNING


def test_a_discarded_statement_takes_nothing_from_a_limit() -> None:
    session = filled(limit(1, "low3-0", "low2-0")).session()
    ledger = session.disruptions
    task = next(i for i, pod in enumerate(session.state.tasks.inputs) if pod.name == "low3-0")
    other = next(i for i, pod in enumerate(session.state.tasks.inputs) if pod.name == "low2-0")
    reason = EvictReason(action=PREEMPT, gang_size=1, evictor="x")
    undone = Statement(session, PREEMPT)
    undone.evict(task, reason)
    undone.discard()
    assert ledger.exceeded((other,)) == set()
    statement = Statement(session, PREEMPT)
    statement.evict(task, reason)
    statement.keep()
    assert ledger.exceeded((other,)) == {0}
    assert ledger.exceeded((task,)) == set()  # it is on its way already

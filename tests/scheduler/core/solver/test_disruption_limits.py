"""Disruption limits: the solver looks for other victims; if there are none, it names the limits in the way."""

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


def full_node(*limits: DisruptionLimit) -> ClusterBuilder:
    """Return a cluster of one node with four pods of one GPU each; without limits the newest is evicted first."""
    builder = cluster().node("n0", 4).queue("a").having(disruption_limits=limits)
    for number in range(4):
        builder.running(f"low{number}", ["n0"], priority=10)
    return builder


def test_without_a_limit_the_newest_pods_are_evicted() -> None:
    session = full_node().pending("high", 2, priority=50).cycle(PREEMPT)
    assert victims(session) == ["low3-0", "low2-0"]


def test_pods_under_an_exhausted_limit_are_spared_and_others_are_evicted() -> None:
    exhausted = limit(0, "low3-0", "low2-0")
    session = full_node(exhausted).pending("high", 2, priority=50).cycle(PREEMPT)
    assert victims(session) == ["low1-0", "low0-0"]
    assert nominated(session) == {"high-0": "n0", "high-1": "n0"}


def test_a_limit_of_one_allows_one_victim_and_the_second_is_a_pod_without_a_limit() -> None:
    one_pod = limit(1, "low3-0", "low2-0")
    session = full_node(one_pod).pending("high", 2, priority=50).cycle(PREEMPT)
    assert victims(session) == ["low3-0", "low1-0"]


def test_a_limit_of_one_is_spent_on_the_pod_that_is_large_enough() -> None:
    builder = cluster().node("n0", 4).queue("a")
    builder.having(disruption_limits=(limit(1, "big-0", "small-0"),))
    builder.running("big", ["n0"], priority=10, gpus=3).running("small", ["n0"], priority=10)
    session = builder.pending("high", 1, priority=50, gpus=3).cycle(PREEMPT)
    assert victims(session) == ["big-0"]


def test_an_eviction_for_one_pod_group_uses_up_the_limit_for_the_next() -> None:
    builder = full_node(limit(1, "low3-0", "low2-0", "low1-0", "low0-0"))
    session = (
        builder.pending("first", 1, priority=60)
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


def test_a_limit_on_all_pods_is_why_the_pod_group_waits_and_no_pod_is_evicted() -> None:
    all_pods = limit(0, "low3-0", "low2-0", "low1-0", "low0-0")
    session = full_node(all_pods).pending("high", 1, priority=50).cycle(PREEMPT)
    assert victims(session) == []
    high = next(i for i, g in enumerate(session.state.pod_groups.inputs) if g.name == "high")
    assert session.fit.pod_groups[high] == [
        GroupFit(GroupReason.DISRUPTION_BUDGET, DisruptionRefusal((all_pods,)))
    ]


def test_a_pod_group_with_the_same_request_gets_the_reason_without_a_search_of_its_own() -> None:
    all_pods = limit(0, "low3-0", "low2-0", "low1-0", "low0-0")
    builder = full_node(all_pods).pending("high", 1, priority=50).pending("same", 1, priority=50)
    session = builder.cycle(PREEMPT)
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


def test_no_reason_is_recorded_if_other_victims_suffice() -> None:
    session = full_node(limit(0, "low3-0")).pending("high", 1, priority=50).cycle(PREEMPT)
    assert victims(session) == ["low2-0"]
    assert session.fit.pod_groups == {}


def test_a_gang_is_spared_if_its_limit_allows_too_few_evictions() -> None:
    builder = cluster().node("n0", 4).queue("a")
    builder.having(disruption_limits=(limit(1, "gang-0", "gang-1"),))
    builder.running("gang", ["n0", "n0"], priority=10).running("other", ["n0"], priority=20, gpus=2)
    session = builder.pending("high", 1, priority=50, gpus=2).cycle(PREEMPT)
    assert victims(session) == ["other-0"]


def test_moving_a_pod_counts_as_an_eviction() -> None:
    def two_nodes(allowed: int) -> ClusterBuilder:
        small = cluster().nodes(2, 2).queue("a")
        small.having(disruption_limits=(limit(allowed, "x-0", "y-0"),))
        return small.running("x", ["n0"]).running("y", ["n1"]).pending("wide", 1, gpus=2)

    assert victims(two_nodes(1).cycle(CONSOLIDATION)) == ["y-0"]
    assert victims(two_nodes(0).cycle(CONSOLIDATION)) == []


def test_reclaim_keeps_to_limits_too() -> None:
    builder = cluster().node("n0", 2).queue("a", 1).queue("b", 1)
    builder.having(disruption_limits=(limit(0, "a1-0"),))
    builder.running("a0", ["n0"], queue="a").running("a1", ["n0"], queue="a")
    session = builder.pending("reclaimer", 1, queue="b").cycle(RECLAIM)
    assert victims(session) == ["a0-0"]


def test_several_limits_of_one_pod_all_count() -> None:
    limits = (limit(1, "low3-0"), limit(0, "low3-0", subject="ns/other"))
    session = full_node(*limits).pending("high", 1, priority=50).cycle(PREEMPT)
    assert victims(session) == ["low2-0"]


def test_no_more_pods_of_a_stale_gang_are_evicted_than_its_limit_allows() -> None:
    builder = cluster().node("n0", 4).queue("a")
    builder.having(disruption_limits=(limit(1, "gang-0", "gang-1"),))
    root = SubGroupInput(pod_sets=(PodSetInput(min_available=3),))
    builder.running("gang", ["n0", "n0"], root=root, stale_since=-3600.0)
    session = builder.cycle(STALE)
    assert victims(session) == ["gang-0"]
    assert status_of(session, "gang-1") == TaskStatus.RUNNING


def test_a_discarded_statement_does_not_charge_a_limit_and_a_kept_one_does() -> None:
    session = full_node(limit(1, "low3-0", "low2-0")).session()
    disruptions = session.disruptions
    task = next(i for i, pod in enumerate(session.state.tasks.inputs) if pod.name == "low3-0")
    other = next(i for i, pod in enumerate(session.state.tasks.inputs) if pod.name == "low2-0")
    reason = EvictReason(action=PREEMPT, gang_size=1, evictor="x")
    discarded = Statement(session, PREEMPT)
    discarded.evict(task, reason)
    discarded.discard()
    assert disruptions.exceeded((other,)) == set()
    statement = Statement(session, PREEMPT)
    statement.evict(task, reason)
    statement.keep()
    assert disruptions.exceeded((other,)) == {0}
    assert (
        disruptions.exceeded((task,)) == set()
    )  # a task that was evicted already is not charged again

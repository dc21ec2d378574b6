"""KAI #1579: disruption budgets hold in every cycle, and who is refused by one does not evict again and again.

A budget is counted before each cycle, as the disruption controller of Kubernetes does it: pods that are leaving or
wait for a place are not available.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from scheduler.core.cluster.disruption_limits import DisruptionLimit, LimitKind
from scheduler.core.session.fit import GroupReason
from scheduler.core.session.session import Session
from scheduler.tools.simulate.living import LivingCluster
from tests.builders import ClusterBuilder, cluster
from tests.scheduler.stability.cases import Grace, at_once, live, one_by_one
from tests.scheduler.stability.test_stability import CYCLES
from tests.scheduler.stability.watch import Watch, running_tasks

both_graces = pytest.mark.parametrize(
    "grace", [at_once, one_by_one], ids=lambda grace: grace.__name__
)


@dataclass(frozen=True)
class Budget:
    """At least `min_available` of these pods run, by uid."""

    pods: frozenset[str]
    min_available: int

    def limit(self, here: LivingCluster) -> DisruptionLimit:
        """Return how many of the pods may be evicted now."""
        allowed = max(len(self.pods & running_tasks(here)) - self.min_available, 0)
        return DisruptionLimit(
            kind=LimitKind.BUDGET, subject="budget", allowed=allowed, pods=self.pods
        )


@dataclass(frozen=True)
class OwnerCap:
    """At most `most` of these pods are on their way out at a time, by uid."""

    pods: frozenset[str]
    most: int

    def limit(self, here: LivingCluster) -> DisruptionLimit:
        """Return how many of the pods may be evicted now."""
        leaving = sum(
            pod.task.uid.split(".")[0] in self.pods
            for pods in here.leaving.values()
            for pod in pods
        )
        allowed = max(self.most - leaving, 0)
        return DisruptionLimit(
            kind=LimitKind.OWNER, subject="owner", allowed=allowed, pods=self.pods
        )


def step(here: LivingCluster, limits: Budget | OwnerCap) -> Session:
    here.base = replace(here.base, disruption_limits=(limits.limit(here),))
    return here.step()


def borrowers(count: int) -> tuple[ClusterBuilder, frozenset[str]]:
    """Return a full cluster of pods without quota, and their uids."""
    built = cluster().node("n0", count).queue("over", 0).queue("claims", count)
    for number in range(count):
        built.running(f"p-{number}", ["n0"], queue="over")
    return built, frozenset(f"p-{number}-0" for number in range(count))


@both_graces
def test_a_claim_takes_what_its_victims_budget_allows_and_the_rest_elsewhere(grace: Grace) -> None:
    built = cluster().node("n0", 6).queue("over", 0).queue("open", 0).queue("claims", 3)
    for number in range(4):
        built.running(f"p-{number}", ["n0"], queue="over")
    built.running("o-0", ["n0"], queue="open").running("o-1", ["n0"], queue="open")
    here = live(built.pending("claim", 3, queue="claims"), grace)
    budget = Budget(frozenset(f"p-{number}-0" for number in range(4)), 3)
    watch = Watch()
    for _ in range(CYCLES):
        watch.look(here, step(here, budget))
        assert len(budget.pods & running_tasks(here)) >= 3
    assert watch.broken == []
    assert here.is_running("claim")
    assert sorted(watch.evicted.values()) == [1, 1, 1]
    assert sum(uid in budget.pods for uid in watch.evicted) == 1


@both_graces
def test_a_budget_that_allows_nothing_keeps_all_pods_and_is_the_reason(grace: Grace) -> None:
    built, pods = borrowers(4)
    here = live(built.pending("claim", 2, queue="claims"), grace)
    watch = Watch()
    for _ in range(CYCLES):
        session = step(here, Budget(pods, 4))
        watch.look(here, session)
        [claim] = [
            i for i, group in enumerate(session.state.pod_groups.inputs) if group.name == "claim"
        ]
        reasons = {fit.reason for fit in session.fit.pod_groups[claim]}
        assert GroupReason.DISRUPTION_BUDGET in reasons
    assert sum(watch.evictions) == 0


@both_graces
def test_a_gang_that_needs_more_than_the_budget_allows_evicts_nobody(grace: Grace) -> None:
    built, pods = borrowers(4)
    here = live(built.pending("claim", 3, queue="claims"), grace)
    watch = Watch()
    for _ in range(CYCLES):
        watch.look(here, step(here, Budget(pods, 2)))
    assert sum(watch.evictions) == 0


@pytest.mark.parametrize(
    ("limits", "evictions"),
    [(lambda pods: OwnerCap(pods, 1), 3), (lambda pods: Budget(pods, 2), 2)],
    ids=["one at a time", "budget"],
)
@both_graces
def test_an_elastic_claim_goes_on_as_far_as_the_limit_allows(
    limits: Callable[[frozenset[str]], Budget | OwnerCap], evictions: int, grace: Grace
) -> None:
    built, pods = borrowers(4)
    here = live(built.pending("claim", 3, queue="claims", minimum=1), grace)
    watch = Watch()
    for _ in range(CYCLES):
        watch.look(here, step(here, limits(pods)))
    assert watch.broken == []
    assert sum(watch.evictions) == evictions
    assert max(watch.evicted.values()) == 1
    assert max(watch.evictions) == 1

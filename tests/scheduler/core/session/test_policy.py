"""The policy's flat queue key orders queues as the rules of fair share do."""

from __future__ import annotations

from math import inf

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.cluster.journal import Journal
from scheduler.core.cluster.queues import Queues
from scheduler.core.config import PluginConfig, SchedulerConfig
from scheduler.core.fairshare.shares import QueueLedger
from scheduler.core.session.policy import FairSharePolicy, QueuePolicy, empty_ledger
from tests.builders import cluster
from tests.scheduler.core.fairshare.plain_queue_order import queue_key

AMOUNT = st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0, 8.0])
BOUND = st.one_of(AMOUNT, st.just(inf))


def _triple(values):  # type: ignore[no-untyped-def]
    return st.tuples(values, values, values)


QUEUE = st.tuples(
    _triple(BOUND), _triple(BOUND), _triple(AMOUNT), _triple(AMOUNT), st.integers(1, 3)
)


def _ledger(queues):  # type: ignore[no-untyped-def]
    count = len(queues)
    return QueueLedger(
        names=[f"q{i}" for i in range(count)],
        display_names=[f"q{i}" for i in range(count)],
        parents=[-1] * count,
        priorities=[queue[4] for queue in queues],
        seniority=list(range(count)),
        quotas=[queue[0] for queue in queues],
        limits=[queue[1] for queue in queues],
        fair_shares=[queue[2] for queue in queues],
        requests=[(0.0, 0.0, 0.0)] * count,
        allocated=[list(queue[3]) for queue in queues],
        allocated_non_preemptible=[[0.0, 0.0, 0.0] for _ in queues],
        totals=(8.0, 8.0, 8.0),
    )


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    queues=st.lists(QUEUE, min_size=2, max_size=2),
    candidates=st.tuples(_triple(AMOUNT), _triple(AMOUNT)),
    victims=st.tuples(_triple(AMOUNT), _triple(AMOUNT)),
)
def test_flat_keys_order_as_the_rules_do(queues, candidates, victims) -> None:  # type: ignore[no-untyped-def]
    ledger = _ledger(queues)
    policy = FairSharePolicy(ledger)
    flat = [policy.key(i, candidates[i], victims[i]) for i in (0, 1)]
    rules = [queue_key(ledger, i, candidates[i], victims[i]) for i in (0, 1)]
    assert (flat[0] < flat[1]) == (rules[0] < rules[1])
    assert (flat[1] < flat[0]) == (rules[1] < rules[0])


def test_charging_can_be_undone_to_the_bit() -> None:
    session = cluster().queue("top").queue("leaf", parent="top").session()
    policy, journal = session.policy, Journal()
    leaf = session.state.queues.index_of["leaf"]
    policy.charge(journal, leaf, (0.1, 0.2, 0.3), preemptible=False)
    before = policy.ledger.allocated[leaf][:]
    mark = len(journal.entries)
    policy.charge(journal, leaf, (0.7, 0.7, 0.7), preemptible=True)
    journal.rewind(mark)
    assert policy.ledger.allocated[leaf] == before
    assert policy.ledger.allocated_non_preemptible[leaf] == [0.1, 0.2, 0.3]
    journal.rewind(0)
    assert policy.ledger.allocated == [[0.0] * 3] * 2
    assert policy.touched == [leaf, leaf]


def test_without_proportion_there_are_no_gates_and_age_decides() -> None:
    config = SchedulerConfig(plugins=(PluginConfig("predicates"),))
    built = cluster().node("n", gpus=2).queue("old", 0, limit=0).queue("young", 0, limit=0)
    built.pending("a", queue="young").pending("b", queue="old")
    result = built.cycle(config=config)
    assert [decision.task.name for decision in result.decisions] == ["b-0", "a-0"]
    policy = result.policy
    assert type(policy) is QueuePolicy
    assert policy.refuse(0, (9.0, 9.0, 9.0), preemptible=False) is None
    assert policy.refuse_over_quota(0, (9.0, 9.0, 9.0)) is None


def test_the_empty_ledger_is_unlimited() -> None:
    ledger = empty_ledger(Queues(cluster().queue("a", 1).build().queues))
    assert ledger.limits == [(inf, inf, inf)]
    assert ledger.display_names == ["a"]


def test_only_bounded_queues_are_asked() -> None:
    built = cluster().queue("free").queue("bound", 1, limit=1)
    policy = built.session().policy
    index = {"free": 0, "bound": 1}
    assert not policy.can_refuse(index["free"], preemptible=False)
    assert policy.can_refuse(index["bound"], preemptible=True)
    assert policy.refuse_over_quota(index["bound"], (0.0, 0.0, 2.0)) is not None

"""What pods that are gone requested is remembered, and fades."""

from __future__ import annotations

from scheduler.core.cluster.inputs import PlainRequest
from scheduler.core.plugins.placement_strategy import FRAGMENTATION
from scheduler.load import past_requests
from scheduler.load.past_requests import RequestMemory, keeps_fragments_small
from scheduler.tools.traces.one_session import strategy_config
from tests.scheduler.core.placement.test_fragmentation import HALF, MOST, PAIR, session_of


def test_tasks_that_are_gone_count_half_after_a_half_life() -> None:
    memory = RequestMemory(half_life_s=100.0)
    memory.observe(session_of({"a": 8}, MOST, MOST, PAIR).state, 0.0)
    assert memory.past(50.0) == {}
    memory.observe(session_of({"a": 8}, MOST).state, 50.0)
    most, pair = PlainRequest(1000.0, 0.8, 1), PlainRequest(1000.0, 1.0, 2)
    assert memory.past(50.0) == {most: 1.0, pair: 1.0}
    assert memory.past(150.0) == {most: 0.5, pair: 0.5}
    memory.observe(session_of({"a": 8}).state, 150.0)
    assert memory.past(150.0) == {most: 1.5, pair: 0.5}


def test_only_the_commonest_requests_are_remembered(monkeypatch) -> None:
    monkeypatch.setattr(past_requests, "MAX_REMEMBERED", 1)
    memory = RequestMemory()
    memory.observe(session_of({"a": 8}, PAIR, HALF, HALF).state, 0.0)
    memory.observe(session_of({"a": 8}).state, 0.0)
    assert memory.past(0.0) == {PlainRequest(1000.0, 0.5, 1): 2.0}


def test_the_memory_is_kept_only_where_a_strategy_uses_it() -> None:
    assert keeps_fragments_small(strategy_config(FRAGMENTATION))
    assert not keeps_fragments_small(strategy_config("binpack"))

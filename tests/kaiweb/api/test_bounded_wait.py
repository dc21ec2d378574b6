"""Waiting for a condition inside a request."""

from __future__ import annotations

import pytest

from kaiweb.api.bounded_wait import wait_until


def test_a_condition_that_holds_costs_no_pause() -> None:
    pauses: list[float] = []
    assert wait_until(lambda: True, timeout_s=0.6, sleep=pauses.append)
    assert pauses == []


def test_pauses_grow_to_a_tenth_of_a_second_until_the_condition_holds() -> None:
    pauses: list[float] = []
    assert wait_until(lambda: len(pauses) == 5, timeout_s=0.6, sleep=pauses.append)
    assert pauses == [0.02, 0.04, 0.08, 0.1, 0.1]


def test_the_last_pause_ends_with_the_time() -> None:
    pauses: list[float] = []
    assert not wait_until(lambda: False, timeout_s=0.3, sleep=pauses.append)
    assert pauses == pytest.approx([0.02, 0.04, 0.08, 0.1, 0.06])

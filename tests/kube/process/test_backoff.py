"""Pauses grow, stay bounded, and start again after a success."""

from __future__ import annotations

from kube.process.backoff import Backoff, doubled_s


def test_a_pause_doubles_with_each_failure_up_to_the_bound() -> None:
    pauses = [doubled_s(failures, first_s=1.0, max_s=10.0) for failures in range(6)]
    assert pauses == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_the_pause_after_very_many_failures_is_the_longest_one() -> None:
    assert doubled_s(100_000, first_s=0.2, max_s=15.0) == 15.0


def test_a_reset_starts_again_with_the_first_pause() -> None:
    backoff = Backoff(first_s=0.2, max_s=10.0, random_part=0.0)
    assert [backoff.pause_s() for _ in range(3)] == [0.2, 0.4, 0.8]
    backoff.reset()
    assert backoff.pause_s() == 0.2


def test_the_random_part_only_shortens_a_pause() -> None:
    assert Backoff(first_s=1.0, spread=lambda: 0.0).pause_s() == 0.5
    assert Backoff(first_s=1.0, spread=lambda: 1.0).pause_s() == 1.0

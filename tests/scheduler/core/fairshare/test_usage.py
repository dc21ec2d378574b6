"""Weighing samples of the past."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler.core.fairshare.usage import decayed_usage, tumbling_start


def usage(times, held, could, **window):
    window = {"since_s": 0.0, "now_s": 10.0, "half_life_s": None} | window
    return decayed_usage(
        np.array(times, dtype=float),
        np.array(held, dtype=float).reshape(len(times), 1, -1),
        np.array(could, dtype=float).reshape(len(times), 1),
        **window,
    )[0].tolist()


def test_usage_is_held_over_could() -> None:
    assert usage([1, 2, 3, 4], [[2, 0], [2, 0], [0, 4], [0, 4]], [8, 8, 8, 8]) == [0.125, 0.25]


def test_samples_outside_the_window_do_not_count() -> None:
    assert usage([1, 5, 11], [[9], [1], [9]], [10, 10, 10], since_s=1.0) == [0.1]


def test_fading_weighs_both_sides() -> None:
    assert usage([9, 10], [[8], [0]], [8, 8], half_life_s=1.0) == [pytest.approx(1 / 3)]
    assert usage([1, 10], [[8], [8]], [8, 8], half_life_s=1.0) == [pytest.approx(1.0)]


def test_a_cluster_without_the_resource_has_no_usage() -> None:
    assert usage([1], [[3]], [0]) == [0.0]
    assert usage([11], [[3]], [8]) == [0.0]


def test_a_window_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(ValueError, match="before it begins"):
        usage([1], [[1]], [1], since_s=20.0)


def test_tumbling_windows_reset_every_length_after_the_anchor() -> None:
    assert tumbling_start(5.0, 10.0, 36.0) == 35.0
    assert tumbling_start(5.0, 10.0, 35.0) == 25.0
    assert tumbling_start(50.0, 10.0, 36.0) == 36.0
    with pytest.raises(ValueError, match="longer than 0 s"):
        tumbling_start(0.0, 0.0, 1.0)

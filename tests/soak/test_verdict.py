"""The verdict on a soak run names what grew, and nothing else."""

from __future__ import annotations

import pytest

from tests.soak.verdict import Sample, report


def run_with(memory_mib: list[float], cycle_ms: list[float]) -> list[Sample]:
    return [
        Sample(at_s=30.0 * number, memory_mib={"web": mib}, rows={"t": 5}, cycle_ms=ms)
        for number, (mib, ms) in enumerate(zip(memory_mib, cycle_ms, strict=True))
    ]


def test_growth_during_the_warm_up_is_none() -> None:
    assert report(run_with([50, 90, *[100.0] * 6], [5, 200, *[50.0] * 6])) == []


@pytest.mark.parametrize(
    ("memory_mib", "cycle_ms", "fault"),
    [
        ([*[100.0] * 5, *[110.0] * 3], [50.0] * 8, "memory of web grew from 100 to 110 MiB"),
        ([100.0] * 8, [*[50.0] * 5, *[90.0] * 3], "cycles grew from 50 to 90 ms"),
    ],
)
def test_growth_after_it_is_named(
    memory_mib: list[float], cycle_ms: list[float], fault: str
) -> None:
    assert report(run_with(memory_mib, cycle_ms)) == [fault]


def test_small_differences_are_noise() -> None:
    memory_mib, cycle_ms = [*[20.0] * 5, *[23.0] * 3], [*[10.0] * 5, *[25.0] * 3]
    assert report(run_with(memory_mib, cycle_ms)) == []

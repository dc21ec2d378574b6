"""Which tiers answer a range."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kaiweb.usage import tiers
from kaiweb.usage.tiers import DAY, FIVE_MINUTES, HOUR, MINUTE, RAW, Piece

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


def at(day: int, hour: int = 0, minute: int = 0) -> datetime:
    return datetime(2026, 11, day, hour, minute, tzinfo=UTC)


def test_a_range_is_divided_into_the_coarsest_spans_that_are_complete() -> None:
    rolled_up_to = {
        DAY: at(29),
        HOUR: at(29, 11),
        FIVE_MINUTES: at(29, 11, 55),
        MINUTE: at(29, 11, 58),
    }
    assert tiers.pieces(at(26, 22), NOON, rolled_up_to, step=DAY) == [
        Piece(HOUR, at(26, 22), at(27)),
        Piece(DAY, at(27), at(29)),
        Piece(HOUR, at(29), at(29, 11)),
        Piece(FIVE_MINUTES, at(29, 11), at(29, 11, 55)),
        Piece(MINUTE, at(29, 11, 55), at(29, 11, 58)),
        Piece(RAW, at(29, 11, 58), NOON),
    ]


def test_no_piece_is_coarser_than_the_step() -> None:
    rolled_up_to = {DAY: at(29), HOUR: at(29, 12)}
    assert tiers.pieces(at(28), NOON, rolled_up_to, step=HOUR) == [Piece(HOUR, at(28), NOON)]


def test_without_sums_the_samples_answer() -> None:
    assert tiers.pieces(at(28), NOON, {}, step=DAY) == [Piece(RAW, at(28), NOON)]


def test_the_step_grows_with_the_age_and_the_length_of_a_range() -> None:
    def step(ago: timedelta, length: timedelta, points: int = 1500) -> int:
        start = NOON - ago
        return tiers.step_for(start, start + length, NOON, max_points=points)

    hour, day = timedelta(hours=1), timedelta(days=1)
    assert step(hour, hour) == MINUTE
    assert step(hour, hour, points=59) == FIVE_MINUTES
    assert step(4 * hour, hour) == FIVE_MINUTES
    assert step(7 * day, 7 * day) == HOUR
    assert step(7 * day, 7 * day, points=100) == DAY
    assert step(90 * day, day) == DAY

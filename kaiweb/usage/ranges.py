"""A range of time in steps, and the observed seconds of each step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from kaiweb.usage import tiers
from kaiweb.usage.models import Span
from kaiweb.usage.rollup import rolled_up_to
from kaiweb.usage.tiers import Piece


@dataclass(frozen=True, slots=True)
class Range:
    """Steps of `step` seconds from `start`; `end` may cut the last one short."""

    start: datetime
    end: datetime
    step: int

    @classmethod
    def of(
        cls, start: datetime, end: datetime, now: datetime, *, max_points: int, step: int = 0
    ) -> Range:
        """Return the range from the start of a step on.

        `step` becomes coarser if its rows are not kept since `start` or if there would be more than `max_points`.
        """
        oldest = now - tiers.retention(tiers.DAY)
        start, end = max(start, oldest), min(end, now)
        step = max(step, tiers.step_for(start, end, now, max_points=max_points))
        return cls(tiers.floor(start, step), end, step)

    @property
    def times(self) -> list[datetime]:
        """Return the start of each step."""
        return list(_steps(self.start, self.end, timedelta(seconds=self.step)))

    def index(self, moment: datetime) -> int:
        """Return the number of the step that contains the moment."""
        return int((moment - self.start).total_seconds() // self.step)

    def pieces(self) -> list[Piece]:
        """Return the parts of the range with the tiers that answer them."""
        return tiers.pieces(self.start, self.end, rolled_up_to(), step=self.step)


def _steps(start: datetime, end: datetime, step: timedelta) -> Iterator[datetime]:
    while start < end:
        yield start
        start += step


def within(piece: Piece) -> dict[str, object]:
    """Return the filter for the rows of a piece."""
    return {"tier": piece.tier, "start__gte": piece.start, "start__lt": piece.end}


def covered_seconds(span: Range, pieces: list[Piece]) -> list[float]:
    """Return the observed seconds of each step; 0 is a gap."""
    covered = [0.0] * len(span.times)
    for piece in pieces:
        rows = Span.objects.filter(**within(piece)).order_by()
        for start, seconds in rows.values_list("start", "covered_s"):
            covered[span.index(start)] += seconds
    return covered

"""A range of time in steps, and the observed seconds of each step."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet, Sum

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


def rows_in(piece: Piece, model: type[Any], queues: Collection[str] | None = None) -> QuerySet[Any]:
    """Return the rows of a piece in no order; of some queues only, unless `queues` is None."""
    rows: QuerySet[Any] = model.objects.filter(**piece.where()).order_by()
    return rows if queues is None else rows.filter(queue__in=queues)


def sums_by(
    rows: QuerySet[Any], keys: Sequence[str], columns: Sequence[str]
) -> Iterable[tuple[Any, ...]]:
    """Return the values of some columns and, for each combination of them, the sums of others."""
    sums: Iterable[tuple[Any, ...]] = rows.values_list(*keys).annotate(
        **{f"sum_{column}": Sum(column) for column in columns}
    )
    return sums


def covered_seconds(span: Range, pieces: list[Piece]) -> list[float]:
    """Return the observed seconds of each step; 0 is a gap."""
    covered = [0.0] * len(span.times)
    for piece in pieces:
        for start, seconds in rows_in(piece, Span).values_list("start", "covered_s"):
            covered[span.index(start)] += seconds
    return covered

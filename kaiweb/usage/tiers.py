"""The tiers of the history: how long their spans are, how long they are kept, and which of them answer a range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.conf import settings

RAW, MINUTE, FIVE_MINUTES, HOUR, DAY = 0, 60, 300, 3600, 86_400
#: From the finest to the coarsest; each length is a multiple of the one before.
ORDER = (RAW, MINUTE, FIVE_MINUTES, HOUR, DAY)
#: The tiers that may be the steps of a series: not the samples, whose times are irregular.
STEPS = ORDER[1:]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def retention(tier: int) -> timedelta:
    """Return how long rows of a tier are kept."""
    return {
        RAW: timedelta(minutes=15),
        MINUTE: timedelta(hours=3),
        FIVE_MINUTES: timedelta(days=2),
        HOUR: timedelta(days=settings.KAIWEB_USAGE_HOURLY_DAYS),
        DAY: timedelta(days=settings.KAIWEB_USAGE_DAILY_DAYS),
    }[tier]


def floor(moment: datetime, tier: int) -> datetime:
    """Return the start of the span that contains the moment."""
    if tier == RAW:
        return moment
    return moment - (moment - EPOCH) % timedelta(seconds=tier)


def ceil(moment: datetime, tier: int) -> datetime:
    """Return the first start of a span at or after the moment."""
    start = floor(moment, tier)
    return start if start == moment else start + timedelta(seconds=tier)


def step_for(start: datetime, end: datetime, now: datetime, *, max_points: int) -> int:
    """Return the finest step for which rows are kept since `start` and that needs no more points than allowed."""
    for step in STEPS:
        is_kept = now - start <= retention(step)
        if is_kept and (end - start) / timedelta(seconds=step) <= max_points:
            return step
    return DAY


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a range and the tier whose rows answer it."""

    tier: int
    start: datetime
    end: datetime

    def where(self) -> dict[str, object]:
        """Return the filter for its rows."""
        return {"tier": self.tier, "start__gte": self.start, "start__lt": self.end}


def pieces(
    start: datetime, end: datetime, rolled_up_to: Mapping[int, datetime], *, step: int
) -> list[Piece]:
    """Divide a range among the tiers, each piece as coarse as possible but not coarser than `step`.

    Parameters
    ----------
    rolled_up_to : the end of the last span of each tier; what is newer is in finer tiers only
    """
    usable = [tier for tier in ORDER if tier <= step]
    return _divide(start, end, rolled_up_to, usable)


def _divide(
    start: datetime, end: datetime, rolled_up_to: Mapping[int, datetime], usable: Sequence[int]
) -> list[Piece]:
    """Answer the middle of a range by the coarsest usable tier, and what is left on both sides by finer ones."""
    if start >= end:
        return []
    *finer, tier = usable
    if tier == RAW:
        return [Piece(RAW, start, end)]
    first = ceil(start, tier)
    last = min(floor(end, tier), rolled_up_to.get(tier, EPOCH))
    if first >= last:
        return _divide(start, end, rolled_up_to, finer)
    return [
        *_divide(start, first, rolled_up_to, finer),
        Piece(tier, first, last),
        *_divide(last, end, rolled_up_to, finer),
    ]

"""Sum up fine spans to coarser ones, and delete what is older than its tier is kept.

A span is summed up once, when all samples that may fall into it have been written. The sums of a span and the row
that says it is done are one transaction.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from django.db import transaction
from django.db.models import Exists, Max, Model, OuterRef, Sum

from kaiweb.usage import tiers
from kaiweb.usage.models import ModelUse, OwnerUse, QueueBounds, QueueUse, Span
from kaiweb.usage.sampler import longest_interval
from kaiweb.utilisation.models import UtilisationUse

SUMMED: tuple[type[Any], ...] = (QueueUse, OwnerUse, ModelUse, UtilisationUse)
TRIMMED: tuple[type[Any], ...] = (*SUMMED, Span)


def rolled_up_to() -> dict[int, datetime]:
    """Return the end of the last span of each tier that has one."""
    rows = Span.objects.exclude(tier=tiers.RAW).order_by().values_list("tier")
    return {tier: last + timedelta(seconds=tier) for tier, last in rows.annotate(last=Max("start"))}


def roll_up(now: datetime) -> int:
    """Write every span that is complete and not yet written; return how many."""
    complete_until = now - longest_interval()
    rolled_up_until = rolled_up_to()
    written = 0
    for fine, coarse in pairwise(tiers.ORDER):
        for start in _due(fine, coarse, rolled_up_until.get(coarse, tiers.EPOCH), complete_until):
            _sum_up(fine, coarse, start)
            written += 1
    return written


def _due(
    fine: int, coarse: int, rolled_up_until: datetime, complete_until: datetime
) -> list[datetime]:
    """Return the starts of the coarse spans that are complete and not yet written."""
    end = tiers.floor(complete_until, coarse)
    spans = Span.objects.filter(tier=fine, start__gte=rolled_up_until, start__lt=end)
    starts = spans.order_by("start").values_list("start", flat=True)
    return sorted({tiers.floor(start, coarse) for start in starts})


@transaction.atomic
def _sum_up(fine: int, coarse: int, start: datetime) -> None:
    within = tiers.Piece(fine, start, start + timedelta(seconds=coarse)).where()
    for model in SUMMED:
        rows = model.objects.filter(**within).order_by().values(*model.KEYS)
        sums = rows.annotate(**{f"sum_{name}": Sum(name) for name in model.SUMS})
        model.objects.bulk_create(_row(model, coarse, start, values) for values in sums)
    covered = Span.objects.filter(**within).aggregate(total=Sum("covered_s"))["total"]
    Span.objects.create(tier=coarse, start=start, covered_s=covered)


def _row(model: type[Any], tier: int, start: datetime, values: dict[str, Any]) -> Model:
    columns = {name.removeprefix("sum_"): value for name, value in values.items()}
    row: Model = model(tier=tier, start=start, **columns)
    return row


def trim(now: datetime) -> int:
    """Delete rows that are older than their tier is kept and already part of the next one; return how many."""
    rolled_up_until = rolled_up_to()
    deleted = 0
    for index, tier in enumerate(tiers.ORDER):
        cutoff = now - tiers.retention(tier)
        if tier != tiers.DAY:
            cutoff = min(cutoff, rolled_up_until.get(tiers.ORDER[index + 1], tiers.EPOCH))
        for model in TRIMMED:
            count, _by_model = model.objects.filter(tier=tier, start__lt=cutoff).delete()
            deleted += count
    return deleted + _trim_bounds(now - tiers.retention(tiers.DAY))


def _trim_bounds(cutoff: datetime) -> int:
    """Delete bounds that ended before the cutoff; the last ones before it still hold after it."""
    later = QueueBounds.objects.filter(
        queue=OuterRef("queue"), at__gt=OuterRef("at"), at__lte=cutoff
    )
    old = QueueBounds.objects.filter(Exists(later), at__lt=cutoff)
    # A few at a time; the rest is deleted with the next calls.
    count, _by_model = QueueBounds.objects.filter(
        pk__in=list(old.values_list("pk", flat=True)[:1000])
    ).delete()
    return count

"""Reports of whole months (UTC): who used how many GPU-hours, and what they cost."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, ClassVar

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api.base import Shows, View
from kaiweb.api.errors import Problem
from kaiweb.api.http import parameters, periods, tables
from kaiweb.api.schema import usage as schema
from kaiweb.api.views.history import as_tables, counted_queues
from kaiweb.api.views.usage import REPORT_PARAMETERS, by_of, report
from kaiweb.items.amounts import timestamp
from kaiweb.usage import tiers
from kaiweb.usage.models import Span
from kaiweb.usage.ranges import Range
from queues import selectors
from queues.tree.shape import shown


class Reports(View):
    """The collection."""

    shows = Shows.ITSELF

    @extend_schema(operation_id="listReports", responses=schema.ReportList)
    def get(self, request: Request) -> Response:
        """List the months in which usage was observed, newest first; a closed one changes no more."""
        now = timezone.now()
        return Response({"items": [_item(start, now) for start in _months(now)]})


class ReportDetail(View):
    """One month."""

    shows = Shows.ITSELF
    renderer_classes = tables.RENDERERS
    accepts: ClassVar = {"get": (*REPORT_PARAMETERS, "by", "queue")}
    repeatable: ClassVar = frozenset({"queue"})

    @extend_schema(
        operation_id="getReport",
        parameters=parameters.MONTH_FILTERS,
        responses=as_tables(schema.UsageReport),
    )
    def get(self, request: Request, month: str) -> Response:
        """Return who used how much in a month, e.g. `2026-11`, as `/usage` does; tables hold all rows."""
        now = timezone.now()
        start = {_name(start): start for start in _months(now)}.get(month)
        if start is None:
            raise Problem("not-found", f"there is no report of '{shown(month)}'")
        span = Range.of(start, _following(start), now, max_points=periods.MAX_POINTS)
        tree = selectors.tree()
        return report(request, by_of(request), tree, counted_queues(request, tree), span)


def _months(now: datetime) -> Iterator[datetime]:
    """Yield the starts of the months with observations that are kept, newest first."""
    oldest = Span.objects.order_by("start").values_list("start", flat=True).first()
    if oldest is None:
        return
    oldest = max(oldest, now - tiers.retention(tiers.DAY))
    start = now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    while _following(start) > oldest:
        yield start
        start = _preceding(start)


def _following(start: datetime) -> datetime:
    year, month = divmod(start.year * 12 + start.month, 12)
    return start.replace(year=year, month=month + 1)


def _preceding(start: datetime) -> datetime:
    year, month = divmod(start.year * 12 + start.month - 2, 12)
    return start.replace(year=year, month=month + 1)


def _name(start: datetime) -> str:
    return start.strftime("%Y-%m")


def _item(start: datetime, now: datetime) -> dict[str, Any]:
    end = _following(start)
    return {
        "month": _name(start),
        "from": timestamp(start),
        "to": timestamp(end),
        "closed": end <= now,
    }

"""Usage reports: GPU-hours in quota and over it, and their cost, by queue, user or GPU model."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

from django.db import models
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api.base import Shows, View
from kaiweb.api.errors import bad_parameter
from kaiweb.api.http import cursors, pagination, parameters, periods, tables
from kaiweb.api.schema import usage as schema
from kaiweb.api.views.history import as_tables, counted_queues, refuse_hidden_use
from kaiweb.items.amounts import rounded, timestamp
from kaiweb.items.utilisation import source_item
from kaiweb.usage.prices import price_list
from kaiweb.usage.ranges import Range, covered_seconds
from kaiweb.usage.totals import By, capacity, usage_items
from queues import selectors
from queues.tree import hierarchy

HOURS = ("gpuHours", "inQuotaHours", "overQuotaHours", "waitingHours")
SORTING = pagination.Sorting(
    key="key", columns={"key": "key", **{name: name for name in HOURS}}, default="-gpuHours"
)
COLUMNS = [*HOURS, "allocatedButIdleHours", "utilisationUnknownHours", "cost"]
REPORT_PARAMETERS = (*pagination.PARAMETERS, "format")
PARAMETERS = (*REPORT_PARAMETERS, *periods.PARAMETERS)


class UsageReport(View):
    """The whole cluster, or some queues with all below them."""

    shows = Shows.ITSELF
    renderer_classes = tables.RENDERERS
    accepts: ClassVar = {"get": (*PARAMETERS, "by", "queue")}
    repeatable: ClassVar = frozenset({"queue"})

    @extend_schema(
        operation_id="getUsage",
        parameters=parameters.USAGE_FILTERS,
        responses=as_tables(schema.UsageReport),
    )
    def get(self, request: Request) -> Response:
        """Return who used how much; tables hold all rows, JSON comes in pages."""
        tree = selectors.tree()
        span = periods.range_of(request)
        return report(request, by_of(request), tree, counted_queues(request, tree), span)


class QueueUsage(View):
    """One queue and all queues below it."""

    shows = Shows.QUEUE
    renderer_classes = tables.RENDERERS
    accepts: ClassVar = {"get": PARAMETERS}

    @extend_schema(
        operation_id="getQueueUsage",
        parameters=parameters.QUEUE_USAGE_FILTERS,
        responses=as_tables(schema.UsageReport),
    )
    def get(self, request: Request, name: str) -> Response:
        """Return which users used how much of the queue."""
        tree = selectors.tree()
        refuse_hidden_use(request, tree, [name])
        span = periods.range_of(request)
        return report(request, By.OWNER, tree, hierarchy.subtree(tree, name), span)


def by_of(request: Request) -> By:
    """Return what the rows stand for, by the parameter `by`."""
    raw = request.query_params.get("by", By.QUEUE)
    allowed = [by.value for by in By]
    if raw not in allowed:
        raise bad_parameter("by", f"expected one of {', '.join(allowed)}", raw, allowed)
    return By(raw)


def report(
    request: Request,
    by: By,
    tree: hierarchy.Tree,
    queues: Collection[str] | None,
    span: Range,
) -> Response:
    """Return the report of a span: a page of it, or a table of all rows."""
    kind = tables.table_format(request)
    order = SORTING.read(request)
    items, total = usage_items(span, by, tree, queues)
    column = order.removeprefix("-")
    items.sort(key=lambda item: item[column], reverse=order.startswith("-"))
    if kind:
        rows = [{by.value: item["key"], **item} for item in items]
        return tables.table([by.value, *COLUMNS], rows, f"usage-by-{by.value}", kind)
    page, following = _page(request, order, items)
    body = {
        "items": pagination.only_fields(request, page),
        "next": following,
        "by": by.value,
        "from": timestamp(span.start),
        "to": timestamp(span.end),
        "coveredSeconds": _covered(span),
        "total": total,
        "cluster": capacity(span),
        "utilisation": source_item(),
        "currency": price_list().currency,
        "asOf": pagination.as_of(),
    }
    if pagination.is_counted(request):
        body["count"] = len(items)
    return Response(body)


def _covered(span: Range) -> float:
    return rounded(sum(covered_seconds(span, span.pieces())))


def _page(
    request: Request, order: str, items: list[dict[str, Any]]
) -> tuple[list[dict[str, Any]], str | None]:
    """Return one page of the sorted rows and the cursor of the next; equal values are in the order of keys."""
    limit = pagination.limit_of(request)
    column = order.removeprefix("-")
    cursor = request.query_params.get("cursor")
    if cursor:
        items = _after(cursor, order, items)
    page = items[:limit]
    if len(items) <= limit:
        return page, None
    return page, cursors.encode(order, page[-1][column], page[-1]["key"])


def _after(cursor: str, order: str, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    column = order.removeprefix("-")
    names: models.Field[Any, Any] = models.CharField()
    values: models.Field[Any, Any] = names if column == "key" else models.FloatField()
    value, key = cursors.decode(cursor, order, values, names)
    sign = -1 if order.startswith("-") else 1
    if column == "key":
        return [item for item in items if (item["key"] < key if sign < 0 else item["key"] > key)]
    return [item for item in items if (sign * item[column], item["key"]) > (sign * value, key)]

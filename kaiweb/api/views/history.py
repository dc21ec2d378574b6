"""History of queues and of the cluster: averages and GPU-hours of each step, null where nothing was observed."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, ClassVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api.base import Shows, View, caller, caller_visibility, words
from kaiweb.api.errors import Problem, bad_parameter
from kaiweb.api.http import parameters, periods, tables
from kaiweb.api.schema import usage as schema
from kaiweb.items.amounts import rounded
from kaiweb.items.visibility import use_visibility_of
from kaiweb.usage import events, series
from kaiweb.usage.models import QueueDay
from kaiweb.usage.ranges import Range
from queues import selectors
from queues.tree import hierarchy
from queues.tree.shape import shown

MAX_NUMBERS = 60_000
MAX_QUEUES = 200
CSV = (200, "text/csv")
PARQUET = (200, "application/vnd.apache.parquet")
JSON = (200, "application/json")


def as_tables(answer: Any) -> dict[Any, Any]:
    """Return the responses of an operation that also answers with CSV and Parquet."""
    return {JSON: answer, CSV: OpenApiTypes.STR, PARQUET: OpenApiTypes.BINARY}


def refuse_hidden_use(request: Request, tree: hierarchy.Tree, names: Iterable[str]) -> None:
    """Refuse if the caller may not see the use of one of these queues."""
    use = use_visibility_of(caller(request), lambda: tree)
    for name in names:
        if name not in tree or not caller_visibility(request).shows(name):
            raise Problem("not-found", f"queue '{shown(name)}' does not exist")
        if not use.shows(name):
            raise Problem("forbidden", f"you may not see the use of queue '{name}'")


def counted_queues(request: Request, tree: hierarchy.Tree) -> Collection[str] | None:
    """Return the queues whose work counts: those of the parameter `queue` with all below; None for all."""
    names = words(request, "queue")
    if not names:
        return use_visibility_of(caller(request), lambda: tree).queues
    refuse_hidden_use(request, tree, names)
    return set().union(*(hierarchy.subtree(tree, root) for root in names))


class QueuesHistory(View):
    """Several queues in one answer: what sparklines and comparisons need."""

    shows = Shows.ITSELF
    renderer_classes = tables.RENDERERS
    accepts: ClassVar = {"get": (*periods.PARAMETERS, "queue", "fields", "format")}
    repeatable: ClassVar = frozenset({"queue", "fields"})

    @extend_schema(
        operation_id="getQueuesHistory",
        parameters=parameters.QUEUE_SERIES_FILTERS,
        responses=as_tables(schema.QueuesHistory),
    )
    def get(self, request: Request) -> Response:
        """Return average GPUs of the queues in each step, and quota and limit at its end."""
        kind = tables.table_format(request)
        tree = selectors.tree()
        names = list(dict.fromkeys(words(request, "queue")))
        refuse_hidden_use(request, tree, names)
        if not 1 <= len(names) <= MAX_QUEUES:
            raise bad_parameter("queue", f"expected 1 to {MAX_QUEUES} queues", str(len(names)))
        fields = words(request, "fields") or list(series.FIELDS)
        unknown = sorted(set(fields) - set(series.FIELDS))
        if unknown:
            expected = f"expected of {', '.join(series.FIELDS)}"
            raise bad_parameter("fields", expected, unknown[0], list(series.FIELDS))
        span = periods.range_of(request)
        if len(names) * len(span.times) > MAX_NUMBERS:
            expected = f"expected at most {MAX_NUMBERS} numbers in an answer"
            raise bad_parameter("step", f"{expected}; name a longer step", str(span.step))
        answer = series.queue_series(names, span, fields)
        if not kind:
            return Response(answer)
        columns = ["time", "queue", "coveredSeconds", *(f for f in series.FIELDS if f in fields)]
        return tables.table(columns, _series_rows(answer, columns[3:]), "queue-history", kind)


def _series_rows(answer: dict[str, Any], columns: list[str]) -> list[dict[str, Any]]:
    return [
        {
            "time": time,
            "queue": one_queue["queue"],
            "coveredSeconds": answer["coveredSeconds"][step],
            **{column: one_queue[column][step] for column in columns},
        }
        for one_queue in answer["series"]
        for step, time in enumerate(answer["times"])
    ]


class QueueHistory(View):
    """One queue."""

    shows = Shows.QUEUE
    accepts: ClassVar = {"get": periods.PARAMETERS}

    @extend_schema(
        operation_id="getQueueHistory", parameters=parameters.PERIOD, responses=schema.QueueHistory
    )
    def get(self, request: Request, name: str) -> Response:
        """Return the series of the queue, and its waiting times and evictions by day (UTC)."""
        tree = selectors.tree()
        refuse_hidden_use(request, tree, [name])
        span = periods.range_of(request)
        return Response({**series.queue_series([name], span), "days": _days(name, span, tree)})


def _days(name: str, span: Range, tree: hierarchy.Tree) -> list[dict[str, Any]]:
    first, last = span.start.date(), span.end.date()
    closed = list(QueueDay.objects.filter(queue=name, day__gte=first, day__lte=last))
    open_days = [
        day
        for day in events.open_days(span.end)
        if first <= day <= last and all(row.day != day for row in closed)
    ]
    counted = [row for day in open_days for row in events.count_day(day, tree) if row.queue == name]
    return [_day_item(row) for row in sorted([*closed, *counted], key=lambda row: row.day)]


def _day_item(row: QueueDay) -> dict[str, Any]:
    return {
        "day": row.day.isoformat(),
        "starts": row.starts,
        "evictions": row.evictions,
        "waitedP50Seconds": _seconds(row.waited_p50_s),
        "waitedP90Seconds": _seconds(row.waited_p90_s),
        "waitedMaxSeconds": _seconds(row.waited_max_s),
    }


def _seconds(value: float | None) -> float | None:
    return None if value is None else rounded(value)


class UsageHistory(View):
    """GPU-hours of each step."""

    shows = Shows.ITSELF
    renderer_classes = tables.RENDERERS
    accepts: ClassVar = {"get": (*periods.PARAMETERS, "queue", "format")}
    repeatable: ClassVar = frozenset({"queue"})

    @extend_schema(
        operation_id="getUsageHistory",
        parameters=parameters.USAGE_SERIES_FILTERS,
        responses=as_tables(schema.UsageHistory),
    )
    def get(self, request: Request) -> Response:
        """Return GPU-hours in quota, over quota, waited for, and idle in the whole cluster."""
        kind = tables.table_format(request)
        queues = counted_queues(request, selectors.tree())
        answer = series.usage_series(periods.range_of(request), queues)
        if not kind:
            return Response(answer)
        columns = [name for name in answer if name.endswith("Hours")]
        rows = [
            {"time": time, **{column: answer[column][step] for column in columns}}
            for step, time in enumerate(answer["times"])
        ]
        return tables.table(["time", *columns], rows, "usage-history", kind)

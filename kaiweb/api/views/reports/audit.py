"""The audit log: who did what to which object, when and why, with the values before and after."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api.base import Shows, View, caller_visibility, filtered
from kaiweb.api.http import pagination, parameters, periods, tables
from kaiweb.api.schema import changes as schema
from kaiweb.api.views.history import as_tables
from kaiweb.api.writes import require_admin
from kaiweb.items.amounts import timestamp
from queues.models import QuotaChange

PERIOD = ("since", "until")
SORTING = pagination.Sorting(key="id", columns={"at": "at"}, default="-at")
FILTERS = ("kind", "queue", "actor", "state")
COLUMNS = (
    "id", "at", "actor", "kind", "queue", "target", "action", "state", "reason", "requestId", "diff",
)  # fmt: skip
#: An export holds at most so many entries, the newest ones; `since` and `until` divide a longer log.
MAX_EXPORTED = 100_000


class Audit(View):
    """The collection."""

    shows = Shows.ITSELF
    renderer_classes = tables.RENDERERS
    accepts: ClassVar = {"get": (*pagination.PARAMETERS, *FILTERS, *PERIOD, "format")}
    repeatable: ClassVar = frozenset(FILTERS)

    @extend_schema(
        operation_id="listAudit",
        parameters=parameters.AUDIT_FILTERS,
        responses=as_tables(schema.AuditList),
    )
    def get(self, request: Request) -> Response:
        """List writes, newest first; for admins also as tables, which hold up to 100,000 entries."""
        kind = tables.table_format(request)
        rows = filtered(
            request, caller_visibility(request).rows(QuotaChange.objects.all()), FILTERS
        )
        since, until = (periods.moment(request, name) for name in PERIOD)
        if since is not None:
            rows = rows.filter(at__gte=since)
        if until is not None:
            rows = rows.filter(at__lt=until)
        if kind:
            require_admin(request, "exporting the audit log")
            return _export(request, rows, kind)
        return pagination.answer(request, rows, SORTING, _items)


def _export(request: Request, rows: QuerySet[QuotaChange], kind: str) -> Response:
    entries = rows.order_by(SORTING.read(request), SORTING.key)[:MAX_EXPORTED].iterator(
        chunk_size=2000
    )
    items = [{**_item(row), "diff": json.dumps(row.diff)} for row in entries]
    return tables.table(list(COLUMNS), items, "audit", kind)


def _items(rows: Sequence[QuotaChange]) -> list[dict[str, Any]]:
    return [_item(row) for row in rows]


def _item(row: QuotaChange) -> dict[str, Any]:
    return {
        "id": row.pk,
        "at": timestamp(row.at),
        "actor": row.actor,
        "kind": row.kind,
        "queue": row.queue,
        "target": row.target,
        "action": row.action,
        "state": row.state,
        "reason": row.reason,
        "requestId": row.request_id,
        "diff": row.diff,
    }

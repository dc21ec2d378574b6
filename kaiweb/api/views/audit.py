"""The audit log: who did what to which object, when and why, with the values before and after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api.base import Shows, View, caller_visibility, filtered
from kaiweb.api.http import pagination, parameters, periods
from kaiweb.api.schema import changes as schema
from kaiweb.items.amounts import timestamp
from queues.models import QuotaChange

PERIOD = ("since", "until")
SORTING = pagination.Sorting(key="id", columns={"at": "at"}, default="-at")
FILTERS = ("kind", "queue", "actor", "state")


class Audit(View):
    """The collection."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"get": (*pagination.PARAMETERS, *FILTERS, *PERIOD)}
    repeatable: ClassVar = frozenset(FILTERS)

    @extend_schema(
        operation_id="listAudit",
        parameters=parameters.AUDIT_FILTERS,
        responses=schema.AuditList,
    )
    def get(self, request: Request) -> Response:
        """List writes, newest first."""
        rows = filtered(
            request, caller_visibility(request).rows(QuotaChange.objects.all()), FILTERS
        )
        since, until = (periods.moment(request, name) for name in PERIOD)
        if since is not None:
            rows = rows.filter(at__gte=since)
        if until is not None:
            rows = rows.filter(at__lt=until)
        return pagination.answer(request, rows, SORTING, _items)


def _items(rows: Sequence[QuotaChange]) -> list[dict[str, Any]]:
    return [
        {
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
        for row in rows
    ]

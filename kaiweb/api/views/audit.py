"""The audit log of writes to queues: who, what, when and why, with the values before and after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api.base import View, filtered
from kaiweb.api.http import pagination, parameters
from kaiweb.api.schema import changes as schema
from kaiweb.items.amounts import timestamp
from queues.models import QuotaChange

SORTING = pagination.Sorting(key="id", columns={"at": "at"}, default="-at")


class Audit(View):
    """The collection."""

    accepts: ClassVar = {"get": (*pagination.PARAMETERS, "queue", "actor", "state")}
    repeatable: ClassVar = frozenset({"queue", "actor", "state"})

    @extend_schema(
        operation_id="listAudit",
        parameters=parameters.AUDIT_FILTERS,
        responses=schema.AuditList,
    )
    def get(self, request: Request) -> Response:
        """List writes, newest first."""
        rows = filtered(request, QuotaChange.objects.all(), ("queue", "actor", "state"))
        return pagination.answer(request, rows, SORTING, _items)


def _items(rows: Sequence[QuotaChange]) -> list[dict[str, Any]]:
    return [
        {
            "id": row.pk,
            "at": timestamp(row.at),
            "actor": row.actor,
            "queue": row.queue,
            "action": row.action,
            "state": row.state,
            "reason": row.reason,
            "requestId": row.request_id,
            "diff": row.diff,
        }
        for row in rows
    ]

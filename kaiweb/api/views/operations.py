"""Operations: what goes on after a request, under one address, whatever it is about.

There are two kinds: simulations (`simulation-12`), and change sets that are or were applied (`change-7`). Each has
a resource of its own with all details; here are the state and the end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api.base import Shows, View, words
from kaiweb.api.bounded_wait import wait_until
from kaiweb.api.errors import Problem, bad_parameter
from kaiweb.api.http import parameters
from kaiweb.api.schema import operations as schema
from kaiweb.api.views.simulations import PREFER, preferred_wait_s, visible_simulations
from kaiweb.api.visible_changes import visible_changes
from kaiweb.items.amounts import timestamp
from kaiweb.models import ChangeSet, ChangeSetState, Simulation
from kaiweb.planning import simulations
from queues.selectors import row_with_number
from queues.tree.shape import shown

OPERATION = re.compile(r"(simulation|change)-(\d{1,18})")
UNDER_WAY = ("queued", "running")
STATES = (*UNDER_WAY, "done", "failed")
#: State of a change set -> that of its operation; a change set in any other state was not applied.
CHANGE_STATES: Mapping[str, str] = {
    ChangeSetState.APPLYING: "running",
    ChangeSetState.APPLIED: "done",
    ChangeSetState.ROLLED_BACK: "failed",
    ChangeSetState.STUCK: "failed",
}
LISTED = 200
LISTED_FOR = timedelta(days=7)


class Operations(View):
    """The collection."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"get": ("state",)}
    repeatable: ClassVar = frozenset({"state"})

    @extend_schema(
        operation_id="listOperations",
        parameters=[parameters.OPERATION_STATES],
        responses=schema.OperationList,
    )
    def get(self, request: Request) -> Response:
        """List the operations of the last seven days, newest first, at most 200; `state=queued,running` is under way."""
        states = words(request, "state") or list(STATES)
        unknown = sorted(set(states) - set(STATES))
        if unknown:
            raise bad_parameter("state", f"expected {', '.join(STATES)}", unknown[0], [*STATES])
        since = timezone.now() - LISTED_FOR
        simulated = visible_simulations(request).filter(created_at__gte=since)
        applied = _applied(request).filter(changed_at__gte=since)
        items = [
            *(_of_simulation(row) for row in simulated.defer("question", "answer")[:LISTED]),
            *(_of_change(row) for row in applied.order_by("-changed_at")[:LISTED]),
        ]
        items = sorted(
            (item for item in items if item["state"] in states),
            key=lambda item: item["startedAt"],
            reverse=True,
        )
        return Response({"items": items[:LISTED]})


class OperationDetail(View):
    """One operation."""

    shows = Shows.ITSELF

    @extend_schema(operation_id="getOperation", parameters=[PREFER], responses=schema.Operation)
    def get(self, request: Request, pk: str) -> Response:
        """Return how far it is; `Prefer: wait=20` holds the answer until it has ended."""
        item: dict[str, Any] = {}

        def has_ended() -> bool:
            nonlocal item
            item = _find(request, pk)
            return item["state"] not in UNDER_WAY

        is_over = wait_until(has_ended, timeout_s=preferred_wait_s(request))
        return Response(item, headers={} if is_over else {"Retry-After": "1"})


def _find(request: Request, name: str) -> dict[str, Any]:
    match = OPERATION.fullmatch(name)
    if match is not None:
        number = int(match[2])
        if match[1] == "simulation":
            simulation = row_with_number(visible_simulations(request), number)
            if simulation is not None:
                return _of_simulation(simulation)
        else:
            change = row_with_number(_applied(request), number)
            if change is not None:
                return _of_change(change)
    raise Problem("not-found", f"operation '{shown(name)}' does not exist (any more)")


def _applied(request: Request) -> QuerySet[ChangeSet]:
    return visible_changes(request).filter(state__in=CHANGE_STATES)


def _of_simulation(row: Simulation) -> dict[str, Any]:
    state, error = simulations.state_of(row, timezone.now())
    return {
        "id": f"simulation-{row.pk}",
        "kind": "simulation",
        "state": state,
        "author": row.author.get_username(),
        "startedAt": timestamp(row.created_at),
        "finishedAt": timestamp(row.finished_at),
        "error": error or None,
        "resource": f"/api/v1/simulations/{row.pk}",
    }


def _of_change(row: ChangeSet) -> dict[str, Any]:
    state = CHANGE_STATES[row.state]
    return {
        "id": f"change-{row.pk}",
        "kind": "change",
        "state": state,
        "author": row.author.get_username(),
        "startedAt": timestamp(row.changed_at),
        "finishedAt": None if state in UNDER_WAY else timestamp(row.changed_at),
        "error": row.error or None,
        "resource": f"/api/v1/changes/{row.pk}",
    }

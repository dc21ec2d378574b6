"""Simulations: preview edits on a copy of the cluster; check whether a workload would start."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api import idempotency
from kaiweb.api.base import Shows, View, caller, caller_visibility, flag
from kaiweb.api.bounded_wait import wait_until
from kaiweb.api.database_writes import write_database
from kaiweb.api.errors import Problem, bad_parameter
from kaiweb.api.http import pagination, parameters
from kaiweb.api.schema import simulations as schema
from kaiweb.api.visible_changes import visible_changes
from kaiweb.items.amounts import timestamp
from kaiweb.items.masks import masked_answer
from kaiweb.items.visibility import Visibility
from kaiweb.models import Simulation
from kaiweb.planning import simulations
from kaiweb.planning.hidden_names import refuse_hidden_names
from queues.access.rate_limits import RateLimit
from queues.access.rights import SIMULATE
from queues.selectors import row_with_number
from queues.tree.shape import shown
from scheduler.tools.simulate.what_if.question import read_question

SORTING = pagination.Sorting(key="id", columns={"createdAt": "created_at"}, default="-createdAt")
MAX_WAIT_S = 20
CHECK_WAIT_S = 20
PREVIEW_WAIT_S = 20
WAIT = re.compile(r"wait=(\d{1,3})")
PREFER = OpenApiParameter(
    "Prefer",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="`wait=20` holds the answer for up to 20 s until the simulation is finished.",
)
CHECK_FIELDS = ("manifests", "workload", "shard", "cycles")


class Simulations(View):
    """The collection."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"get": pagination.PARAMETERS}

    @extend_schema(
        operation_id="listSimulations",
        parameters=parameters.PAGE,
        responses=schema.SimulationList,
    )
    def get(self, request: Request) -> Response:
        """List simulations of the last seven days, newest first."""
        rows = visible_simulations(request).defer("question", "answer")
        return pagination.answer(
            request, rows, SORTING, lambda page: [_summary(row) for row in page]
        )

    @extend_schema(
        operation_id="createSimulation",
        request=schema.Question,
        parameters=[PREFER, parameters.IDEMPOTENCY_KEY],
        responses={200: schema.Simulation, 202: schema.Simulation},
    )
    def post(self, request: Request) -> Response:
        """Run the scheduler on a copy of the cluster with these edits; nothing is written."""
        wait_s = preferred_wait_s(request)
        return idempotency.answer_once(request, lambda: _start(request, request.data, wait_s))


class CheckWorkload(View):
    """One question about one workload."""

    shows = Shows.ITSELF

    @extend_schema(
        operation_id="checkWorkload",
        request=schema.WorkloadCheck,
        responses={200: schema.Simulation, 202: schema.Simulation},
    )
    def post(self, request: Request) -> Response:
        """Simulate whether a workload, as manifests or described, would start now, and what it would evict."""
        body = request.data
        if not isinstance(body, Mapping):
            raise Problem("validation", "the body: expected an object")
        unknown = sorted(set(body) - set(CHECK_FIELDS))
        if unknown:
            names = ", ".join(CHECK_FIELDS)
            raise Problem("validation", f"'{shown(unknown[0])}': expected one of {names}")
        if ("workload" in body) == ("manifests" in body):
            raise Problem("validation", "expected either workload or manifests")
        workloads: dict[str, Any] = {"manifests": body.get("manifests", [])}
        if "workload" in body:
            workloads = {"add": [body["workload"]]}
        rest: dict[str, Any] = {name: body[name] for name in ("shard", "cycles") if name in body}
        return _start(request, {**rest, "workloads": workloads}, CHECK_WAIT_S)


class SimulationDetail(View):
    """One simulation."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"delete": ("dryRun",)}

    @extend_schema(operation_id="getSimulation", responses=schema.Simulation)
    def get(self, request: Request, pk: int) -> Response:
        """Return the question, and the answer once it is there."""
        return Response(simulation_item(_find(request, pk), caller_visibility(request)))

    @extend_schema(
        operation_id="deleteSimulation",
        parameters=[parameters.ONLY_DRY_RUN],
        responses={204: None},
    )
    def delete(self, request: Request, pk: int) -> Response:
        """Delete it; only its author and admins may."""
        return write_database(request, lambda: self._delete(request, pk))

    def _delete(self, request: Request, pk: int) -> Response:
        row = _find(request, pk)
        if row.author != request.user and not caller(request).is_admin:
            raise Problem(
                "forbidden", "deleting a simulation of another user needs the right 'admin'"
            )
        row.delete()
        return Response(status=204)


def visible_simulations(request: Request) -> QuerySet[Simulation]:
    """Return all simulations; for callers who see only some queues, their own and the previews of visible changes."""
    rows = Simulation.objects.select_related("author")
    if not caller_visibility(request).is_partial:
        return rows
    previews = visible_changes(request).values("preview")
    return rows.filter(Q(author=request.user) | Q(pk__in=previews))


def _find(request: Request, pk: int) -> Simulation:
    row = row_with_number(visible_simulations(request), pk)
    if row is None:
        raise Problem("not-found", f"simulation {pk} does not exist (any more)")
    return row


def start_simulation(request: Request, body: object, wait_s: int) -> Simulation:
    """Run a simulation for the caller; return its row, finished or not, after the time at the latest.

    Raises
    ------
    Problem : the caller may not simulate, or has too many simulations, or no worker can be reached
    """
    if not caller(request).may_simulate:
        raise Problem("forbidden", f"simulating needs a token with the scope '{SIMULATE}'")
    assert isinstance(request.user, User)
    question = read_question(body)
    refuse_hidden_names(question, caller_visibility(request))
    try:
        row = simulations.request_simulation(question, request.user, timezone.now())
    except simulations.TooManySimulationsError as error:
        limit = RateLimit(
            name="simulations", quota=simulations.MAX_OF_USER, unit="unfinished-simulations"
        )
        raise Problem("rate-limited", str(error), headers=limit.refusal_headers(5)) from error
    except simulations.NoWorkerError as error:
        raise Problem("unavailable", str(error), headers={"Retry-After": "5"}) from error
    wait_until(lambda: _is_finished(row.pk), timeout_s=wait_s)
    return Simulation.objects.select_related("author").get(pk=row.pk)


def is_simulated(request: Request) -> bool:
    """Return whether the answer to a dry run is to have a preview.

    Raises
    ------
    Problem : the preview of a write that is made
    """
    if not flag(request, "simulate"):
        return False
    if not flag(request, "dryRun"):
        raise bad_parameter("simulate", "expected only together with dryRun", "true")
    return True


def preview_of(request: Request, question: object) -> dict[str, Any]:
    """Run the simulation of a dry run; return it as part of the answer, empty if none is asked for."""
    if not is_simulated(request):
        return {}
    row = start_simulation(request, question, PREVIEW_WAIT_S)
    return {
        "simulation": row.pk,
        "verdict": row.verdict or None,
        "simulated": simulation_item(row, caller_visibility(request)),
    }


def _start(request: Request, body: object, wait_s: int) -> Response:
    row = start_simulation(request, body, wait_s)
    is_finished = row.state not in simulations.UNFINISHED
    headers = {"Location": f"/api/v1/simulations/{row.pk}"}
    if not is_finished:
        headers["Retry-After"] = "1"
        headers["Link"] = f'</api/v1/operations/simulation-{row.pk}>; rel="monitor"'
    item = simulation_item(row, caller_visibility(request))
    return Response(item, status=200 if is_finished else 202, headers=headers)


def _is_finished(pk: int) -> bool:
    return Simulation.objects.filter(pk=pk).exclude(state__in=simulations.UNFINISHED).exists()


def preferred_wait_s(request: Request) -> int:
    """Return how long the caller wants the answer to be held, by the header `Prefer`."""
    match = WAIT.search(request.headers.get("Prefer", ""))
    return min(MAX_WAIT_S, int(match[1])) if match else 0


def simulation_item(row: Simulation, visibility: Visibility) -> dict[str, Any]:
    """Return a simulation with its question, and its answer as the caller may see it."""
    answer = masked_answer(row.answer, visibility) or None
    return {**_summary(row), "question": row.question, "answer": answer}


def _summary(row: Simulation) -> dict[str, Any]:
    state, error = simulations.state_of(row, timezone.now())
    return {
        "id": row.pk,
        "author": row.author.get_username(),
        "createdAt": timestamp(row.created_at),
        "finishedAt": timestamp(row.finished_at),
        "state": state,
        "verdict": row.verdict or None,
        "error": error or None,
    }

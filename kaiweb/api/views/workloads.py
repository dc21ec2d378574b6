"""Workloads (pod groups): list with filters, get, explanation, pods, order."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django.core.cache import cache
from django.db.models import Q, QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api.base import Shows, View, caller, caller_visibility, flag, words
from kaiweb.api.errors import Problem, bad_parameter
from kaiweb.api.http import pagination, parameters, periods
from kaiweb.api.schema import workloads as schema
from kaiweb.api.views.simulations import start_simulation
from kaiweb.items.explanation import explain, placement_items
from kaiweb.items.masks import masked_explanation, masked_workload
from kaiweb.items.workloads import detail_items, items_of, pod_items
from kaiweb.models import Simulation
from kaiweb.planning import remedies
from kaiweb.utilisation.current import workload_rows
from queues import selectors
from queues.access.rights import SIMULATE
from queues.models import PodGroup, WorkloadState
from queues.tree import hierarchy

SORTING = pagination.Sorting(
    key="key",
    columns={"name": "key", "createdAt": "created_at", "gpu": "gpu", "evictions": "evictions"},
    default="name",
)
ORDER = pagination.Sorting(key="key", columns={"position": "position"}, default="position")
#: How long the simulations of one explanation may take together.
VERIFY_S = 15
#: How long their answer is cached.
UNBLOCKS_CACHED_S = 60
FILTERS = ("queue", "subtree", "state", "reason", "namespace", "q", "owner", "createdAfter", "idle")


class Workloads(View):
    """The collection."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"get": (*pagination.PARAMETERS, *FILTERS)}
    repeatable: ClassVar = frozenset({"queue", "state", "reason", "namespace", "owner"})

    @extend_schema(
        operation_id="listWorkloads",
        parameters=parameters.WORKLOAD_FILTERS,
        responses=schema.WorkloadList,
    )
    def get(self, request: Request) -> Response:
        """List workloads; a comma in a filter means "or"."""
        rows = filtered(request)
        return pagination.answer(request, rows, SORTING, items_of)


def filtered(request: Request) -> QuerySet[PodGroup]:
    """Return the pod groups that the filters let through."""
    rows = caller_visibility(request).rows(PodGroup.objects.all())
    queues = set(words(request, "queue"))
    if queues:
        if flag(request, "subtree"):
            tree = selectors.tree()
            queues = set().union(*(hierarchy.subtree(tree, name) for name in queues))
        rows = rows.filter(queue__in=queues)
    states = words(request, "state")
    unknown = sorted(set(states) - set(WorkloadState.values))
    if unknown:
        valid_states = WorkloadState.values
        raise bad_parameter(
            "state", f"expected {', '.join(valid_states)}", unknown[0], valid_states
        )
    if states:
        rows = rows.filter(state__in=states)
    for name, column in (
        ("reason", "reason_code"),
        ("namespace", "namespace"),
        ("owner", "owner_name"),
    ):
        values = words(request, name)
        if values:
            rows = rows.filter(**{f"{column}__in": values})
    created_after = periods.moment(request, "createdAfter")
    if created_after is not None:
        rows = rows.filter(created_at__gte=created_after)
    if flag(request, "idle"):
        idle = workload_rows(timezone.now()).filter(idle__gt=0)
        rows = rows.filter(key__in=idle.values("workload"))
    text = request.query_params.get("q", "")
    if text:
        rows = rows.filter(
            Q(key__icontains=text) | Q(owner_name__icontains=text) | Q(user__icontains=text)
        )
    return rows


class WaitingOrder(View):
    """The order in which the scheduler serves pending workloads."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"get": (*pagination.PARAMETERS, "pool")}

    @extend_schema(
        operation_id="getOrder", parameters=parameters.ORDER_FILTERS, responses=schema.WorkloadOrder
    )
    def get(self, request: Request) -> Response:
        """Return who waits for room, next one first."""
        return _in_order(request, caller_visibility(request).rows(PodGroup.objects.all()))


class QueueWaitingOrder(View):
    """The same order for one queue and the queues below it."""

    shows = Shows.QUEUE
    accepts: ClassVar = {"get": (*pagination.PARAMETERS, "pool")}

    @extend_schema(
        operation_id="getQueueOrder",
        parameters=parameters.ORDER_FILTERS,
        responses=schema.WorkloadOrder,
    )
    def get(self, request: Request, name: str) -> Response:
        """Return who waits for room in a subtree; places count all queues."""
        tree = selectors.tree()
        if name not in tree:
            raise Problem("not-found", f"queue '{name}' does not exist")
        return _in_order(request, PodGroup.objects.filter(queue__in=hierarchy.subtree(tree, name)))


def _in_order(request: Request, rows: QuerySet[PodGroup]) -> Response:
    with_position = rows.filter(position__isnull=False)
    if "pool" in request.query_params:
        with_position = with_position.filter(pool=request.query_params["pool"])
    return pagination.answer(request, with_position, ORDER, items_of)


class WorkloadDetail(View):
    """One workload."""

    shows = Shows.WORKLOAD

    @extend_schema(operation_id="getWorkload", responses=schema.WorkloadDetail)
    def get(self, request: Request, namespace: str, name: str) -> Response:
        """Return the workload with its pods and its explanation."""
        row = find(namespace, name)
        item = masked_workload(detail_items([row.key])[0], caller_visibility(request))
        return Response(item)


class WorkloadExplain(View):
    """Why it waits."""

    shows = Shows.WORKLOAD
    accepts: ClassVar = {"get": ("verify",)}

    @extend_schema(
        operation_id="explainWorkload",
        parameters=[parameters.VERIFY],
        responses=schema.Explain,
    )
    def get(self, request: Request, namespace: str, name: str) -> Response:
        """Return the dominant reason, its evidence and stages, and why placed pods are where they are.

        With `verify` also what would unblock it.
        """
        row = find(namespace, name)
        explanation = masked_explanation(explain(row), caller_visibility(request))
        answer = {
            **explanation,
            "state": row.state,
            "placements": placement_items(row),
            "asOf": pagination.as_of(),
        }
        if flag(request, "verify"):
            answer["unblocks"] = _unblocks(request, row)
        return Response(answer)


def _unblocks(request: Request, row: PodGroup) -> Sequence[dict[str, Any]]:
    """Return what lets the workload start, as simulations have shown; cached for a minute."""
    if not caller(request).may_simulate:
        raise Problem("forbidden", f"verify needs a token with the scope '{SIMULATE}'")
    visibility = caller_visibility(request)
    key = f"unblocks:{row.uid}:{row.version}:{row.reason_code}"
    if visibility.is_partial:
        # The simulations behind the answer are shown to their author only.
        key += f":{caller(request).fingerprint}"
    items: Sequence[dict[str, Any]] | None = cache.get(key)
    if items is not None:
        return items
    deadline = time.monotonic() + VERIFY_S

    def run(question: Mapping[str, Any]) -> Simulation:
        left_s = max(0, round(deadline - time.monotonic()))
        return start_simulation(request, question, left_s)

    items = remedies.verified(row, run, visibility)
    cache.set(key, items, UNBLOCKS_CACHED_S)
    return items


class WorkloadPods(View):
    """Its pods."""

    shows = Shows.WORKLOAD

    @extend_schema(operation_id="listWorkloadPods", responses=schema.PodList)
    def get(self, request: Request, namespace: str, name: str) -> Response:
        """Return all pods, oldest first."""
        row = find(namespace, name)
        return Response({"items": pod_items([row.key]).get(row.key, [])})


def find(namespace: str, name: str) -> PodGroup:
    """Return the pod group or refuse with 404."""
    row = PodGroup.objects.filter(key=f"{namespace}/{name}").first()
    if row is None:
        raise Problem("not-found", f"workload '{namespace}/{name}' does not exist")
    return row

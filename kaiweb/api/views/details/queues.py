"""How the share of a queue came about, and who may see and edit the queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from django.contrib.auth.models import User
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api.base import Shows, View, caller, caller_visibility
from kaiweb.api.errors import Problem
from kaiweb.api.http import parameters
from kaiweb.api.schema import details as schema
from kaiweb.api.schema.queues import Queue
from kaiweb.api.writes import write_request
from kaiweb.items.queues import items_of
from kaiweb.items.shares import share_item
from kaiweb.planning.take_over import take_over
from kube.objects.meta import convert
from queues import selectors
from queues.cluster import gateway
from queues.errors import UnknownQueueError
from queues.mirror.rows import queue_row
from queues.mirror.views import QueueView
from queues.models import Role, RoleBinding
from queues.tree import hierarchy
from scheduler.tools.simulate.what_if.question import Struct, read_body


class QueueShareSteps(View):
    """The division of a queue's share."""

    shows = Shows.QUEUE
    accepts: ClassVar = {"get": ()}

    @extend_schema(operation_id="getQueueShare", responses=schema.QueueShareSteps)
    def get(self, request: Request, name: str) -> Response:
        """Return for each resource the steps that lead to the share, and what the queue would get at most.

        The steps add up to the share that the scheduler computed last.
        """
        item = share_item(name)
        if item is None:
            raise UnknownQueueError(name)
        visibility = caller_visibility(request)
        for share in item["resources"].values():
            share["siblings"] = [row for row in share["siblings"] if visibility.shows(row["queue"])]
        return Response(item)


class QueueAccess(View):
    """Who may edit a queue."""

    shows = Shows.QUEUE
    accepts: ClassVar = {"get": ()}

    @extend_schema(operation_id="getQueueAccess", responses=schema.QueueAccess)
    def get(self, request: Request, name: str) -> Response:
        """List the users with a role for this queue, and where it comes from.

        Admins may ask for all queues, editors for those they have the right to place queues below.
        """
        tree = selectors.tree()
        if name not in tree:
            raise UnknownQueueError(name)
        path = hierarchy.ancestors(tree, name)
        if not caller(request).may_place_under(path):
            raise Problem(
                "forbidden", f"listing who may edit '{name}' needs the right 'edit' on it"
            )
        return Response({"items": _access_items(path)})


class QueueTakeOver(View):
    """Take a queue over from another manager."""

    shows = Shows.QUEUE
    accepts: ClassVar = {"post": ("dryRun", "reason")}

    @extend_schema(
        operation_id="takeOverQueue",
        request=schema.TakeOver,
        parameters=[parameters.ONLY_DRY_RUN, parameters.REASON],
        responses=Queue,
    )
    def post(self, request: Request, name: str) -> Response:
        """Let kaiweb own the fields of a queue that for example a GitOps controller applies; values stay.

        Only admins may; the audit log says from whom the queue was taken.
        """
        body = read_body(request.data, _TakeOver)
        queue = take_over(gateway(), name, body.owner, write_request(request))
        return Response(items_of([queue_row(convert(queue, QueueView))])[0])


class _TakeOver(Struct, frozen=True, kw_only=True):
    owner: str


def _access_items(path: Sequence[str]) -> list[dict[str, Any]]:
    """Return the bindings that reach a queue: its own, those of its ancestors, and those of the whole cluster."""
    bindings = RoleBinding.objects.select_related("user").filter(user__is_active=True)
    rows = [
        _item(binding.user, binding.role, binding.subtree, path)
        for binding in bindings.filter(subtree__in=["", *path])
    ]
    admins = User.objects.filter(is_superuser=True, is_active=True)
    rows += [_item(user, Role.ADMIN, "", path) for user in admins]
    return sorted(rows, key=lambda row: (row["role"], row["username"], row["subtree"] or ""))


def _item(user: User, role: str, subtree: str, path: Sequence[str]) -> dict[str, Any]:
    # An editor of a queue may change what is below it, and not the queue itself.
    may_edit = role == Role.ADMIN or (role == Role.EDITOR and subtree != path[0])
    return {
        "username": user.get_username(),
        "displayName": user.get_full_name() or user.get_username(),
        "role": role,
        "subtree": subtree or None,
        "mayEdit": may_edit,
    }

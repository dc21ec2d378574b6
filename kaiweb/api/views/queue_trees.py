"""A part of the queue tree as one document: read it, and apply it as a whole through a change set."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
from django.contrib.auth.models import User
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api.base import Shows, View, flag
from kaiweb.api.change_items import finding_entries, plan_entries, refuse_errors
from kaiweb.api.errors import Problem, bad_parameter
from kaiweb.api.http import parameters
from kaiweb.api.schema import queue_trees as schema
from kaiweb.api.versions import expected_tag
from kaiweb.api.views.changes import MAX_EDITS
from kaiweb.api.views.simulations import is_simulated, preview_of
from kaiweb.api.writes import write_request
from kaiweb.models import ChangeSet
from kaiweb.planning import change_sets, drains, queue_trees
from kaiweb.planning.change_sets import Caller
from kaiweb.planning.drains import Drain
from kaiweb.planning.plan import POLICIES, WARN, Body, Plan
from queues.cluster import gateway
from queues.editing.policies import change_policy
from queues.editing.tags import tag_of_body
from queues.editing.write_requests import WriteRequest
from queues.errors import UnknownQueueError
from queues.tree.shape import shown
from scheduler.tools.simulate.what_if.question import QueueEdit

ACCEPTED = ("prune", "dryRun", "simulate", "policy", "reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Intended:
    """What a request would change: the change set (not stored yet), its plan, and what it drains."""

    change_set: ChangeSet
    plan: Plan
    drain: Drain


class QueueTree(View):
    """A queue and all queues below it."""

    shows = Shows.QUEUE
    accepts: ClassVar = {"put": ACCEPTED}

    @extend_schema(operation_id="getQueueTree", responses=schema.QueueTree)
    def get(self, request: Request, root: str) -> Response:
        """Return the editable fields of the queue and of those below, in the form that PUT takes."""
        queues = change_sets.live_queues(gateway())
        if root not in queues:
            raise UnknownQueueError(root)
        tree = queue_trees.tree_of(queues, root)
        return Response(tree, headers={"ETag": f'"{_tag(queues, root)}"'})

    @extend_schema(
        operation_id="putQueueTree",
        request=schema.QueueTree,
        parameters=parameters.TREE,
        responses=schema.QueueTreeWritten,
    )
    def put(self, request: Request, root: str) -> Response:
        """Make the queues agree with the document, in a safe order and as a whole; repeating it changes nothing.

        Fields that the document does not name stay. If-Match, with the ETag of GET, is optional.
        """
        checked, queues = write_request(request), change_sets.live_queues(gateway())
        _check_parameters(request)
        if not checked.rights.may_write_queues:
            raise Problem("forbidden", "applying a queue tree needs the right 'edit' on some queue")
        _check_match(request, queues, root)
        edits = queue_trees.edits_to(queues, root, request.data, prune=flag(request, "prune"))
        if len(edits) > MAX_EDITS:
            detail = f"expected at most {MAX_EDITS} changed queues, got {len(edits)}"
            raise Problem("validation", detail)
        intended = _intended(request, checked, queues, edits, root)
        if checked.dry_run or not edits:
            question = change_sets.preview_question(intended.change_set, intended.drain)
            return Response(_answer(intended, checked, preview_of(request, question)))
        caller = Caller(rights=checked.rights, now=checked.now, request_id=checked.request_id)
        intended.change_set.save()
        change_sets.apply(gateway(), intended.change_set, intended.plan, caller)
        change_sets.drain(gateway(), intended.change_set, intended.drain, caller)
        return Response(_answer(intended, checked, {}))


def _check_parameters(request: Request) -> None:
    policy = request.query_params.get("policy", WARN)
    if policy not in POLICIES:
        raise bad_parameter("policy", f"expected {', '.join(POLICIES)}", policy, [*POLICIES])
    is_simulated(request)  # refuses a wrong parameter before anything is written


def _check_match(request: Request, queues: dict[str, Body], root: str) -> None:
    tag = expected_tag(request, "tree", is_needed=False)
    if tag and tag != _tag(queues, root):
        detail = f"the queues below '{shown(root)}' have changed since you read them"
        raise Problem("precondition-failed", detail)


def _tag(queues: dict[str, Body], root: str) -> str:
    names = sorted(queue_trees.names_below(queues, root))
    tags = "".join(f"{name}={tag_of_body(queues[name])};" for name in names)
    return hashlib.sha256(tags.encode()).hexdigest()[:24]


def _intended(
    request: Request,
    checked: WriteRequest,
    queues: dict[str, Body],
    edits: list[QueueEdit],
    root: str,
) -> _Intended:
    """Return what the request would change.

    Raises
    ------
    Problem, MissingRightError : a rule or a right is against it
    """
    assert isinstance(request.user, User)
    change_set = ChangeSet(
        author=request.user,
        title=f"Apply queue tree {root}"[:200],
        reason=checked.reason,
        edits=msgspec.to_builtins(edits),
        tags=change_sets.tags_of(queues, edits),
        policy=request.query_params.get("policy", change_policy().below_use),
        created_at=checked.now,
        changed_at=checked.now,
    )
    plan = change_sets.plan_of(change_set, queues, checked.now)
    change_sets.require_rights(queues, plan, checked.rights)
    change_sets.require_approval(change_set, plan)
    refuse_errors(plan)
    drain = drains.drain_of(plan)
    caller = Caller(rights=checked.rights, now=checked.now)
    change_sets.require_drain(drain, caller)
    return _Intended(change_set=change_set, plan=plan, drain=drain)


def _answer(
    intended: _Intended, checked: WriteRequest, preview: Mapping[str, Any]
) -> dict[str, Any]:
    change_set, plan, drain = intended.change_set, intended.plan, intended.drain
    is_applied = change_set.pk is not None
    return {
        "changed": bool(plan.steps),
        "dryRun": checked.dry_run,
        "change": change_set.pk,
        "plan": plan_entries(plan),
        "warnings": finding_entries((*plan.warnings, *drains.warnings_of(drain))),
        "drains": change_set.drained if is_applied else drain.as_items(),
        "simulation": None,
        "verdict": None,
        **preview,
    }

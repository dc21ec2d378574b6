"""Change sets: draft, preview, request, approve or reject, apply, revert."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar, Literal

import msgspec
from django.contrib.auth.models import User
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from msgspec import Meta
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb import request_id
from kaiweb.api.base import Shows, View, caller, caller_visibility, flag
from kaiweb.api.change_items import change_item, change_summary, refuse_errors
from kaiweb.api.database_writes import write_database
from kaiweb.api.errors import Problem
from kaiweb.api.http import pagination, parameters
from kaiweb.api.http.renderers import YamlRenderer
from kaiweb.api.schema import changes as schema
from kaiweb.api.views.fresh_previews import check_preview
from kaiweb.api.views.simulations import (
    PREVIEW_WAIT_S,
    is_simulated,
    preview_of,
    start_simulation,
)
from kaiweb.api.visible_changes import visible_changes
from kaiweb.items.visibility import Visibility
from kaiweb.models import ChangeSet, ChangeSetState
from kaiweb.planning import change_sets, drains
from kaiweb.planning.change_sets import Caller
from kaiweb.planning.export import patch_of
from kaiweb.planning.hidden_names import refuse_hidden_edits
from kaiweb.planning.plan import Body
from queues.access.rights import Rights, rights_of
from queues.cluster import gateway
from queues.editing.policies import change_policy
from queues.selectors import row_with_number
from scheduler.tools.simulate.what_if.question import QueueEdit, Struct, read_body

SORTING = pagination.Sorting(key="id", columns={"createdAt": "created_at"}, default="-createdAt")
MAX_EDITS = 200

Edits = Annotated[list[QueueEdit], Meta(min_length=1, max_length=MAX_EDITS)]
Title = Annotated[str, Meta(min_length=1, max_length=200)]
PolicyName = Literal["warn", "block", "drain"]
Reason = Annotated[str, Meta(max_length=1000)]


class _Draft(Struct, frozen=True, kw_only=True):
    edits: Edits | None = None
    title: Title | None = None
    reason: Reason | None = None
    policy: PolicyName | None = None
    policies: dict[str, PolicyName] | None = None


class _Apply(Struct, frozen=True, kw_only=True):
    preview: int | None = None
    reason: Reason | None = None


class Changes(View):
    """The collection."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"get": pagination.PARAMETERS, "post": ("dryRun",)}

    @extend_schema(
        operation_id="listChanges", parameters=parameters.PAGE, responses=schema.ChangeList
    )
    def get(self, request: Request) -> Response:
        """List change sets, newest first."""
        return pagination.answer(
            request,
            visible_changes(request),
            SORTING,
            lambda page: [change_summary(row) for row in page],
        )

    @extend_schema(
        operation_id="createChange",
        request=schema.ChangeCreate,
        parameters=[parameters.ONLY_DRY_RUN, parameters.IDEMPOTENCY_KEY],
        responses={201: schema.Change},
    )
    def post(self, request: Request) -> Response:
        """Store a draft of edits; nothing is written to the cluster."""
        return write_database(request, lambda: self._create(request))

    def _create(self, request: Request) -> Response:
        _require_write(request)
        draft = read_body(request.data, _Draft)
        if draft.edits is None:
            raise Problem("validation", "edits: expected a list of edits")
        now = timezone.now()
        row = ChangeSet(
            author=_user(request), created_at=now, changed_at=now, title="",
            policy=change_policy().below_use,
        )  # fmt: skip
        queues = change_sets.live_queues(gateway())
        _store(row, draft, queues, caller_visibility(request))
        headers = {"Location": f"/api/v1/changes/{row.pk}"}
        return Response(change_item(row, queues), status=201, headers=headers)


class ChangeDetail(View):
    """One change set."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"patch": ("dryRun",), "delete": ("dryRun",)}

    @extend_schema(operation_id="getChange", responses=schema.Change)
    def get(self, request: Request, pk: int) -> Response:
        """Return the change set, with what it would change now, or the steps that were made."""
        return Response(change_item(_find(request, pk), change_sets.live_queues(gateway())))

    @extend_schema(
        operation_id="patchChange",
        request=schema.ChangeWrite,
        parameters=[parameters.ONLY_DRY_RUN],
        responses=schema.Change,
    )
    def patch(self, request: Request, pk: int) -> Response:
        """Replace the named parts of a draft; the edits then count as made on the queues as they are now."""
        return write_database(request, lambda: self._patch(request, pk))

    def _patch(self, request: Request, pk: int) -> Response:
        row = _own(request, pk)
        draft = read_body(request.data, _Draft)
        queues = change_sets.live_queues(gateway())
        with change_sets.edited_draft(row, timezone.now()):
            _store(row, draft, queues, caller_visibility(request))
        return Response(change_item(row, queues))

    @extend_schema(
        operation_id="deleteChange", parameters=[parameters.ONLY_DRY_RUN], responses={204: None}
    )
    def delete(self, request: Request, pk: int) -> Response:
        """Delete a draft."""
        return write_database(request, lambda: self._delete(request, pk))

    def _delete(self, request: Request, pk: int) -> Response:
        row = _own(request, pk)
        with change_sets.edited_draft(row, timezone.now()):
            row.delete()
        return Response(status=204)


class ChangePatch(View):
    """The edits of a change set for the source that owns the queues."""

    shows = Shows.ITSELF
    renderer_classes = (YamlRenderer,)
    accepts: ClassVar = {"get": ()}

    @extend_schema(
        operation_id="getChangePatch",
        responses={(200, "application/yaml"): OpenApiTypes.STR},
    )
    def get(self, request: Request, pk: int) -> Response:
        """Return the edits as patches for Kustomize and kubectl, one YAML document for each queue."""
        row = _find(request, pk)
        queues = change_sets.live_queues(gateway())
        return Response(patch_of(row.title, change_sets.edits_of(row), queues))


class ChangePreview(View):
    """What the scheduler would do after the change."""

    shows = Shows.ITSELF

    @extend_schema(operation_id="previewChange", request=None, responses={200: schema.Change})
    def post(self, request: Request, pk: int) -> Response:
        """Simulate two cycles after the change, without what is drained; `preview` names the simulation.

        The change set keeps it, for `:apply`, only if the caller may edit the change set.
        """
        row = _find(request, pk)
        queues = change_sets.live_queues(gateway())
        plan = change_sets.plan_of(row, queues, timezone.now())
        question = change_sets.preview_question(row, drains.drain_of(plan))
        row.preview_id = start_simulation(request, question, PREVIEW_WAIT_S).pk
        if _may_change(request, row):
            _keep_preview(row)
        return Response(change_item(row, queues))


class ChangeRequest(View):
    """Ask for approval."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"post": ("dryRun",)}

    @extend_schema(
        operation_id="requestChange",
        request=None,
        parameters=[parameters.ONLY_DRY_RUN],
        responses=schema.Change,
    )
    def post(self, request: Request, pk: int) -> Response:
        """Ask admins to approve the draft."""
        return write_database(request, lambda: self._request(request, pk))

    def _request(self, request: Request, pk: int) -> Response:
        row = _own(request, pk)
        change_sets.move_to(row, ChangeSetState.REQUESTED, change_sets.EDITABLE, timezone.now())
        return Response(change_item(row, change_sets.live_queues(gateway())))


class ChangeApprove(View):
    """Approve a request."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"post": ("dryRun",)}

    @extend_schema(
        operation_id="approveChange",
        request=None,
        parameters=[parameters.ONLY_DRY_RUN],
        responses=schema.Change,
    )
    def post(self, request: Request, pk: int) -> Response:
        """Let the author apply the change with the rights of the admin who approves it."""
        return write_database(request, lambda: _decide(request, pk, ChangeSetState.APPROVED))


class ChangeReject(View):
    """Reject a request."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"post": ("dryRun",)}

    @extend_schema(
        operation_id="rejectChange",
        request=None,
        parameters=[parameters.ONLY_DRY_RUN],
        responses=schema.Change,
    )
    def post(self, request: Request, pk: int) -> Response:
        """Give the change back to its author."""
        return write_database(request, lambda: _decide(request, pk, ChangeSetState.REJECTED))


class ChangeApply(View):
    """Make the change."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"post": ("dryRun", "simulate")}

    @extend_schema(
        operation_id="applyChange",
        request=schema.ApplyRequest,
        parameters=[parameters.ONLY_DRY_RUN, parameters.SIMULATE],
        responses=schema.ChangeApplied,
    )
    def post(self, request: Request, pk: int) -> Response:
        """Write the edits in a safe order; if one fails, those before it are undone."""
        row = _own(request, pk)
        body = read_body(request.data or {}, _Apply)
        now, is_dry = timezone.now(), flag(request, "dryRun")
        is_simulated(request)  # refuses a wrong parameter before anything is written
        if body.reason is not None:
            row.reason = body.reason
            if not is_dry:
                row.save(update_fields=["reason"])
        queues = change_sets.live_queues(gateway())
        stale = change_sets.stale_queues(row, queues)
        if stale:
            detail = f"edited since the change was written: {', '.join(stale)}"
            raise Problem("precondition-failed", detail, extra={"stale": stale})
        plan = change_sets.plan_of(row, queues, now)
        refuse_errors(plan)
        who = Caller(
            rights=_effective_rights(request, row), now=now, request_id=request_id.current.get()
        )
        change_sets.require_rights(queues, plan, who.rights)
        change_sets.require_approval(row, plan)
        drain = drains.drain_of(plan)
        change_sets.require_drain(drain, who)
        change_sets.require_state(row, change_sets.APPLICABLE)
        question = change_sets.preview_question(row, drain)
        check_preview(request, row, body.preview, question)
        if is_dry:
            preview = preview_of(request, question)
            return Response({**change_item(row, queues), **preview})
        change_sets.apply(gateway(), row, plan, who)
        change_sets.drain(gateway(), row, drain, who)
        return Response(change_item(row, change_sets.live_queues(gateway())))


class ChangeRevert(View):
    """Undo an applied change."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"post": ("dryRun",)}

    @extend_schema(
        operation_id="revertChange",
        request=None,
        parameters=[parameters.ONLY_DRY_RUN],
        responses={201: schema.Change},
    )
    def post(self, request: Request, pk: int) -> Response:
        """Create the draft that undoes it, to be previewed and applied like any other."""
        return write_database(request, lambda: self._revert(request, pk))

    def _revert(self, request: Request, pk: int) -> Response:
        _require_write(request)
        queues = change_sets.live_queues(gateway())
        row = change_sets.reverse(_find(request, pk), _user(request).pk, timezone.now(), queues)
        headers = {"Location": f"/api/v1/changes/{row.pk}"}
        return Response(change_item(row, queues), status=201, headers=headers)


def _user(request: Request) -> User:
    assert isinstance(request.user, User)
    return request.user


def _find(request: Request, pk: int) -> ChangeSet:
    """Return a change set that the caller may see, or refuse with 404."""
    row = row_with_number(visible_changes(request), pk)
    if row is None:
        raise Problem("not-found", f"change set {pk} does not exist")
    return row


def _own(request: Request, pk: int) -> ChangeSet:
    """Return a change set that the caller may change: its own, or any as an admin."""
    row = _find(request, pk)
    _require_write(request)
    if not _may_change(request, row):
        raise Problem("forbidden", "the change set of another user needs the right 'admin'")
    return row


def _may_change(request: Request, row: ChangeSet) -> bool:
    rights = caller(request)
    is_own = row.author_id == _user(request).pk
    return rights.may_write_queues and (is_own or rights.is_admin)


def _keep_preview(row: ChangeSet) -> None:
    """Store the preview, unless the change set was edited while it was simulated."""
    unchanged = ChangeSet.objects.filter(pk=row.pk, changed_at=row.changed_at)
    if not unchanged.update(preview=row.preview_id):
        raise Problem("preview-stale", "the change was edited during its preview; preview it again")


def _require_write(request: Request) -> None:
    if not caller(request).may_write_queues:
        raise Problem("forbidden", "change sets need the right 'edit' on some queue")


def _store(row: ChangeSet, draft: _Draft, queues: dict[str, Body], visibility: Visibility) -> None:
    if draft.edits is not None:
        refuse_hidden_edits(draft.edits, visibility)
        names = [edit.name for edit in draft.edits]
        if len(set(names)) < len(names):
            raise Problem("validation", "edits: expected at most one edit of each queue")
        row.edits = msgspec.to_builtins(draft.edits)
        row.tags = change_sets.tags_of(queues, draft.edits)
        row.preview = None
    row.title = draft.title or row.title or f"Edit {len(row.edits)} queues"
    row.reason = row.reason if draft.reason is None else draft.reason
    row.policy = draft.policy or row.policy
    row.policies = row.policies if draft.policies is None else draft.policies
    row.save()


def _decide(request: Request, pk: int, state: ChangeSetState) -> Response:
    row = _find(request, pk)
    if not caller(request).is_admin:
        raise Problem("forbidden", "deciding on a change needs the right 'admin'")
    queues = change_sets.live_queues(gateway())
    plan = change_sets.plan_of(row, queues, timezone.now())
    is_own = row.author_id == _user(request).pk
    if state == ChangeSetState.APPROVED and is_own and change_sets.lacks_approval(row, plan):
        raise Problem("forbidden", "by the policies another admin must approve your change")
    change_sets.move_to(row, state, (ChangeSetState.REQUESTED,), timezone.now())
    row.decided_by = _user(request)
    row.save(update_fields=["decided_by"])
    return Response(change_item(row, queues))


def _effective_rights(request: Request, row: ChangeSet) -> Rights:
    """Return the caller's rights, or those of the approving admin under the caller's name."""
    caller_rights = caller(request)
    if row.state != ChangeSetState.APPROVED or row.decided_by is None or caller_rights.is_admin:
        return caller_rights
    approving = rights_of(row.decided_by)
    if not approving.is_admin or not row.decided_by.is_active:
        raise Problem("forbidden", f"{approving.username}, who approved it, is no longer an admin")
    return replace(approving, username=caller_rights.username)

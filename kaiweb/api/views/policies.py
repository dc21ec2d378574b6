"""The policies about changes of queues: read by everybody, edited by admins."""

from __future__ import annotations

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from msgspec import UNSET, UnsetType, to_builtins
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api.base import Shows, View
from kaiweb.api.database_writes import write_database
from kaiweb.api.http import parameters
from kaiweb.api.schema import changes as schema
from kaiweb.api.versions import expected_tag
from kaiweb.api.writes import require_admin, unless_stale, write_request
from queues.editing.policies import (
    COLUMNS,
    change_policy,
    edit_policy,
    tag_of,
)
from queues.models import ApprovalRule, BelowUse, ChangePolicy
from scheduler.tools.simulate.what_if.question import Struct, read_body


class _Edit(Struct, frozen=True, kw_only=True):
    below_use: BelowUse | UnsetType = UNSET
    approval: ApprovalRule | UnsetType = UNSET


class Policies(View):
    """The policies of this installation."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"patch": ("dryRun", "reason")}

    @extend_schema(operation_id="getPolicies", responses=schema.Policies)
    def get(self, _request: Request) -> Response:
        """Return what holds for changes of queues: about bounds below use, and which changes need approval."""
        return _answer(change_policy())

    @extend_schema(
        operation_id="patchPolicies",
        request=schema.PoliciesEdit,
        parameters=parameters.POLICIES_WRITE,
        responses=schema.Policies,
    )
    def patch(self, request: Request) -> Response:
        """Change some of the policies; they hold at once, also for drafts that were written before."""
        require_admin(request, "editing policies")
        return write_database(request, lambda: _edited(request))


def _edited(request: Request) -> Response:
    write = write_request(request, expected_tag=expected_tag(request, "policies"))
    values = to_builtins(read_body(request.data, _Edit))
    return _answer(unless_stale(lambda: edit_policy(values, write), _item))


def _answer(policy: ChangePolicy) -> Response:
    item = _item(policy)
    return Response(item, headers={"ETag": item["etag"]})


def _item(policy: ChangePolicy) -> dict[str, str]:
    values = {name: str(getattr(policy, column)) for name, column in COLUMNS.items()}
    return {**values, "etag": f'"{tag_of(policy)}"'}

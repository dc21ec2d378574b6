"""Tokens for scripts, and tickets for the live socket."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api.base import Shows, View, caller, caller_visibility, flag, row_with_number
from kaiweb.api.errors import Problem
from kaiweb.api.http import parameters
from kaiweb.api.idempotency import refuse_key
from kaiweb.api.schema import access as schema
from kaiweb.api.token_request import read_token_request
from kaiweb.api.writes import require_admin, write_request
from kaiweb.items.amounts import timestamp
from queues.access import tokens
from queues.access.rights import READ
from queues.editing.audit_entries import record
from queues.editing.edits import Difference
from queues.models import ApiToken, AuditAction, AuditKind


def owner(request: Request) -> User:
    """Return the user who is logged in; refuse a token, so that a leaked one cannot create further tokens."""
    if request.auth is not None:
        raise Problem("forbidden", "tokens are managed with a log-in, not with a token")
    assert isinstance(request.user, User)
    return request.user


class Tokens(View):
    """The tokens of the caller, for admins those of all users."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"get": ("all",)}

    @extend_schema(
        operation_id="listTokens",
        parameters=[parameters.ALL_TOKENS],
        responses=schema.TokenList,
    )
    def get(self, request: Request) -> Response:
        """List the caller's tokens that were not revoked; their secrets are not kept."""
        user = owner(request)
        rows = ApiToken.objects.filter(revoked_at=None).select_related("user")
        if flag(request, "all"):
            require_admin(request, "listing the tokens of others")
        else:
            rows = rows.filter(user=user)
        return Response({"items": [_item(row) for row in rows]})

    @extend_schema(
        operation_id="createToken",
        request=schema.TokenCreate,
        responses={201: schema.TokenCreated},
    )
    def post(self, request: Request) -> Response:
        """Make a token; the answer is the only place where its secret is shown."""
        refuse_key(request)
        user, now = owner(request), timezone.now()
        token_request = read_token_request(request.data, now, caller_visibility(request))
        with transaction.atomic():
            row, secret = tokens.create(
                user=user,
                name=token_request.name,
                scopes=token_request.scopes,
                subtree=token_request.subtree,
                expires_at=token_request.expires_at,
                now=now,
            )
            _record(request, AuditAction.CREATE, row)
        return Response({**_item(row), "token": secret}, status=201)


class TokenDetail(View):
    """One token."""

    shows = Shows.ITSELF

    @extend_schema(operation_id="revokeToken", responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Revoke it, one's own or, as an admin, that of another user; it stops working at once."""
        user = owner(request)
        rows = ApiToken.objects.filter(revoked_at=None)
        if not caller(request).is_admin:
            rows = rows.filter(user=user)
        row = row_with_number(rows.select_related("user"), pk)
        if row is None:
            raise Problem("not-found", f"you have no token {pk}")
        with transaction.atomic():
            row.revoked_at = timezone.now()
            row.save(update_fields=["revoked_at"])
            _record(request, AuditAction.DELETE, row)
        return Response(status=204)


class Tickets(View):
    """Permits for the live socket."""

    shows = Shows.ITSELF

    @extend_schema(operation_id="createLiveTicket", request=None, responses={201: schema.Ticket})
    def post(self, request: Request) -> Response:
        """Make a ticket that opens one live connection within 30 s."""
        refuse_key(request)
        token = request.auth if isinstance(request.auth, ApiToken) else None
        if not caller(request).may_read:
            raise Problem(
                "forbidden", f"the live socket needs a role, and a token the scope '{READ}'"
            )
        assert isinstance(request.user, User)
        secret = tokens.issue_ticket(user=request.user, token=token, now=timezone.now())
        lifetime_s = int(tokens.TICKET_LIFETIME.total_seconds())
        return Response({"ticket": secret, "expiresIn": lifetime_s}, status=201)


def _record(request: Request, action: AuditAction, row: ApiToken) -> None:
    value = {"name": row.name, "scopes": row.scopes}
    before, after = (None, value) if action == AuditAction.CREATE else (value, None)
    record(
        AuditKind.TOKEN,
        action,
        f"{row.user.get_username()}/{row.prefix}",
        write_request(request),
        queue=row.subtree,
        diff=[Difference("", before, after)],
    )


def _item(row: ApiToken) -> dict[str, Any]:
    return {
        "id": row.pk,
        "owner": row.user.get_username(),
        "name": row.name,
        "prefix": row.prefix,
        "scopes": row.scopes,
        "subtree": row.subtree or None,
        "createdAt": timestamp(row.created_at),
        "expiresAt": timestamp(row.expires_at),
        "lastUsedAt": timestamp(row.last_used_at),
    }

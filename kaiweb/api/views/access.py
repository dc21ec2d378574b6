"""Tokens for scripts, and tickets for the live socket."""

from __future__ import annotations

import logging
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Q
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from frontend.dashboard import login_guard
from kaiweb import request_id
from kaiweb.api.base import Shows, View, caller, caller_visibility, flag
from kaiweb.api.database_writes import write_database
from kaiweb.api.errors import Problem
from kaiweb.api.http import parameters
from kaiweb.api.idempotency import refuse_key
from kaiweb.api.schema import access as schema
from kaiweb.api.token_request import read_id_token, read_token_request
from kaiweb.api.writes import require_admin, write_request
from kaiweb.items.amounts import timestamp
from kaiweb.pipelines.exchange import BadIdTokenError, NoRuleError, exchange
from kaiweb.pipelines.issuers import IssuerError
from queues.access import tokens
from queues.access.rights import READ
from queues.editing.token_writes import create_token, revoke_token
from queues.models import ApiToken
from queues.selectors import row_with_number

log = logging.getLogger(__name__)


def owner(request: Request) -> User:
    """Return the user who is logged in; refuse a token, so that a leaked one cannot create further tokens."""
    if request.auth is not None:
        raise Problem("forbidden", "tokens are managed with a log-in, not with a token")
    assert isinstance(request.user, User)
    return request.user


class Tokens(View):
    """The tokens of the caller, for admins those of all users."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"get": ("all",), "post": ("dryRun",)}

    @extend_schema(
        operation_id="listTokens",
        parameters=[parameters.ALL_TOKENS],
        responses=schema.TokenList,
    )
    def get(self, request: Request) -> Response:
        """List the caller's tokens that were not revoked; their secrets are not kept.

        Tokens of pipelines are left out once they have ended.
        """
        user = owner(request)
        rows = ApiToken.objects.filter(revoked_at=None).select_related("user")
        rows = rows.exclude(~Q(origin=""), expires_at__lte=timezone.now())
        if flag(request, "all"):
            require_admin(request, "listing the tokens of others")
        else:
            rows = rows.filter(user=user)
        return Response({"items": [_item(row) for row in rows]})

    @extend_schema(
        operation_id="createToken",
        request=schema.TokenCreate,
        parameters=[parameters.ONLY_DRY_RUN],
        responses={201: schema.TokenCreated},
    )
    def post(self, request: Request) -> Response:
        """Make a token; the answer is the only place where its secret is shown, and a dry run shows none."""
        user = owner(request)
        return write_database(request, lambda: _create(request, user), is_kept=False)


class TokenExchange(View):
    """Tokens for CI pipelines."""

    shows = Shows.ITSELF
    needs_read = False
    authentication_classes = ()
    permission_classes = (AllowAny,)

    @extend_schema(
        operation_id="exchangeToken",
        request=schema.TokenExchange,
        responses={201: schema.TokenCreated},
    )
    def post(self, request: Request) -> Response:
        """Exchange the ID token of a CI pipeline (OpenID Connect) for a token that ends soon.

        The rules of the setting KAIWEB_CI_RULES decide which pipeline gets which scopes and which subtree.
        """
        refuse_key(request)
        if not settings.KAIWEB_CI_RULES:
            raise Problem("not-found", "the exchange of ID tokens is not set up (KAIWEB_CI_RULES)")
        attempt = login_guard.attempt_of(request._request)
        wait_s = login_guard.locked_for_s(attempt)
        if wait_s:
            headers = login_guard.FAILURES.refusal_headers(wait_s)
            raise Problem("rate-limited", "too many failures from your address", headers=headers)
        try:
            row, secret = exchange(
                read_id_token(request.data), timezone.now(), request_id.current.get()
            )
        except (BadIdTokenError, NoRuleError) as error:
            login_guard.note_failure(attempt)
            slug = "forbidden" if isinstance(error, NoRuleError) else "unauthenticated"
            raise Problem(slug, str(error)) from error
        except IssuerError as error:
            log.warning("cannot check the ID token of a pipeline: %s", error)
            text = "the issuer of the ID token does not answer as expected; the log has the details"
            raise Problem("unavailable", text, headers={"Retry-After": "5"}) from error
        return Response({**_item(row), "token": secret}, status=201)


class TokenDetail(View):
    """One token."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"delete": ("dryRun",)}

    @extend_schema(
        operation_id="revokeToken", parameters=[parameters.ONLY_DRY_RUN], responses={204: None}
    )
    def delete(self, request: Request, pk: int) -> Response:
        """Revoke it, one's own or, as an admin, that of another user; it stops working at once."""
        user = owner(request)
        return write_database(request, lambda: _revoke(request, user, pk))


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


def _create(request: Request, user: User) -> Response:
    write = write_request(request)
    token = read_token_request(request.data, write.now, caller_visibility(request))
    row, secret = create_token(user, token, write)
    return Response({**_item(row), "token": secret}, status=201)


def _revoke(request: Request, user: User, pk: int) -> Response:
    rows = ApiToken.objects.filter(revoked_at=None)
    if not caller(request).is_admin:
        rows = rows.filter(user=user)
    row = row_with_number(rows.select_related("user"), pk)
    if row is None:
        raise Problem("not-found", f"you have no token {pk}")
    revoke_token(row, write_request(request))
    return Response(status=204)


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
        "networks": row.networks,
        "origin": row.origin or None,
    }

"""Create and revoke API tokens, with their entries in the audit log."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from queues.access import tokens
from queues.access.tokens import NewToken
from queues.editing.audit_entries import record
from queues.editing.edits import Difference
from queues.editing.write_requests import WriteRequest
from queues.models import ApiToken, AuditAction, AuditKind


def create_token(user: User, token: NewToken, request: WriteRequest) -> tuple[ApiToken, str]:
    """Create a token of a user; return it with its secret, which is not stored."""
    with transaction.atomic():
        row, secret = tokens.create(
            user=user,
            name=token.name,
            scopes=[*token.scopes],
            subtree=token.subtree,
            expires_at=token.expires_at,
            now=request.now,
            networks=token.networks,
            origin=token.origin,
        )
        _record(AuditAction.CREATE, row, request)
    return row, secret


def revoke_token(row: ApiToken, request: WriteRequest) -> None:
    """Make a token invalid at once."""
    with transaction.atomic():
        row.revoked_at = request.now
        row.save(update_fields=["revoked_at"])
        _record(AuditAction.DELETE, row, request)


def _record(action: AuditAction, row: ApiToken, request: WriteRequest) -> None:
    value: dict[str, Any] = {"name": row.name, "scopes": row.scopes}
    if row.networks:
        value["networks"] = row.networks
    if row.origin:
        value["origin"] = row.origin
    before, after = (None, value) if action == AuditAction.CREATE else (value, None)
    record(
        AuditKind.TOKEN,
        action,
        f"{row.user.get_username()}/{row.prefix}",
        request,
        queue=row.subtree,
        diff=[Difference("", before, after)],
    )

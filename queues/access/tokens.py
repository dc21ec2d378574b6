"""API tokens and live tickets, of which only hashes are stored."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q

from queues.access.rights import SCOPES
from queues.models import ApiToken, LiveTicket

PREFIX = "kw_"
# Characters of a secret that stay readable, so that people recognize the token in a list.
VISIBLE_LENGTH = 10
TICKET_LIFETIME = timedelta(seconds=30)
#: Exchanged tokens, of which each pipeline makes one, are deleted so long after their end.
EXCHANGED_KEPT = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """The properties of a token to create; `ApiToken` describes them."""

    name: str
    scopes: Sequence[str]
    subtree: str = ""
    expires_at: datetime | None
    networks: Sequence[str] = ()
    origin: str = ""


def _digest(secret: str) -> str:
    # A fast hash is enough for secrets of 192 or more random bits.
    return hashlib.sha256(secret.encode()).hexdigest()


def create(
    *,
    user: User,
    name: str,
    scopes: list[str],
    subtree: str,
    expires_at: datetime | None,
    now: datetime,
    networks: Sequence[str] = (),
    origin: str = "",
) -> tuple[ApiToken, str]:
    """Create a token and return it with its secret, which is not stored.

    Raises
    ------
    ValueError : `scopes` is empty or names an unknown scope
    """
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        raise ValueError(f"scopes: expected some of {', '.join(SCOPES)}, got {scopes}")
    secret = PREFIX + secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        user=user,
        name=name,
        prefix=secret[:VISIBLE_LENGTH],
        digest=_digest(secret),
        scopes=sorted(set(scopes)),
        subtree=subtree,
        created_at=now,
        expires_at=expires_at,
        networks=[*networks],
        origin=origin,
    )
    return token, secret


def find(secret: str, now: datetime) -> ApiToken | None:
    """Return the token with this secret; None if it is unknown, revoked or expired, or its owner inactive."""
    return (
        ApiToken.objects.select_related("user")
        .filter(digest=_digest(secret), revoked_at=None, user__is_active=True)
        .filter(Q(expires_at=None) | Q(expires_at__gt=now))
        .first()
    )


def is_alive(token: ApiToken, now: datetime) -> bool:
    """Return whether a token read earlier is neither revoked nor expired, and its owner active."""
    return (
        ApiToken.objects.filter(pk=token.pk, revoked_at=None, user__is_active=True)
        .filter(Q(expires_at=None) | Q(expires_at__gt=now))
        .exists()
    )


def trim_exchanged(now: datetime) -> int:
    """Delete exchanged tokens that ended some time ago; return how many rows went."""
    old = ApiToken.objects.exclude(origin="").filter(expires_at__lt=now - EXCHANGED_KEPT)
    return old.delete()[0]


def issue_ticket(*, user: User, token: ApiToken | None, now: datetime) -> str:
    """Create a ticket for one live connection and return its secret; delete expired tickets."""
    secret = secrets.token_urlsafe(24)
    with transaction.atomic():
        LiveTicket.objects.filter(expires_at__lt=now).delete()
        LiveTicket.objects.create(
            digest=_digest(secret), user=user, token=token, expires_at=now + TICKET_LIFETIME
        )
    return secret


def redeem_ticket(secret: str, now: datetime) -> LiveTicket | None:
    """Delete the ticket with this secret and return it; None if it is unknown, used or expired."""
    with transaction.atomic():
        ticket = (
            LiveTicket.objects.select_related("user", "token")
            .filter(digest=_digest(secret), expires_at__gt=now, user__is_active=True)
            .first()
        )
        if ticket is None:
            return None
        deleted, _by_model = LiveTicket.objects.filter(digest=ticket.digest).delete()
    return ticket if deleted else None

"""API tokens and live tickets: made once, shown once, kept as hashes."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q

from queues.access.rights import SCOPES
from queues.models import ApiToken, LiveTicket

PREFIX = "kw_"
SHOWN = 10
TICKET_LIFE = timedelta(seconds=30)


def _digest(secret: str) -> str:
    # The secrets are 256 random bits: a fast hash cannot be guessed either.
    return hashlib.sha256(secret.encode()).hexdigest()


def create(
    *,
    user: User,
    name: str,
    scopes: list[str],
    subtree: str,
    expires_at: datetime | None,
    now: datetime,
) -> tuple[ApiToken, str]:
    """Make a token and return it with its secret, which is not kept anywhere.

    Raises
    ------
    ValueError : an unknown scope, or none
    """
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        raise ValueError(f"scopes: expected some of {', '.join(SCOPES)}, got {scopes}")
    secret = PREFIX + secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        user=user,
        name=name,
        prefix=secret[:SHOWN],
        digest=_digest(secret),
        scopes=sorted(set(scopes)),
        subtree=subtree,
        created_at=now,
        expires_at=expires_at,
    )
    return token, secret


def find(secret: str, now: datetime) -> ApiToken | None:
    """Return the living token of that secret whose owner may still log in."""
    return (
        ApiToken.objects.select_related("user")
        .filter(digest=_digest(secret), revoked_at=None, user__is_active=True)
        .filter(Q(expires_at=None) | Q(expires_at__gt=now))
        .first()
    )


def is_alive(token: ApiToken, now: datetime) -> bool:
    """Tell whether the token read earlier is still good."""
    return (
        ApiToken.objects.filter(pk=token.pk, revoked_at=None, user__is_active=True)
        .filter(Q(expires_at=None) | Q(expires_at__gt=now))
        .exists()
    )


def issue_ticket(*, user: User, token: ApiToken | None, now: datetime) -> str:
    """Make a ticket for one live connection; old ones that nobody used are swept out."""
    secret = secrets.token_urlsafe(24)
    with transaction.atomic():
        LiveTicket.objects.filter(expires_at__lt=now).delete()
        LiveTicket.objects.create(
            digest=_digest(secret), user=user, token=token, expires_at=now + TICKET_LIFE
        )
    return secret


def redeem_ticket(secret: str, now: datetime) -> LiveTicket | None:
    """Use a ticket up and return it, None if it is unknown, used or too old."""
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

"""Authenticate by bearer token (scripts), or by session cookie with CSRF protection (browsers)."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import DatabaseError
from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.request import Request

from queues.access import tokens
from queues.access.networks import may_be_used_from
from queues.models import ApiToken

log = logging.getLogger(__name__)

REALM = 'Bearer realm="kaiweb"'
LAST_USE_STEP = timedelta(minutes=1)


class BearerAuthentication(BaseAuthentication):
    """`Authorization: Bearer kw_…`. It comes first, because DRF answers 401 by the challenge of the first class."""

    def authenticate(self, request: Request) -> tuple[AbstractBaseUser, ApiToken] | None:
        """Return the owner and the token; None if no bearer token was sent.

        The address of the client is that of the connection. The server puts the one in X-Forwarded-For there if the
        connection is from a trusted proxy.
        """
        scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        now = timezone.now()
        token = tokens.find(secret.strip(), now)
        if token is None:
            raise AuthenticationFailed("The bearer token is unknown, expired or revoked.")
        address = request.META.get("REMOTE_ADDR", "")
        if not may_be_used_from(token.networks, address):
            raise PermissionDenied(f"this token may not be used from {address or 'this address'}")
        if token.last_used_at is None or now - token.last_used_at > LAST_USE_STEP:
            _note_use(token, now)
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        """Name the scheme to use in a 401 answer."""
        return REALM


def _note_use(token: ApiToken, now: datetime) -> None:
    """Store when the token was used; a failed write must not lock people out."""
    try:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    except DatabaseError as error:
        log.warning("cannot store the last use of token %s: %s", token.prefix, error)


class CsrfSessionAuthentication(SessionAuthentication):
    """The session cookie; unsafe methods need the CSRF token."""


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Describe the bearer token in the OpenAPI document."""

    target_class = BearerAuthentication
    name = "bearer"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        """Return the security scheme object."""
        return {"type": "http", "scheme": "bearer", "bearerFormat": "kw_…"}


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Describe the session cookie in the OpenAPI document."""

    target_class = CsrfSessionAuthentication
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        """Return the security scheme object."""
        return {"type": "apiKey", "in": "cookie", "name": "sessionid"}

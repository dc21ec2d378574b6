"""Who opens a live socket, and whether they still have the right to it.

A browser sends its session cookie and must come from our own origin; a script sends a single-use ticket. Both
are checked again every half minute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.http.request import split_domain_port, validate_host
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from queues.access import tokens
from queues.access.networks import may_be_used_from
from queues.access.rights import Rights, rights_of
from queues.models import ApiToken


@dataclass(frozen=True, slots=True)
class Client:
    """The user, or the token of a user, behind an open socket."""

    user: User
    token: ApiToken | None
    session_key: str

    def rights(self) -> Rights | None:
        """Return the present rights; None if the log-in has ended."""
        user = User.objects.filter(pk=self.user.pk, is_active=True).first()
        if user is None:
            return None
        if self.token is not None:
            if not tokens.is_alive(self.token, timezone.now()):
                return None
            return rights_of(user, ApiToken.objects.get(pk=self.token.pk))
        if self.session_key and not _is_logged_in(self.session_key, user):
            return None
        return rights_of(user)


def may_come_in(scope: Mapping[str, Any]) -> bool:
    """Return whether the socket is opened under our name, by a page of ours or with a ticket; reads no database."""
    return is_own_host(scope) and (_ticket(scope) is not None or is_own_origin(scope))


def authenticate(scope: Mapping[str, Any]) -> Client | None:
    """Return who opens a socket that may come in; None without a valid ticket or session."""
    secret = _ticket(scope)
    if secret is not None:
        ticket = tokens.redeem_ticket(secret, timezone.now())
        if ticket is None or not _may_open(ticket.token, scope):
            return None
        return Client(ticket.user, ticket.token, "")
    session: Any = scope.get("session")
    user_id = session.get(SESSION_KEY) if session is not None else None
    if user_id is None:
        return None
    user = User.objects.filter(pk=user_id, is_active=True).first()
    if user is None or not _is_logged_in(session.session_key, user):
        return None
    return Client(user, None, session.session_key)


def _may_open(token: ApiToken | None, scope: Mapping[str, Any]) -> bool:
    """Return whether the socket comes from a network of the token behind its ticket, if there is one."""
    address, _port = scope.get("client") or ("", 0)
    return token is None or may_be_used_from(token.networks, address)


def _ticket(scope: Mapping[str, Any]) -> str | None:
    query: dict[str, list[str]] = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    secrets = query.get("ticket")
    return secrets[0] if secrets else None


def _is_logged_in(session_key: str, user: User) -> bool:
    """Return whether the session is one of this user, opened with the present password."""
    engine = import_module(settings.SESSION_ENGINE)
    session = engine.SessionStore(session_key)
    session_hash = session.get(HASH_SESSION_KEY, "")
    is_logged_in: bool = (
        session.get(SESSION_KEY) == str(user.pk)
        and session.get(BACKEND_SESSION_KEY) in settings.AUTHENTICATION_BACKENDS
        and constant_time_compare(session_hash, user.get_session_auth_hash())
    )
    return is_logged_in


def is_own_host(scope: Mapping[str, Any]) -> bool:
    """Return whether the Host header is allowed, by the rule that Django applies to pages."""
    host = _headers(scope).get("host", "")
    domain, _port = split_domain_port(host)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


def is_own_origin(scope: Mapping[str, Any]) -> bool:
    """Return whether a page of ours opens the socket; any page can make the browser send the cookie."""
    headers = _headers(scope)
    origin = headers.get("origin", "")
    if not origin:
        return False
    if origin in settings.CSRF_TRUSTED_ORIGINS:
        return True
    parts = urlsplit(origin)
    scheme = "https" if _is_secure(scope, headers) else "http"
    return (parts.scheme, parts.netloc) == (scheme, headers.get("host", ""))


def _headers(scope: Mapping[str, Any]) -> dict[str, str]:
    return {
        name.decode("latin-1"): value.decode("latin-1") for name, value in scope.get("headers", [])
    }


def _is_secure(scope: Mapping[str, Any], headers: Mapping[str, str]) -> bool:
    """Return whether the client uses TLS; behind a proxy, by the same header as Django."""
    if scope.get("scheme") in ("wss", "https"):
        return True
    proxy_header = settings.SECURE_PROXY_SSL_HEADER
    if proxy_header is None:
        return False
    name, value = proxy_header
    header: str = headers.get(name.removeprefix("HTTP_").replace("_", "-").lower(), "")
    return header.split(",")[0].strip() == value

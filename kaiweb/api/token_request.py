"""Read the body of a token request: check every field, ignore none, and limit the life of the token."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.utils.dateparse import parse_datetime

from kaiweb.api.errors import Problem
from kaiweb.items.visibility import Visibility
from queues.access.networks import read_network
from queues.access.rights import READ, SCOPES
from queues.access.tokens import NewToken
from queues.models import Queue
from queues.tree.shape import NAME_LENGTH, NAME_PATTERN, Finding, is_clean, shown

FIELDS = ("name", "scopes", "subtree", "expiresAt", "networks")
MAX_NAME_LENGTH = 100
MAX_NETWORKS = 32
MAX_ID_TOKEN_LENGTH = 16 * 1024


def read_token_request(data: object, now: datetime, visibility: Visibility) -> NewToken:
    """Return the request; its subtree must be a queue that the caller may see.

    Raises
    ------
    Problem : with one entry for each wrong field
    """
    if not isinstance(data, Mapping):
        raise _refusal([_fault("", "type", "an object", data)])
    faults = [
        _fault(f"/{shown(name)}", "unknown-field", f"only {', '.join(FIELDS)}", name)
        for name in data
        if name not in FIELDS
    ]
    name, scopes = data.get("name"), data.get("scopes", [READ])
    subtree, end = data.get("subtree"), data.get("expiresAt")
    faults += [*_name_faults(name), *_scope_faults(scopes), *_subtree_faults(subtree, visibility)]
    networks, network_faults = _networks(data.get("networks", []))
    faults += network_faults
    latest = _latest(now)
    expires_at, end_faults = (latest, []) if end is None else _end(end, now, latest)
    faults += end_faults
    if faults:
        raise _refusal(faults)
    return NewToken(
        name=str(name).strip(),
        scopes=scopes,
        subtree=subtree or "",
        expires_at=expires_at,
        networks=networks,
    )


def read_id_token(data: object) -> str:
    """Return the ID token in the body of an exchange.

    Raises
    ------
    Problem : there is none
    """
    token = data.get("token") if isinstance(data, Mapping) and len(data) == 1 else None
    if not isinstance(token, str) or not 0 < len(token) <= MAX_ID_TOKEN_LENGTH:
        expected = f"only an ID token of at most {MAX_ID_TOKEN_LENGTH} characters"
        raise _refusal([_fault("/token", "type", expected, type(token).__name__)])
    return token


def _refusal(faults: list[Finding]) -> Problem:
    return Problem(
        "validation",
        "; ".join(fault.message for fault in faults),
        errors=[fault.as_dict() for fault in faults],
    )


def _fault(
    pointer: str, code: str, expected: str, value: object, allowed: object = None
) -> Finding:
    return Finding(
        pointer=pointer,
        code=code,
        message=f"{pointer[1:] or 'the body'}: expected {expected}, got {shown(value)}",
        given=shown(value),
        allowed=allowed,
    )


def _name_faults(value: Any) -> Iterator[Finding]:
    is_fine = (
        isinstance(value, str) and 0 < len(value.strip()) <= MAX_NAME_LENGTH and is_clean(value)
    )
    if not is_fine:
        expected = f"a string of 1 to {MAX_NAME_LENGTH} characters"
        yield _fault("/name", "length", expected, value, MAX_NAME_LENGTH)


def _scope_faults(value: Any) -> Iterator[Finding]:
    expected = f"a list of {', '.join(SCOPES)}"
    if not isinstance(value, list) or not value:
        yield _fault("/scopes", "type", expected, value, [*SCOPES])
        return
    for index, scope in enumerate(value):
        if scope not in SCOPES:
            yield _fault(
                f"/scopes/{index}", "scope", f"one of {', '.join(SCOPES)}", scope, [*SCOPES]
            )


def _subtree_faults(value: Any, visibility: Visibility) -> Iterator[Finding]:
    if value is None:
        return
    is_name = isinstance(value, str) and len(value) <= NAME_LENGTH and NAME_PATTERN.fullmatch(value)
    is_known = is_name and visibility.shows(value) and Queue.objects.filter(name=value).exists()
    if not is_known:
        yield _fault("/subtree", "unknown-queue", "the name of a queue", value)


def _networks(value: Any) -> tuple[list[str], list[Finding]]:
    """Return the networks as they are stored, and what is wrong with the others."""
    if not isinstance(value, list) or len(value) > MAX_NETWORKS:
        expected = f"a list of at most {MAX_NETWORKS} networks"
        return [], [_fault("/networks", "type", expected, value, MAX_NETWORKS)]
    networks, faults = [], []
    for index, text in enumerate(value):
        try:
            networks.append(read_network(text if isinstance(text, str) else ""))
        except ValueError:
            expected = "a network such as 10.0.0.0/8, or an address"
            faults.append(_fault(f"/networks/{index}", "network", expected, text))
    return networks, faults


def _latest(now: datetime) -> datetime | None:
    days: int = settings.KAIWEB_TOKEN_MAX_DAYS
    return now + timedelta(days=days) if days else None


def _end(
    value: object, now: datetime, latest: datetime | None
) -> tuple[datetime | None, list[Finding]]:
    moment = _moment(value)
    if moment is None:
        return None, [_fault("/expiresAt", "type", "RFC 3339 with a time zone", value)]
    if moment <= now:
        return None, [_fault("/expiresAt", "past", "a time in the future", value)]
    if latest is not None and moment > latest:
        expected = f"at most {settings.KAIWEB_TOKEN_MAX_DAYS} days from now"
        return None, [_fault("/expiresAt", "too-late", expected, value, latest.isoformat())]
    return moment, []


def _moment(value: object) -> datetime | None:
    """Return the time in UTC; None if the value is not a time, or out of range in UTC."""
    try:
        moment = parse_datetime(value) if isinstance(value, str) else None
        return moment.astimezone(UTC) if moment is not None and moment.tzinfo else None
    except (ValueError, OverflowError):
        return None

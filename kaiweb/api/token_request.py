"""Read the body of a token request: refuse wrong and unknown fields, and limit the life of the token."""

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
        raise _refusal([_finding("", "type", "an object", data)])
    findings = [
        _finding(f"/{shown(name)}", "unknown-field", f"only {', '.join(FIELDS)}", name)
        for name in data
        if name not in FIELDS
    ]
    name, scopes = data.get("name"), data.get("scopes", [READ])
    subtree, end = data.get("subtree"), data.get("expiresAt")
    findings += [
        *_name_findings(name),
        *_scope_findings(scopes),
        *_subtree_findings(subtree, visibility),
    ]
    networks, network_findings = _read_networks(data.get("networks", []))
    findings += network_findings
    latest = _latest_end(now)
    expires_at, end_findings = (latest, []) if end is None else _read_end(end, now, latest)
    findings += end_findings
    if findings:
        raise _refusal(findings)
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
    Problem : the body has other fields, or no ID token, or one that is too long
    """
    token = data.get("token") if isinstance(data, Mapping) and len(data) == 1 else None
    if not isinstance(token, str) or not 0 < len(token) <= MAX_ID_TOKEN_LENGTH:
        expected = f"an ID token of 1 to {MAX_ID_TOKEN_LENGTH} characters as the only field"
        raise _refusal([_finding("/token", "type", expected, type(token).__name__)])
    return token


def _refusal(findings: list[Finding]) -> Problem:
    return Problem(
        "validation",
        "; ".join(finding.message for finding in findings),
        errors=[finding.as_dict() for finding in findings],
    )


def _finding(
    pointer: str, code: str, expected: str, value: object, allowed: object = None
) -> Finding:
    return Finding(
        pointer=pointer,
        code=code,
        message=f"{pointer[1:] or 'the body'}: expected {expected}, got {shown(value)}",
        given=shown(value),
        allowed=allowed,
    )


def _name_findings(value: Any) -> Iterator[Finding]:
    is_fine = (
        isinstance(value, str) and 0 < len(value.strip()) <= MAX_NAME_LENGTH and is_clean(value)
    )
    if not is_fine:
        expected = f"a string of 1 to {MAX_NAME_LENGTH} characters without NUL"
        yield _finding("/name", "length", expected, value, MAX_NAME_LENGTH)


def _scope_findings(value: Any) -> Iterator[Finding]:
    expected = f"a list of {', '.join(SCOPES)}"
    if not isinstance(value, list) or not value:
        yield _finding("/scopes", "type", expected, value, [*SCOPES])
        return
    for index, scope in enumerate(value):
        if scope not in SCOPES:
            yield _finding(
                f"/scopes/{index}", "scope", f"one of {', '.join(SCOPES)}", scope, [*SCOPES]
            )


def _subtree_findings(value: Any, visibility: Visibility) -> Iterator[Finding]:
    if value is None:
        return
    is_name = isinstance(value, str) and len(value) <= NAME_LENGTH and NAME_PATTERN.fullmatch(value)
    is_known = is_name and visibility.shows(value) and Queue.objects.filter(name=value).exists()
    if not is_known:
        yield _finding("/subtree", "unknown-queue", "the name of a queue", value)


def _read_networks(value: Any) -> tuple[list[str], list[Finding]]:
    """Return the networks as they are stored, and what is wrong with the others."""
    if not isinstance(value, list) or len(value) > MAX_NETWORKS:
        expected = f"a list of at most {MAX_NETWORKS} networks"
        return [], [_finding("/networks", "type", expected, value, MAX_NETWORKS)]
    networks, findings = [], []
    for index, text in enumerate(value):
        try:
            networks.append(read_network(text if isinstance(text, str) else ""))
        except ValueError:
            expected = "a network such as 10.0.0.0/8, or an address"
            findings.append(_finding(f"/networks/{index}", "network", expected, text))
    return networks, findings


def _latest_end(now: datetime) -> datetime | None:
    days: int = settings.KAIWEB_TOKEN_MAX_DAYS
    return now + timedelta(days=days) if days else None


def _read_end(
    value: object, now: datetime, latest: datetime | None
) -> tuple[datetime | None, list[Finding]]:
    end = _utc_time(value)
    if end is None:
        return None, [_finding("/expiresAt", "type", "a time in RFC 3339 with a time zone", value)]
    if end <= now:
        return None, [_finding("/expiresAt", "past", "a time in the future", value)]
    if latest is not None and end > latest:
        expected = f"at most {settings.KAIWEB_TOKEN_MAX_DAYS} days from now"
        return None, [_finding("/expiresAt", "too-late", expected, value, latest.isoformat())]
    return end, []


def _utc_time(value: object) -> datetime | None:
    """Return the time in UTC; None if the value is not a time, or out of range in UTC."""
    try:
        time = parse_datetime(value) if isinstance(value, str) else None
        return time.astimezone(UTC) if time is not None and time.tzinfo else None
    except (ValueError, OverflowError):
        return None

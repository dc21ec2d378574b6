"""Read and write times in the form of RFC 3339.

A time in the year 1 or 9999 with an offset can lie outside of the range of `datetime` when it is converted to
UTC. Parsing refuses such a text; formatting such a `datetime` uses the nearest time in range.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from kube.errors import BadValueError

MAX_LENGTH = 64
_FORM = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})"
)
_FIRST = datetime.min.replace(tzinfo=UTC)
_LAST = datetime.max.replace(tzinfo=UTC)


def format_time(moment: datetime) -> str:
    """Return whole seconds in UTC, as most fields of the API hold them."""
    return f"{in_utc(moment).replace(microsecond=0, tzinfo=None).isoformat()}Z"


def format_milli_time(moment: datetime) -> str:
    """Return milliseconds in UTC, as REST and the logs show them."""
    return f"{in_utc(moment).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def format_micro_time(moment: datetime) -> str:
    """Return microseconds in UTC, as leases hold them."""
    return f"{in_utc(moment).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def parse_time(text: str) -> datetime:
    """Return a moment in UTC.

    Raises
    ------
    BadValueError : no RFC 3339 time with an offset, or outside of the years 1 to 9999 in UTC
    """
    try:
        if len(text) <= MAX_LENGTH and _FORM.fullmatch(text):
            return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise BadValueError(f"expected a time such as 2026-01-31T12:00:00Z, got {text[:40]!r}")


def time_or_none(text: str | None) -> datetime | None:
    """Return a moment in UTC; None if the text is absent or not a time."""
    try:
        return parse_time(text) if text else None
    except BadValueError:
        return None


def in_utc(moment: datetime) -> datetime:
    """Return a moment in UTC, or the nearest one in range; a moment without time zone counts as UTC."""
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return _FIRST if moment.year == 1 else _LAST

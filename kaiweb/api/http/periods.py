"""Read times and ranges from query parameters."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.utils import timezone
from django.utils.dateparse import parse_datetime
from rest_framework.request import Request

from kaiweb.api.errors import bad_parameter
from kaiweb.usage.ranges import Range
from kaiweb.usage.tiers import STEPS

PARAMETERS = ("from", "to", "step")
MAX_POINTS = 1500
DEFAULT_LENGTH = timedelta(days=7)


def moment(request: Request, name: str) -> datetime | None:
    """Return the time that a parameter states, or None if it is absent."""
    text = request.query_params.get(name)
    if text is None:
        return None
    try:
        value = parse_datetime(text)
        if value is not None and value.tzinfo is not None:
            return value.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise bad_parameter(name, "expected a time in RFC 3339 with a time zone", text)


def range_of(request: Request) -> Range:
    """Return the range of `from`, `to` and `step`; by default the last seven days in fitting steps."""
    now = timezone.now()
    end = min(moment(request, "to") or now, now)
    start = start_before(request, end, DEFAULT_LENGTH)
    return Range.of(start, end, now, max_points=MAX_POINTS, step=_step(request))


def start_before(request: Request, end: datetime, length: timedelta) -> datetime:
    """Return the time `from`, by default so long before the end."""
    start = moment(request, "from")
    if start is None:
        return end - length
    if start >= end:
        raise bad_parameter("from", "expected a time before `to` and before now", str(start))
    return start


def _step(request: Request) -> int:
    raw = request.query_params.get("step")
    if raw is None:
        return 0
    allowed = [str(step) for step in STEPS]
    if raw not in allowed:
        raise bad_parameter("step", f"expected one of {', '.join(allowed)} (seconds)", raw, allowed)
    return int(raw)

"""Unix seconds to the API's text form and back."""

from __future__ import annotations

from datetime import UTC, datetime


def timestamp(now: float) -> str:
    """Return Unix seconds as the API writes them, to the second."""
    return datetime.fromtimestamp(now, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_timestamp(text: str) -> float:
    """Return the Unix seconds of a timestamp of the API."""
    return datetime.fromisoformat(text).timestamp()

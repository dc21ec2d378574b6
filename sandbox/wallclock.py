"""Conversion between Unix seconds and the timestamps of the API."""

from __future__ import annotations

from datetime import UTC, datetime


def timestamp(now: float) -> str:
    """Return the timestamp of Unix seconds, in whole seconds."""
    return datetime.fromtimestamp(now, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_timestamp(text: str) -> float:
    """Return the Unix seconds of a timestamp."""
    return datetime.fromisoformat(text).timestamp()

"""Conversion between Unix seconds and the timestamps of the Kubernetes API."""

from __future__ import annotations

from datetime import UTC, datetime

from kube.values.times import format_time, parse_time


def timestamp(now: float) -> str:
    """Return Unix seconds as a timestamp, without their fraction."""
    return format_time(datetime.fromtimestamp(now, tz=UTC))


def parse_timestamp(text: str) -> float:
    """Return the Unix seconds of a timestamp."""
    return parse_time(text).timestamp()

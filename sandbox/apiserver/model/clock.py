"""Times in the form in which the API writes them."""

from __future__ import annotations

import datetime as dt
import time


def now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def stamp(at: dt.datetime | None = None) -> str:
    """Return a time (now by default) in RFC 3339 with whole seconds, as in metadata."""
    if at is None:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return at.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text.replace("Z", "+00:00"))


def seconds(count: float) -> dt.timedelta:
    return dt.timedelta(seconds=count)

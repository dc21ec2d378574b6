"""Read and write durations in Go's form (`1h30m`, `-1s`), which the objects in the cluster use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from kube.errors import BadValueError

NANOSECOND = 1
SECOND = 1_000_000_000
UNITS = {
    "ns": NANOSECOND,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
#: Units that Prometheus knows besides Go's.
LONG_UNITS = {**UNITS, "d": 86_400 * SECOND, "w": 604_800 * SECOND, "y": 31_536_000 * SECOND}
MAX_NANOSECONDS = 2**63 - 1
MAX_LENGTH = 128
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h|d|w|y)", re.ASCII)


def parse_duration(text: str, units: Mapping[str, int] = UNITS) -> int:
    """Return nanoseconds.

    Parameters
    ----------
    units : the allowed units and their length in nanoseconds

    Raises
    ------
    BadValueError : no unit, an unknown unit, or out of the 64-bit range; the message quotes the text
    """
    body = text[1:] if text[:1] in {"+", "-"} else text
    if body == "0":
        return 0
    total = _total(body, units) if 0 < len(body) <= MAX_LENGTH else None
    if total is None or total > MAX_NANOSECONDS:
        raise BadValueError(f"{text[:40]!r} is not a duration such as 90s, 5m or 1h30m")
    return -int(total) if text.startswith("-") else int(total)


def seconds_or_none(text: str | None) -> float | None:
    """Return seconds; None if the text is absent or not a duration."""
    if not text:
        return None
    try:
        return parse_duration(text) / SECOND
    except BadValueError:
        return None


def format_duration(nanoseconds: int) -> str:
    """Return the canonical form: `5m0s`, `1h0m0s`, `1.5s`, `250ms`, `0s`."""
    sign, magnitude_ns = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if magnitude_ns == 0:
        return "0s"
    for unit in ("ns", "µs", "ms"):
        if magnitude_ns < {"ns": 1_000, "µs": 1_000_000, "ms": SECOND}[unit]:
            return f"{sign}{_decimal(magnitude_ns, UNITS[unit])}{unit}"
    minutes, seconds = divmod(magnitude_ns, 60 * SECOND)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(seconds, SECOND)}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{text}"
    return f"{sign}{minutes}m{text}" if minutes else f"{sign}{text}"


def _total(body: str, units: Mapping[str, int]) -> Fraction | None:
    total, position = Fraction(0), 0
    while position < len(body):
        part = _PART.match(body, position)
        if part is None or part[2] not in units:
            return None
        total += Fraction(part[1].rstrip(".")) * units[part[2]]
        position = part.end()
    return total


def _decimal(value: int, unit: int) -> str:
    whole, part = divmod(value, unit)
    if not part:
        return str(whole)
    digits = len(str(unit)) - 1
    return f"{whole}.{part:0{digits}d}".rstrip("0")

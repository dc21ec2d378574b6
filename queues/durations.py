"""Durations as Go writes them (`1h30m`, `-1s`), because that is what the objects in the cluster hold."""

from __future__ import annotations

import re
from fractions import Fraction

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
MAX_NANOSECONDS = 2**63 - 1
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)


def parse_duration(text: str) -> int:
    """Return nanoseconds.

    Raises
    ------
    ValueError : no unit, an unknown unit, or out of the 64-bit range; the message quotes the text
    """
    body = text[1:] if text[:1] in {"+", "-"} else text
    if body == "0":
        return 0
    total, position = Fraction(0), 0
    while position < len(body):
        part = _PART.match(body, position)
        if part is None:
            break
        total += Fraction(part[1].rstrip(".") if part[1] != "." else "0") * UNITS[part[2]]
        position = part.end()
    if not body or position < len(body) or total > MAX_NANOSECONDS:
        raise ValueError(f"{text!r} is not a duration such as 90s, 5m or 1h30m")
    return -int(total) if text.startswith("-") else int(total)


def format_duration(nanoseconds: int) -> str:
    """Return the canonical form: `5m0s`, `1h0m0s`, `1.5s`, `250ms`, `0s`."""
    sign, rest = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if rest == 0:
        return "0s"
    for unit in ("ns", "µs", "ms"):
        if rest < {"ns": 1_000, "µs": 1_000_000, "ms": SECOND}[unit]:
            return f"{sign}{_decimal(rest, UNITS[unit])}{unit}"
    minutes, seconds = divmod(rest, 60 * SECOND)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(seconds, SECOND)}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{text}"
    return f"{sign}{minutes}m{text}" if minutes else f"{sign}{text}"


def _decimal(value: int, unit: int) -> str:
    whole, part = divmod(value, unit)
    if not part:
        return str(whole)
    digits = len(str(unit)) - 1
    return f"{whole}.{part:0{digits}d}".rstrip("0")

"""One problem of a queue or of an edit, and how values of unknown kind are shown in it. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kube.values.durations import parse_duration

SHOWN_LENGTH = 80


class Severity(StrEnum):
    """An edit with an error is refused; warnings are returned with the result."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One problem of a queue or an edit."""

    pointer: str
    code: str
    message: str
    severity: Severity = Severity.ERROR
    given: Any = None
    allowed: Any = None

    def as_dict(self) -> dict[str, Any]:
        """Return the entry of a problem's `errors` or of an answer's `warnings`."""
        return {
            "pointer": self.pointer,
            "code": self.code,
            "message": self.message,
            "given": self.given,
            "allowed": self.allowed,
        }


def shown(value: object) -> Any:
    """Return the value if it is small and plain JSON, else a short description of it."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, int):
        return value if abs(value) < 2**53 else f"an integer of {value.bit_length()} bits"
    if isinstance(value, str):
        # Lone surrogates cannot be encoded as UTF-8.
        clean = value.encode(errors="replace").decode()
        return clean if len(clean) <= SHOWN_LENGTH else clean[:SHOWN_LENGTH] + "…"
    return f"a value of type {type(value).__name__}"


def is_clean(text: str) -> bool:
    """Return whether a string is valid Unicode without NUL, so that it can be stored and sent everywhere."""
    try:
        return b"\x00" not in text.encode()
    except UnicodeEncodeError:
        return False


def duration_fault(pointer: str, text: str) -> Finding | None:
    """Return what is wrong with a duration; None if it is one of 0 or more."""
    try:
        is_fine = parse_duration(text) >= 0
    except ValueError:
        is_fine = False
    if is_fine:
        return None
    return Finding(
        pointer=pointer,
        code="duration",
        message=f"{pointer[1:]}: expected a duration >= 0 such as 90s, 5m or 1h30m,"
        f" got '{shown(text)}'",
        given=shown(text),
        allowed="duration >= 0",
    )

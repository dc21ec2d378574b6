"""The result of judging one case: each expectation that was not met."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """One expectation that did not hold; `where` names what was looked at."""

    where: str
    expected: Any
    actual: Any

    def as_text(self) -> str:
        """Return the mismatch on one line."""
        return f"{self.where}: expected {self.expected!r}, got {self.actual!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The judgement of one case: it passes when nothing mismatched and nothing broke."""

    case: str
    mismatches: tuple[Mismatch, ...] = ()
    judged: bool = True

    @property
    def passed(self) -> bool:
        """Return whether every expectation held."""
        return not self.mismatches

    def as_dict(self) -> dict[str, Any]:
        """Return the verdict as `--json` prints it."""
        return {
            "case": self.case,
            "passed": self.passed,
            "mismatches": [
                {"where": miss.where, "expected": miss.expected, "actual": miss.actual}
                for miss in self.mismatches
            ],
        }


def compare_numbers(where: str, expected: float, actual: float) -> list[Mismatch]:
    """Compare two amounts to one part in a million."""
    if abs(expected - actual) <= 1e-6 * max(1.0, abs(expected)):
        return []
    return [Mismatch(where=where, expected=expected, actual=float(actual))]


def compare_values(where: str, expected: Any, actual: Any) -> list[Mismatch]:
    """Compare two values for equality."""
    return [] if expected == actual else [Mismatch(where=where, expected=expected, actual=actual)]

"""What was measured beside what it should be: one table of names, figures and goals."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured figure.

    Attributes
    ----------
    goal : what it should be at most (at least, if `more_is_better`); None: no goal is set
    note : printed behind it
    """

    name: str
    measured: float
    unit: str
    goal: float | None = None
    more_is_better: bool = False
    note: str = ""

    @property
    def verdict(self) -> str:
        """Return 'met', or by how much of the goal the figure misses it; '-' without a goal."""
        if self.goal is None:
            return "-"
        missed = (self.measured - self.goal) / self.goal
        if self.more_is_better:
            missed = -missed
        return "met" if missed <= 0 else f"missed by {100 * missed:.1f} %"

    def line(self) -> str:
        """Return the figure as a line of the table."""
        return f"{self.name:<48}{_number(self.measured):>9}{_number(self.goal):>8} {self.unit:<4}{self.verdict:<18}{self.note}".rstrip()


HEAD = f"{'what':<48}{'measured':>9}{'goal':>8}"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.1f}" if value >= 10 else f"{value:.3f}"

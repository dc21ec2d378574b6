"""Backfill: keep room for pod groups at the head of the order, and lend it to work that declares to end in time.

The rules are in `scheduler.core.placement.reservations`; this switches them on. Off by default: as in KAI, whoever fits then
takes the room that a large gang in front of it is waiting for.
"""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.core.errors import ConfigError
from scheduler.core.plugins.spec import ArgumentTexts
from scheduler.core.session.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillArguments:
    """For how many pod groups room is kept at a time, and how long before they start at most."""

    reservations: int = 4
    horizon_s: float = 24 * 3600.0

    def __post_init__(self) -> None:
        """Refuse less than one."""
        if self.reservations < 1:
            raise ConfigError(f"backfill.reservations: expected 1 or more, got {self.reservations}")

    @classmethod
    def parse(cls, texts: ArgumentTexts) -> BackfillArguments:
        """Return the arguments of a configuration."""
        return cls(
            reservations=int(texts.number("reservations", 4)),
            horizon_s=texts.seconds("horizon", 24 * 3600.0),
        )


class BackfillPlugin:
    """Lets allocate keep room for those who wait."""

    def __init__(self, arguments: BackfillArguments) -> None:
        self._arguments = arguments

    def open(self, session: Session) -> None:
        """Set for how many pod groups, and how long."""
        session.hooks.reservations = self._arguments.reservations
        session.hooks.reservation_horizon_s = self._arguments.horizon_s

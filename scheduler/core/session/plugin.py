"""What a plugin is: something that adds to a session when it opens, and keeps nothing after it."""

from __future__ import annotations

from typing import Protocol

from scheduler.core.session.session import Session


class Plugin(Protocol):
    """Made anew for every session."""

    def open(self, session: Session) -> None:
        """Register hooks and prepare what they need."""
        ...

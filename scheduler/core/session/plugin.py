"""The interface of a plugin."""

from __future__ import annotations

from typing import Protocol

from scheduler.core.session.session import Session


class Plugin(Protocol):
    """Adds rules to one session. A new object is made for every session."""

    def open(self, session: Session) -> None:
        """Register hooks with the session, and prepare what they need."""
        ...

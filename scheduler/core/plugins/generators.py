"""Switches for the generators of victim scenarios, which are part of the solver."""

from __future__ import annotations

from scheduler.core.session.session import Session


class GeneratorPlugin:
    """Lets the solver use one generator, in the order of the configuration."""

    def __init__(self, name: str) -> None:
        self._name = name

    def open(self, session: Session) -> None:
        """Add the generator."""
        session.hooks.generators.append(self._name)

"""Fixtures for the program in a reservation pod."""

from __future__ import annotations

from tests.fakes.sandbox_server import sandbox

__all__ = ["sandbox"]

"""Fixtures for the exporter of NUMA placements."""

from __future__ import annotations

from tests.fakes.sandbox_server import sandbox

__all__ = ["sandbox"]

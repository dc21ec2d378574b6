"""The main job on real input, on the embedded cluster."""

from __future__ import annotations

import pytest

from tests.integration.road import RoadChecks, road  # noqa: F401 - a fixture

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


class TestRoad(RoadChecks):
    """Every check of the road."""

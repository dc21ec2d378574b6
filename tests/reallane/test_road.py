"""The main job once more, on a real kube-apiserver: the same checks as on the embedded cluster."""

from __future__ import annotations

import pytest

from tests.integration.road import RoadChecks, road  # noqa: F401 - a fixture

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


class TestRealRoad(RoadChecks):
    """Every check of the road."""

"""From a submitted workload to running pods, on the embedded cluster."""

from __future__ import annotations

import pytest

from tests.integration.end_to_end import EndToEndChecks, workloads  # noqa: F401 - a fixture

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


class TestEndToEnd(EndToEndChecks):
    """Every end-to-end check."""

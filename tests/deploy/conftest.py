"""The real helm, or a skip."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.deploy.chart import Manifest, rendered
from tests.real_cluster.build import HELM, ClusterUnavailableError, ensure_program


@pytest.fixture(scope="session")
def helm() -> Path:
    """Helm, built at the first use."""
    try:
        return ensure_program(HELM)
    except ClusterUnavailableError as error:
        pytest.skip(f"no helm here: {error}")


@pytest.fixture(scope="session")
def chart(helm: Path) -> list[Manifest]:
    """The objects of the chart with its own values."""
    return rendered(helm)

"""The real helm, or a skip; and the whole installation that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.chart import Manifest, rendered
from tests.deploy.whole import WholeInstallation, whole_or_skip
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


@pytest.fixture(scope="package")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeInstallation]:
    """The chart, installed beside a real control plane, with all its processes."""
    with whole_or_skip(tmp_path_factory.mktemp("whole"), nodes="4x8") as running:
        yield running

"""An installation of ours on a real kube-apiserver, with our simulators as its kubelets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.stack import Stack, running_stack
from tests.reallane.cluster import RealCluster
from tests.reallane.fixture import real_cluster  # noqa: F401 - a fixture


@pytest.fixture(scope="session")
def stack(
    real_cluster: RealCluster,  # noqa: F811 - asks for the fixture
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stack]:
    """Everything but the embedded API server, without the demo stream."""
    home: Path = tmp_path_factory.mktemp("kaiweb-real")
    kubeconfig = home / "kubeconfig"
    kubeconfig.write_bytes(real_cluster.kubeconfig.read_bytes())
    environment = {"KAIWEB_KUBECONFIG": str(kubeconfig), "KAIWEB_SIMULATE": "1"}
    with running_stack(home, environment) as running:
        yield running

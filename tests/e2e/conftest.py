"""One installation on a real kube-apiserver for all tests of this folder, and what the server noted of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.audit import AuditLog
from tests.e2e.rare_manifests import GATES
from tests.integration.stack import Stack
from tests.real_cluster.cluster import RealCluster
from tests.real_cluster.installation import prepared_cluster, stack_on


@pytest.fixture(scope="package")
def audit(tmp_path_factory: pytest.TempPathFactory) -> AuditLog:
    """The audit log of the cluster of this folder."""
    return AuditLog(tmp_path_factory.mktemp("audit"))


@pytest.fixture(scope="package")
def cluster(audit: AuditLog, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """A real cluster that writes down what our accounts do."""
    folder = tmp_path_factory.mktemp("real-cluster")
    flags = [*audit.flags(), f"--feature-gates={GATES}"]
    with prepared_cluster(folder, extra_flags=flags) as running:
        yield running


@pytest.fixture(scope="package")
def stack(cluster: RealCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Everything but the embedded API server, without the demo stream."""
    with stack_on(cluster, tmp_path_factory.mktemp("kaiweb-real")) as running:
        yield running

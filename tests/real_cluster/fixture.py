"""The pytest fixture of the real cluster: one cluster per test session, or a skip with a clear line.

A tests folder that needs it imports the fixture in its conftest and marks its tests `e2e`.
`KAIWEB_REAL_CLUSTER=off` skips without building, for a quick local run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.real_cluster.build import ClusterUnavailableError, ensure_binaries
from tests.real_cluster.cluster import RealCluster, running_cluster


@pytest.fixture(scope="session")
def real_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """A real kube-apiserver with etcd, empty but for what the server makes itself."""
    with running_or_skip(tmp_path_factory.mktemp("real-cluster")) as cluster:
        yield cluster


@contextmanager
def running_or_skip(folder: Path, *, extra_flags: Sequence[str] = ()) -> Iterator[RealCluster]:
    """Run a cluster in `folder`, or skip the test that asked for it, saying what is missing."""
    if os.environ.get("KAIWEB_REAL_CLUSTER") == "off":
        pytest.skip("the tests on a real kube-apiserver are switched off (KAIWEB_REAL_CLUSTER=off)")
    try:
        binaries = ensure_binaries()
    except ClusterUnavailableError as error:
        pytest.skip(f"no real kube-apiserver here: {error}")
    # From here on it is there: a server that does not start or come back is a failure, not a reason to skip.
    with running_cluster(folder, binaries, extra_flags=extra_flags) as cluster:
        yield cluster

"""The pytest side of the real lane: one cluster per test session, or a skip with a clear line.

A tests folder that needs it imports the fixture in its conftest and marks its tests `e2e`.
`KAIWEB_REALLANE=off` skips without building, for a quick local run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.reallane.build import LaneUnavailableError, ensure_binaries
from tests.reallane.cluster import RealCluster, running_cluster


@pytest.fixture(scope="session")
def real_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """A real kube-apiserver with etcd, empty but for what the server makes itself."""
    with running_or_skip(tmp_path_factory.mktemp("reallane")) as cluster:
        yield cluster


@contextmanager
def running_or_skip(folder: Path, *, extra_flags: Sequence[str] = ()) -> Iterator[RealCluster]:
    """Run a cluster in `folder`, or skip the test that asked for it, saying what is missing."""
    if os.environ.get("KAIWEB_REALLANE") == "off":
        pytest.skip("the real kube-apiserver lane is switched off (KAIWEB_REALLANE=off)")
    try:
        with running_cluster(folder, ensure_binaries(), extra_flags=extra_flags) as cluster:
            yield cluster
    except LaneUnavailableError as error:
        pytest.skip(f"no real kube-apiserver here: {error}")

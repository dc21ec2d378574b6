"""What is missing skips tests; what is there and does not work fails them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real_cluster import fixture
from tests.real_cluster.build import Binaries, ClusterUnavailableError
from tests.real_cluster.cluster import ClusterStartError


@pytest.fixture(autouse=True)
def _is_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAIWEB_REAL_CLUSTER", raising=False)


def test_programs_that_cannot_be_built_skip(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def no_go() -> Binaries:
        raise ClusterUnavailableError("no Go")

    monkeypatch.setattr(fixture, "ensure_binaries", no_go)
    with (
        pytest.raises(pytest.skip.Exception, match="no real kube-apiserver here: no Go"),
        fixture.running_or_skip(tmp_path),
    ):
        pass


def test_a_server_that_was_built_but_does_not_start_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = Binaries(kube_apiserver=Path("/bin/false"), etcd=Path("/bin/false"))
    monkeypatch.setattr(fixture, "ensure_binaries", lambda: broken)
    with (
        pytest.raises(ClusterStartError, match="ended with 1"),
        fixture.running_or_skip(tmp_path),
    ):
        pass

"""An installation of ours on a real kube-apiserver: each process with the rights of its own account only.

The administrator's kubeconfig goes to bootstrap (custom resources, default objects) and to the simulators,
which play kubelets and workload controllers. There is no controller manager: nothing collects garbage and
no namespace is ever finalised.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kaiweb.supervisor.layout import ACCOUNTS
from tests.e2e.audit import AuditLog
from tests.integration.stack import Stack, kubectl_path, running_stack
from tests.reallane.cluster import RealCluster
from tests.reallane.fixture import running_or_skip

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


@pytest.fixture(scope="package")
def audit(tmp_path_factory: pytest.TempPathFactory) -> AuditLog:
    """The audit log of the cluster of this folder."""
    return AuditLog(tmp_path_factory.mktemp("audit"))


@pytest.fixture(scope="package")
def cluster(audit: AuditLog, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """A real cluster that knows our accounts and their roles, and writes down what they do."""
    folder = tmp_path_factory.mktemp("real-cluster")
    with running_or_skip(folder, extra_flags=audit.flags()) as running:
        _kubectl(running, "apply", "-f", str(DEPLOY / "defaults" / "namespaces.yaml"))
        _kubectl(running, "apply", "-f", str(DEPLOY / "rbac"))
        yield running


@pytest.fixture(scope="package")
def stack(cluster: RealCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Everything but the embedded API server, without the demo stream."""
    home = tmp_path_factory.mktemp("kaiweb-real")
    (home / "kubeconfig").write_bytes(cluster.kubeconfig.read_bytes())
    accounts = home / "accounts"
    accounts.mkdir()
    for account in ACCOUNTS:
        token = _kubectl(cluster, "create", "token", account, "-n", "kai-scheduler").strip()
        _write_kubeconfig(accounts / f"{account}.kubeconfig", cluster, token)
    environment = {
        "KAIWEB_KUBECONFIG": str(home / "kubeconfig"),
        "KAIWEB_SIMULATE": "1",
        "KAIWEB_ACCOUNTS": str(accounts),
    }
    with running_stack(home, environment) as running:
        yield running


def _kubectl(cluster: RealCluster, *arguments: str) -> str:
    done = subprocess.run(
        [kubectl_path(), "--kubeconfig", str(cluster.kubeconfig), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "HOME": str(cluster.folder)},
    )
    assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
    return done.stdout


def _write_kubeconfig(file: Path, cluster: RealCluster, token: str) -> None:
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"] = [{"name": "account", "user": {"token": token}}]
    config["contexts"] = [
        {"name": "account", "context": {"cluster": "reallane", "user": "account"}}
    ]
    config["current-context"] = "account"
    file.touch(mode=0o600)
    file.write_text(yaml.safe_dump(config))

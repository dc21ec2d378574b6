"""An installation of ours on a real kube-apiserver: each process with the rights of its own account only.

The administrator's kubeconfig goes to bootstrap (custom resources, default objects) and to the simulators,
which play kubelets and workload controllers. There is no controller manager: our simulated collector knows the
kinds that scheduling meets, and our simulated namespace controller ends namespaces.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import yaml

from kaiweb.supervisor.layout import ACCOUNTS
from tests.integration.stack import Stack, kubectl_path, running_stack
from tests.real_cluster.cluster import Cluster, RealCluster
from tests.real_cluster.fixture import running_or_skip

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


@contextmanager
def prepared_cluster(folder: Path, *, extra_flags: Sequence[str] = ()) -> Iterator[RealCluster]:
    """A real cluster that knows our accounts and their roles, or a skip."""
    with running_or_skip(folder, extra_flags=extra_flags) as running:
        run_kubectl(running, "apply", "-f", str(DEPLOY / "defaults" / "namespaces.yaml"))
        run_kubectl(running, "apply", "-f", str(DEPLOY / "rbac"))
        yield running


@contextmanager
def stack_on(
    cluster: RealCluster, home: Path, environment: Mapping[str, str] | None = None
) -> Iterator[Stack]:
    """Everything but the embedded API server, without the demo stream."""
    home.mkdir(parents=True, exist_ok=True)
    (home / "kubeconfig").write_bytes(cluster.kubeconfig.read_bytes())
    accounts = home / "accounts"
    accounts.mkdir()
    for account in ACCOUNTS:
        account_kubeconfig(accounts / f"{account}.kubeconfig", cluster, account)
    settings = {
        "KAIWEB_KUBECONFIG": str(home / "kubeconfig"),
        "KAIWEB_SIMULATE": "1",
        "KAIWEB_ACCOUNTS": str(accounts),
        **(environment or {}),
    }
    with running_stack(home, settings) as running:
        yield running


def run_kubectl(cluster: Cluster, *arguments: str) -> str:
    """Run kubectl as the administrator; return what it prints."""
    result = subprocess.run(
        [kubectl_path(), "--kubeconfig", str(cluster.kubeconfig), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "HOME": str(cluster.folder)},
    )
    assert result.returncode == 0, f"kubectl {' '.join(arguments)}: {result.stderr}"
    return result.stdout


def account_kubeconfig(
    file: Path,
    cluster: Cluster,
    account: str,
    server: str = "",
    *,
    namespace: str = "kai-scheduler",
) -> None:
    """Write a kubeconfig with a token of one service account.

    Parameters
    ----------
    server : an address of plain HTTP, e.g. of a proxy, instead of the API server's own
    """
    token = run_kubectl(cluster, "create", "token", account, "-n", namespace).strip()
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"] = [{"name": "account", "user": {"token": token}}]
    cluster_name = config["clusters"][0]["name"]
    config["contexts"] = [
        {"name": "account", "context": {"cluster": cluster_name, "user": "account"}}
    ]
    config["current-context"] = "account"
    if server:
        config["clusters"][0]["cluster"] = {"server": server}
    file.touch(mode=0o600)
    file.write_text(yaml.safe_dump(config))

"""A real etcd and kube-apiserver on loopback ports, for as long as a test session needs them.

The smallest set of flags with RBAC on: bearer tokens from a file (one user in system:masters, one
plain user without any right), no cloud, no kubelets, no controller manager. Whoever needs garbage
collection or pods that run brings our simulators. Everything lives in one folder that may be thrown
away; both processes die with the process that started them.

    python -m tests.real_cluster.cluster      # prints a KUBECONFIG line and stays until Ctrl-C
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import secrets
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.real_cluster.build import Binaries, ClusterUnavailableError, ensure_binaries

ADMIN_USER = "admin"
PLAIN_USER = "plain-user"
#: Generous, because a server that starts again beside much work shares the machine with it.
READY_WITHIN_S = 180.0
_PR_SET_PDEATHSIG = 1


class Cluster(Protocol):
    """What kubectl and the programs of the tests need of a cluster, real or embedded."""

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""

    @property
    def folder(self) -> Path:
        """Where programs beside it keep their files and logs."""


class ClusterStartError(Exception):
    """A program that is there ended or was not ready in time; the message has the end of its log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RealCluster:
    """How to reach one running cluster; the kubeconfig has the contexts `admin` and `plain-user`."""

    url: str
    ca_file: Path
    admin_token: str
    plain_token: str
    kubeconfig: Path
    etcd_url: str
    folder: Path
    #: Kill the API server, call what is passed while it is away, and start it again; returns when it is ready. To be
    #: called by the thread that lives as long as the cluster: the kernel ends the server with the thread that starts it.
    restart: Callable[..., None]

    def revision(self) -> int:
        """Return the newest revision of etcd, which is the newest resourceVersion."""
        body = json.dumps({"key": "AA==", "range_end": "AA==", "limit": "1"}).encode()
        request = urllib.request.Request(f"{self.etcd_url}/v3/kv/range", body)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(json.load(answer)["header"]["revision"])

    def compact(self, revision: int) -> None:
        """Drop etcd's history before a revision, so that old resourceVersions are really gone."""
        body = json.dumps({"revision": str(revision), "physical": True}).encode()
        request = urllib.request.Request(f"{self.etcd_url}/v3/kv/compaction", body)
        with urllib.request.urlopen(request, timeout=10):
            pass


@contextlib.contextmanager
def running_cluster(
    folder: Path, binaries: Binaries, *, extra_flags: Sequence[str] = ()
) -> Iterator[RealCluster]:
    """Start etcd and kube-apiserver in `folder`, wait until ready, stop both at the end.

    Raises
    ------
    ClusterStartError : a process ended or was not ready in time; carries the end of its log
    """
    folder.mkdir(parents=True, exist_ok=True)
    etcd_port, peer_port, api_port = free_ports(3)
    etcd_url = f"http://127.0.0.1:{etcd_port}"
    processes: dict[str, subprocess.Popen[bytes]] = {}

    def restart(meanwhile: Callable[[], None] = lambda: None) -> None:
        processes["kube-apiserver"].kill()
        processes["kube-apiserver"].wait()
        meanwhile()
        start("kube-apiserver", [*_apiserver_command(binaries, cluster, api_port), *extra_flags])
        _wait_ready(cluster, processes)

    def start(name: str, command: Sequence[str]) -> None:
        processes[name] = stack.enter_context(process_of_the_tests(name, folder, command))

    cluster = RealCluster(
        url=f"https://127.0.0.1:{api_port}",
        ca_file=folder / "certs" / "apiserver.crt",
        admin_token=secrets.token_urlsafe(24),
        plain_token=secrets.token_urlsafe(24),
        kubeconfig=folder / "kubeconfig",
        etcd_url=etcd_url,
        folder=folder,
        restart=restart,
    )
    _write_credentials(cluster)
    with contextlib.ExitStack() as stack:
        start("etcd", _etcd_command(binaries, folder, etcd_url, peer_port))
        start("kube-apiserver", [*_apiserver_command(binaries, cluster, api_port), *extra_flags])
        _wait_ready(cluster, processes)
        _write_kubeconfig(cluster)
        yield cluster


def free_ports(count: int) -> list[int]:
    """Return different free loopback ports; held open together so that none is handed out twice."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each_socket in sockets:
            each_socket.bind(("127.0.0.1", 0))
        return [int(each_socket.getsockname()[1]) for each_socket in sockets]


def _etcd_command(binaries: Binaries, folder: Path, url: str, peer_port: int) -> list[str]:
    peer = f"http://127.0.0.1:{peer_port}"
    return [
        str(binaries.etcd),
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        # The data is thrown away: losing it in a power cut does not matter, waiting for disks does.
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def _apiserver_command(binaries: Binaries, cluster: RealCluster, port: int) -> list[str]:
    folder = cluster.folder
    return [
        str(binaries.kube_apiserver),
        f"--etcd-servers={cluster.etcd_url}",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--cert-dir={folder / 'certs'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder / 'service-account.key'}",
        f"--service-account-signing-key-file={folder / 'service-account.key'}",
        "--service-cluster-ip-range=10.255.0.0/24",
        "--authorization-mode=RBAC",
        f"--token-auth-file={folder / 'tokens.csv'}",
        # Without a controller manager the default service accounts it would require do not exist.
        "--disable-admission-plugins=ServiceAccount",
        "--endpoint-reconciler-type=none",
        "--v=1",
    ]


def _write_credentials(cluster: RealCluster) -> None:
    (cluster.folder / "tokens.csv").write_text(
        f'{cluster.admin_token},{ADMIN_USER},{ADMIN_USER},"system:masters"\n'
        f"{cluster.plain_token},{PLAIN_USER},{PLAIN_USER}\n"
    )
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    (cluster.folder / "service-account.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )


def _write_kubeconfig(cluster: RealCluster) -> None:
    tokens = {ADMIN_USER: cluster.admin_token, PLAIN_USER: cluster.plain_token}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "real-cluster",
                "cluster": {
                    "server": cluster.url,
                    "certificate-authority": str(cluster.ca_file),
                },
            }
        ],
        "users": [{"name": user, "user": {"token": token}} for user, token in tokens.items()],
        "contexts": [
            {"name": user, "context": {"cluster": "real-cluster", "user": user}} for user in tokens
        ],
        "current-context": ADMIN_USER,
    }
    cluster.kubeconfig.write_text(yaml.safe_dump(config, sort_keys=False))
    cluster.kubeconfig.chmod(0o600)


@contextlib.contextmanager
def process_of_the_tests(
    name: str, folder: Path, command: Sequence[str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program with its log in `folder`; end it with the block, or with the process of the tests."""
    with (folder / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(
            command,
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            cwd=folder,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                # kube-apiserver drains for a long time when a watch is still open.
                process.kill()
                process.wait()


def die_with_parent() -> None:
    """Ask the kernel to end this child when its parent dies, however it dies."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _wait_ready(cluster: RealCluster, processes: dict[str, subprocess.Popen[bytes]]) -> None:
    deadline = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < deadline:
        for name, process in processes.items():
            if process.poll() is not None:
                raise ClusterStartError(
                    f"{name} ended with {process.returncode}:\n{log_tail(cluster, name)}"
                )
        if _is_ready(cluster):
            return
        time.sleep(0.1)
    raise ClusterStartError(
        f"kube-apiserver was not ready within {READY_WITHIN_S:.0f} s:\n"
        + log_tail(cluster, "kube-apiserver")
    )


def _is_ready(cluster: RealCluster) -> bool:
    if not cluster.ca_file.exists():
        return False
    request = urllib.request.Request(
        f"{cluster.url}/readyz", headers={"Authorization": f"Bearer {cluster.admin_token}"}
    )
    try:
        trust = ssl.create_default_context(cafile=str(cluster.ca_file))
        with urllib.request.urlopen(request, timeout=2, context=trust) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def log_tail(cluster: Cluster, name: str) -> str:
    """Return the last lines of the log of one process."""
    lines = (cluster.folder / f"{name}.log").read_text(errors="replace").splitlines()
    return "\n".join(lines[-15:])


def main() -> None:
    """Run a cluster in a temporary folder until interrupted."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="real-cluster-") as folder:
        started = time.monotonic()
        with running_cluster(Path(folder), ensure_binaries()) as cluster:
            print(f"ready after {time.monotonic() - started:.1f} s at {cluster.url}")
            print(f"export KUBECONFIG={cluster.kubeconfig}", flush=True)
            with contextlib.suppress(KeyboardInterrupt):
                signal.pause()


if __name__ == "__main__":
    try:
        main()
    except ClusterUnavailableError as error:
        sys.exit(f"real cluster skipped: {error}")

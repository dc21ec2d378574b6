"""A real kube-controller-manager for a real cluster: Jobs, Deployments, garbage collection, the end of namespaces.

The node lifecycle controller is off: simulated nodes send no heartbeats, and it would take them for dead.
"""

from __future__ import annotations

import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from tests.real_cluster.build import CONTROLLER_MANAGER, ensure_program
from tests.real_cluster.cluster import (
    Cluster,
    ClusterStartError,
    free_ports,
    log_tail,
    process_of_the_tests,
)

READY_WITHIN_S = 60.0
#: Controllers that would need kubelets, and those of clouds.
LEFT_OUT = ("node-lifecycle-controller", "node-ipam-controller", "taint-eviction-controller")


class ManagedCluster(Cluster, Protocol):
    """A cluster for which the controller manager may sign and publish certificates."""

    @property
    def ca_file(self) -> Path:
        """The certificate of its authority."""


@contextmanager
def running_controller_manager(cluster: ManagedCluster) -> Iterator[subprocess.Popen[bytes]]:
    """Start the controller manager as an administrator; wait until it answers; stop it at the end.

    Without a key for tokens in the folder it signs none: the embedded server does that itself.

    Raises
    ------
    ClusterUnavailableError : it cannot be built here
    ClusterStartError : it ended, or was not ready in time
    """
    program = ensure_program(CONTROLLER_MANAGER)
    (port,) = free_ports(1)
    command = [
        str(program),
        f"--kubeconfig={cluster.kubeconfig}",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        f"--cert-dir={cluster.folder / 'controller-manager-certs'}",
        *_token_signing(cluster.folder / "service-account.key"),
        f"--root-ca-file={cluster.ca_file}",
        f"--controllers=*,{','.join(f'-{name}' for name in LEFT_OUT)}",
        "--leader-elect=false",
        # Its own limit of 20 requests a second would be slower than everything that is tested.
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
        "--concurrent-gc-syncs=20",
        "--v=1",
    ]
    with process_of_the_tests(CONTROLLER_MANAGER.name, cluster.folder, command) as process:
        _await_ready(cluster, process, port)
        yield process


def _token_signing(key: Path) -> list[str]:
    return [f"--service-account-private-key-file={key}"] if key.exists() else []


def _await_ready(cluster: Cluster, process: subprocess.Popen[bytes], port: int) -> None:
    # The health endpoint of a component needs no log-in; its certificate is its own.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    deadline = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(
                f"https://127.0.0.1:{port}/healthz", timeout=2, context=context
            ):
                return
        except (OSError, urllib.error.URLError):
            time.sleep(0.1)
    raise ClusterStartError(
        f"kube-controller-manager was not ready within {READY_WITHIN_S:.0f} s:\n"
        + log_tail(cluster, CONTROLLER_MANAGER.name)
    )

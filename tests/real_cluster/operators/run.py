"""Run one operator beside a control plane, as its own installation would, but outside of the cluster.

No network leads from the API server to a Service here, so webhooks are registered by the operator's address on this
machine, with a certificate that we issue, and for one namespace only. Those of the training operator cannot be: it makes
its certificate for the name of a Service and has no flag against it. The control plane may be the embedded one.
"""

from __future__ import annotations

import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography.hazmat.primitives import serialization

from kube.certificates import Issued, issue_authority, issue_server
from tests.real_cluster.build import ensure_program
from tests.real_cluster.cluster import (
    Cluster,
    ClusterStartError,
    free_ports,
    log_tail,
    process_of_the_tests,
)
from tests.real_cluster.installation import account_kubeconfig
from tests.real_cluster.operators.install import installed
from tests.real_cluster.operators.programs import (
    MPI,
    TRAINING,
    TRAINING_CERTIFICATES,
    Operator,
    Ports,
)

READY_WITHIN_S = 120.0
LIFETIME = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One process of an operator and where it answers."""

    operator: Operator
    name: str
    ports: Ports
    certificates: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A replica and its process."""

    replica: Replica
    process: subprocess.Popen[bytes]

    def second(self) -> Replica:
        """Return another replica of the same operator; the webhooks stay with the first."""
        replica = self.replica
        return replace(replica, name=f"{replica.name}-2", ports=_ports(replica.operator))


@contextmanager
def running_operator(cluster: Cluster, operator: Operator, namespace: str) -> Iterator[Running]:
    """Install an operator's kinds, roles and webhooks, run it until the end of the block, and remove its webhooks.

    Parameters
    ----------
    namespace : the one in which the operator's webhooks are asked

    Raises
    ------
    ClusterUnavailableError : the operator cannot be built here
    ClusterStartError : it ended, or was not ready in time
    """
    ensure_program(operator.program)
    folder = cluster.folder / operator.name
    certificates = TRAINING_CERTIFICATES if operator is TRAINING else folder / "certificates"
    certificates.mkdir(parents=True, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    authority = _write_certificates(certificates)
    replica = Replica(
        operator=operator, name=operator.name, ports=_ports(operator), certificates=certificates
    )
    with (
        installed(cluster, operator, namespace, replica.ports.webhook, authority),
        running_replica(cluster, replica) as process,
    ):
        yield Running(replica=replica, process=process)


@contextmanager
def running_replica(cluster: Cluster, replica: Replica) -> Iterator[subprocess.Popen[bytes]]:
    """Run one process of an installed operator until the end of the block."""
    operator = replica.operator
    command = _command(cluster, replica)
    with process_of_the_tests(replica.name, cluster.folder, command) as process:
        path = "healthz" if operator is MPI else "readyz"
        url = f"http://127.0.0.1:{replica.ports.health}/{path}"
        deadline = time.monotonic() + READY_WITHIN_S
        while not _answers(url):
            if process.poll() is not None or time.monotonic() > deadline:
                end = log_tail(cluster, replica.name)
                raise ClusterStartError(f"{replica.name} is not ready:\n{end}")
            time.sleep(0.2)
        yield process


def _command(cluster: Cluster, replica: Replica) -> list[str]:
    operator, folder = replica.operator, cluster.folder / replica.operator.name
    kubeconfig = cluster.kubeconfig
    if operator.account:
        kubeconfig = folder / "kubeconfig"
        account_kubeconfig(kubeconfig, cluster, operator.account, namespace=operator.namespace)
    program = ensure_program(operator.program)
    command = [str(program), *operator.flags(replica.ports, replica.certificates)]
    command += [f"--{'kubeConfig' if operator is MPI else 'kubeconfig'}={kubeconfig}"]
    if configuration := operator.configuration(replica.ports, replica.certificates):
        file = folder / f"{replica.name}.yaml"
        file.write_text(configuration)
        command += [f"--config={file}"]
    return command


def _ports(operator: Operator) -> Ports:
    webhook, metrics, health = free_ports(3)
    # The MPI operator has no flag for the port of its health.
    return Ports(webhook=webhook, metrics=metrics, health=8080 if operator is MPI else health)


def _write_certificates(folder: Path) -> bytes:
    """Write a server certificate for this machine; return that of its authority."""
    now = datetime.now(UTC)
    authority = issue_authority("operators", now, LIFETIME)
    server = issue_server(authority, "operator", ["127.0.0.1"], now, LIFETIME)
    (folder / "tls.crt").write_bytes(_pem(server))
    (folder / "tls.key").write_bytes(
        server.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return _pem(authority)


def _pem(issued: Issued) -> bytes:
    return issued.certificate.public_bytes(serialization.Encoding.PEM)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True
    except (OSError, urllib.error.URLError):
        return False

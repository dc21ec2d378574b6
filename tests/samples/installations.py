"""The two clusters that samples run on: the embedded one, and a real kube-apiserver.

Each carries a whole installation without the demo's nodes and workloads, and the machines of
`manifests/90-nodes.yaml`, made with kubectl as anyone could; the simulated kubelets serve whatever node exists.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kaiweb.supervisor.broker import broker_url
from kube.client import HttpGateway, connect
from tests.integration.stack import Stack, running_stack
from tests.real_cluster.installation import prepared_cluster, stack_on

MANIFESTS = Path(__file__).parent / "manifests"
NODES_FILE = MANIFESTS / "90-nodes.yaml"
NOT_READY = "node.kubernetes.io/not-ready"
ENVIRONMENT = {"KAIWEB_NODES": "none"}
#: Off by default in this version of Kubernetes; sample 27 needs it.
EXTENDED_RESOURCES = "--feature-gates=DRAExtendedResource=true"


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """One running installation: kubectl writes into it, the gateway reads what became of it."""

    name: str
    stack: Stack
    gateway: HttpGateway

    def add_nodes(self, file: Path) -> None:
        """Put machines into the cluster and make them ready.

        A status that changes needs a write of its own, and a real API server taints each new node until
        its node controller, which runs in neither installation, has seen it ready.
        """
        self.stack.kubectl("apply", "-f", str(file))
        self.stack.kubectl(
            "apply", "-f", str(file), "--server-side", "--force-conflicts", "--subresource=status"
        )
        tainted = [
            node["metadata"]["name"]
            for node in self.stack.objects("nodes")
            if any(taint["key"] == NOT_READY for taint in node["spec"].get("taints") or ())
        ]
        if tainted:
            self.stack.kubectl("taint", "nodes", *tainted, f"{NOT_READY}-")

    def port(self, name: str) -> int:
        """Return a port of the installation by its name in ports.json, e.g. `controller-metrics`."""
        ports: dict[str, int] = json.loads((self.stack.home / "ports.json").read_text())
        return ports[name]

    def broker_url(self) -> str:
        """Return the REDIS_URL of the installation's own broker."""
        return broker_url(port=self.port("broker"), home=self.stack.home)


@contextmanager
def embedded_installation(folder: Path) -> Iterator[Installation]:
    """An installation on its embedded cluster."""
    with (
        running_stack(folder, ENVIRONMENT) as stack,
        _installation("embedded", stack) as installation,
    ):
        yield installation


@contextmanager
def real_cluster_installation(folder: Path) -> Iterator[Installation]:
    """An installation on a real kube-apiserver, each process with the rights of its own account."""
    with (
        prepared_cluster(folder / "cluster", extra_flags=(EXTENDED_RESOURCES,)) as cluster,
        stack_on(cluster, folder / "home", ENVIRONMENT) as stack,
        _installation("real", stack) as installation,
    ):
        yield installation


@contextmanager
def _installation(name: str, stack: Stack) -> Iterator[Installation]:
    gateway = connect(stack.kubeconfig)
    try:
        installation = Installation(name=name, stack=stack, gateway=gateway)
        installation.add_nodes(NODES_FILE)
        yield installation
    finally:
        gateway.close()

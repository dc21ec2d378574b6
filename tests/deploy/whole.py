"""The whole of an installation on one machine, as an administrator has it in a cluster.

etcd, kube-apiserver and kube-controller-manager built from their Go modules, simulated nodes and kubelets, PostgreSQL
and Valkey; the chart installed by helm into the empty cluster; then every replica of its Deployments, started with the
command and the environment of the Deployment and the token of its service account.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.deploy.chart import CHART, NAMESPACE, Manifest, run_helm
from tests.deploy.installed import (
    Broker,
    Installed,
    machine_values,
    running_broker,
    simulated_nodes,
)
from tests.integration.postgres import PostgresServer, postgres_server_or_skip
from tests.real_cluster.build import (
    CONTROLLER_MANAGER,
    HELM,
    ClusterUnavailableError,
    ensure_program,
)
from tests.real_cluster.cluster import RealCluster
from tests.real_cluster.controller_manager import running_controller_manager
from tests.real_cluster.fixture import running_or_skip
from tests.real_cluster.installation import run_kubectl

TEAM = "team"
READY_WITHIN_S = 240.0
RUNNING_WITHIN_S = 120.0


@dataclass(slots=True)
class WholeInstallation:
    """The cluster, its stores, and the installed chart."""

    cluster: RealCluster
    installed: Installed
    database: PostgresServer
    broker: Broker
    helm: Path
    values: Path

    def kubectl(self, *arguments: str) -> str:
        """Run kubectl as the administrator; return what it prints."""
        return run_kubectl(self.cluster, *arguments)

    def apply(self, manifest: Manifest) -> None:
        """Apply one object with kubectl."""
        file = self.cluster.folder / "applied.json"
        file.write_text(json.dumps(manifest))
        self.kubectl("apply", "-f", str(file))

    def install(self, command: str, *flags: str) -> None:
        """Run `helm install` or `helm upgrade` of the chart with the values of this installation."""
        run_helm(
            self.helm, command, "kaiweb", str(CHART), "-n", NAMESPACE, "--create-namespace",
            "-f", str(self.values), "--kubeconfig", str(self.cluster.kubeconfig), *flags,
        )  # fmt: skip

    def pods(self, label: str) -> list[Manifest]:
        """Return the team's pods with a label."""
        return self.installed.objects("pods", "-n", TEAM, "-l", label)

    def running(self, label: str) -> int:
        """Return how many of the team's pods with a label run."""
        return sum(pod["status"].get("phase") == "Running" for pod in self.pods(label))


@contextmanager
def whole_or_skip(
    folder: Path,
    *,
    nodes: str,
    change: Callable[[Installed], None] = lambda installed: None,
) -> Iterator[WholeInstallation]:
    """Start everything and wait until every web process says that the installation is ready.

    Parameters
    ----------
    nodes : the simulated nodes, e.g. 4x8
    change : called before the replicas start
    """
    with ExitStack() as stack:
        cluster = stack.enter_context(running_or_skip(folder / "cluster"))
        try:
            helm = ensure_program(HELM)
            ensure_program(CONTROLLER_MANAGER)
        except ClusterUnavailableError as error:
            pytest.skip(f"no helm or no controller manager here: {error}")
        database = stack.enter_context(postgres_server_or_skip())
        broker = stack.enter_context(running_broker(folder / "broker"))
        stack.enter_context(running_controller_manager(cluster))
        stack.enter_context(simulated_nodes(cluster, nodes, has_controller_manager=True))
        file = folder / "values.yaml"
        file.write_text(yaml.safe_dump(machine_values(database.url, broker.url)))
        installed = Installed(cluster, folder / "pods", database.url, broker.url)
        stack.callback(installed.stop)
        whole = WholeInstallation(cluster, installed, database, broker, helm, file)
        whole.install("install")
        change(installed)
        installed.start()
        installed.await_that(installed.is_ready, "an installation that is ready", READY_WITHIN_S)
        whole.kubectl("create", "namespace", TEAM)
        yield whole


def job(name: str, *, pods: int, gpus: int = 1, queue: str = "default-queue") -> Manifest:
    """Return a Job whose pods run until it is deleted."""
    template = _template(name, gpus=gpus, queue=queue)
    template["spec"]["restartPolicy"] = "Never"
    spec = {"parallelism": pods, "completions": pods, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": _metadata(name), "spec": spec}


def deployment(name: str, *, pods: int, gpus: int = 1, queue: str = "default-queue") -> Manifest:
    """Return a Deployment."""
    spec = {
        "replicas": pods,
        "selector": {"matchLabels": {"work": name}},
        "template": _template(name, gpus=gpus, queue=queue),
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(name),
        "spec": spec,
    }


def queue(name: str, *, gpus: int, parent: str = "") -> Manifest:
    """Return a queue that deserves so many GPUs."""
    resource = {"limit": -1, "overQuotaWeight": 1}
    resources = {
        "gpu": {"quota": gpus, **resource},
        "cpu": {"quota": -1, **resource},
        "memory": {"quota": -1, **resource},
    }
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"resources": resources, **({"parentQueue": parent} if parent else {})},
    }


def await_running(whole: WholeInstallation, name: str, pods: int) -> None:
    """Wait until all pods of a workload run."""
    whole.installed.await_that(
        lambda: whole.running(f"work={name}") == pods,
        f"{pods} running pods of {name}",
        RUNNING_WITHIN_S,
    )


def _metadata(name: str) -> Manifest:
    return {"name": name, "namespace": TEAM}


def _template(name: str, *, gpus: int, queue: str) -> Manifest:
    limits = {"nvidia.com/gpu": str(gpus)}
    container = {"name": "main", "image": "example.test/x:1", "resources": {"limits": limits}}
    return {
        "metadata": {"labels": {"work": name, "kai.scheduler/queue": queue}},
        "spec": {"schedulerName": "kai-scheduler", "containers": [container]},
    }

"""A live cluster for the simulators: either API server, our simulators, and a scheduler of ten lines."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kube.client import connect
from kube.gateway import EventType, Gateway, Selectors
from kube.link import Target
from kube.resources import NAMESPACES, NODES, PODS, Resource
from tests.fakes.sandbox_server import sandbox_server
from tests.real_cluster.build import CONTROLLER_MANAGER, is_built
from tests.real_cluster.cluster import RealCluster
from tests.real_cluster.controller_manager import running_controller_manager
from tests.real_cluster.fixture import real_cluster  # noqa: F401 - a fixture

COUNT = 6
_numbers = itertools.count(1)


@dataclass(slots=True)
class LiveCluster:
    """A cluster with running simulators; every pod is bound to the next node as soon as it appears."""

    gateway: Gateway
    namespace: str = ""

    def create(self, resource: Resource, name: str, spec: dict[str, Any], **metadata: Any) -> None:
        body = {"metadata": {"name": name, **metadata}, "spec": spec}
        self.gateway.create(resource, body, namespace=self.namespace)

    def get(self, resource: Resource, name: str) -> dict[str, Any]:
        return self.gateway.get(resource, name, as_type=dict, namespace=self.namespace)

    def status(self, resource: Resource, name: str) -> dict[str, Any]:
        status: dict[str, Any] = self.get(resource, name).get("status", {})
        return status

    def patch(self, resource: Resource, name: str, body: dict[str, Any]) -> None:
        self.gateway.patch(resource, name, body, namespace=self.namespace)

    def pods(self, label_selector: str = "") -> list[dict[str, Any]]:
        listing = self.gateway.list(
            PODS, as_type=dict, namespace=self.namespace, selectors=Selectors(labels=label_selector)
        )
        return list(listing.items)

    def wait(self, holds: Callable[[], Any], what: str, timeout_s: float = 20.0) -> Any:
        """Poll until it returns something true; these tests watch real processes at work."""
        deadline = time.monotonic() + timeout_s
        while not (result := holds()):
            if time.monotonic() > deadline:
                raise AssertionError(f"{what} did not come within {timeout_s:.0f} s")
            time.sleep(0.05)
        return result


@pytest.fixture(
    scope="session",
    params=[
        pytest.param("embedded", marks=pytest.mark.integration),
        pytest.param("embedded-with-controller-manager", marks=pytest.mark.integration),
        pytest.param("real", marks=pytest.mark.e2e),
    ],
)
def live(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveCluster]:
    if request.param == "embedded":
        with sandbox_server(tmp_path_factory.mktemp("live")) as server:
            yield from _with_simulators(server.kubeconfig)
    elif request.param == "embedded-with-controller-manager":
        if not is_built(CONTROLLER_MANAGER):
            pytest.skip("kube-controller-manager is not built (tests/prepare.sh builds it with Go)")
        with (
            sandbox_server(tmp_path_factory.mktemp("managed")) as server,
            running_controller_manager(server),
        ):
            yield from _with_simulators(server.kubeconfig, "--kubelets-only")
    else:
        cluster: RealCluster = request.getfixturevalue("real_cluster")
        # Without a controller manager nothing else collects the dependents of deleted owners.
        yield from _with_simulators(cluster.kubeconfig, "--garbage-collector")


@pytest.fixture
def cluster(live: LiveCluster) -> LiveCluster:
    """The live cluster with a fresh namespace."""
    live.namespace = f"live-{next(_numbers)}"
    live.gateway.create(NAMESPACES, {"metadata": {"name": live.namespace}})
    return live


def _with_simulators(kubeconfig: Path, *flags: str) -> Iterator[LiveCluster]:
    """Run the simulators as the process they are, and a binder for the pods they make."""
    stop = threading.Event()
    gateway = connect(Target(kubeconfig=kubeconfig))
    command = [sys.executable, "-m", "sandbox.simulate", "--kubeconfig", str(kubeconfig)]
    log_file = kubeconfig.parent / "simulate.log"
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            [*command, "--nodes", f"{COUNT}x8", "--no-stream", *flags], stdout=log, stderr=log
        )
    binder = threading.Thread(target=_bind_everything, args=(gateway, stop), daemon=True)
    binder.start()
    cluster = LiveCluster(gateway)
    try:
        cluster.wait(lambda: len(gateway.list(NODES, as_type=dict).items) == COUNT, "the nodes")
        yield cluster
    finally:
        stop.set()
        binder.join(timeout=10)
        gateway.close()
        process.terminate()
        code = process.wait(timeout=10)
    assert code == 0, log_file.read_text()[-2000:]


def _bind_everything(gateway: Gateway, stop: threading.Event) -> None:
    """Bind each new pod to the next node in turn."""
    nodes = itertools.cycle(f"node-{number:04d}" for number in range(COUNT))

    def bind(pod: dict[str, Any]) -> None:
        meta = pod["metadata"]
        gateway.bind(meta["namespace"], meta["name"], pod_uid=meta["uid"], node=next(nodes))

    with ThreadPoolExecutor(8) as pool:
        version = gateway.list(PODS, as_type=dict).resource_version
        while not stop.is_set():
            for event in gateway.watch(
                PODS,
                as_type=dict,
                resource_version=version,
                selectors=Selectors(fields="spec.nodeName="),
                timeout_s=1,
            ):
                version = event.resource_version
                if event.type is EventType.ADDED:
                    pool.submit(bind, event.object)

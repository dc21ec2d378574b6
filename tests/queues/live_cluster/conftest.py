"""A cluster to run controllers and webhooks against: the embedded one, and a real kube-apiserver where there is one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from kube.client import HttpGateway, connect
from kube.errors import AlreadyExistsError
from kube.gateway import Gateway, PatchOptions, PatchType
from kube.resources import CRDS, NAMESPACES, PRIORITY_CLASSES, SERVICE_ACCOUNTS
from queues.controllers.assembly import Controllers, Options
from queues.grouping.offline.manifests import read_manifests
from tests.fakes.sandbox_server import sandbox_server
from tests.queues.live_cluster.objects import definitions_of
from tests.queues.live_cluster.waiting import eventually
from tests.real_cluster.cluster import RealCluster
from tests.real_cluster.fixture import real_cluster  # noqa: F401 - a fixture

DEFINITIONS = Path(__file__).resolve().parents[3] / "deploy" / "crds"
MANIFESTS = Path(__file__).parent.parent / "manifests"
CLASSES = {"train": 50, "build-preemptible": 75, "build": 100, "inference": 125}
_numbers = itertools.count(1)


@dataclass(frozen=True)
class ClusterUnderTest:
    """One cluster with the controllers that work on it for the whole session."""

    gateway: HttpGateway
    controllers: Controllers


@pytest.fixture(scope="session")
def embedded_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterUnderTest]:
    with (
        sandbox_server(tmp_path_factory.mktemp("live")) as server,
        running_controllers(server.kubeconfig) as cluster,
    ):
        yield cluster


@pytest.fixture(scope="session")
def real_apiserver(real_cluster: RealCluster) -> Iterator[ClusterUnderTest]:  # noqa: F811 - asks for the fixture
    with running_controllers(real_cluster.kubeconfig) as cluster:
        yield cluster


@contextmanager
def running_controllers(kubeconfig: Path) -> Iterator[ClusterUnderTest]:
    gateway = connect(kubeconfig)
    kartas = read_manifests([MANIFESTS / "karta.yaml"])
    define(gateway, [*_own_definitions(), *definitions_of(kartas)])
    known = {
        item["metadata"]["name"] for item in gateway.list(PRIORITY_CLASSES, as_type=dict).items
    }
    for name, value in CLASSES.items():
        if name not in known:
            gateway.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
    controllers = Controllers(gateway, Options(concurrency=4))
    controllers.start()
    yield ClusterUnderTest(gateway, controllers)
    controllers.close()
    gateway.close()


@pytest.fixture(
    params=[
        pytest.param("embedded_cluster", marks=pytest.mark.integration),
        pytest.param("real_apiserver", marks=pytest.mark.e2e),
    ]
)
def cluster(request: pytest.FixtureRequest) -> ClusterUnderTest:
    under_test: ClusterUnderTest = request.getfixturevalue(request.param)
    return under_test


@pytest.fixture
def gateway(cluster: ClusterUnderTest) -> Gateway:
    return cluster.gateway


@pytest.fixture
def controllers(cluster: ClusterUnderTest) -> Controllers:
    return cluster.controllers


@pytest.fixture
def namespace(gateway: Gateway) -> str:
    name = f"live-{next(_numbers)}"
    gateway.create(NAMESPACES, {"metadata": {"name": name}})
    # A pod needs the namespace's default ServiceAccount, which a real server leaves to a controller.
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    ensure_account(gateway, name, account)
    return name


def ensure_account(gateway: Gateway, namespace: str, account: dict[str, object]) -> None:
    try:
        gateway.create(SERVICE_ACCOUNTS, account, namespace=namespace)
    except AlreadyExistsError:
        return


def _own_definitions() -> list[dict[str, object]]:
    return [
        body
        for file in sorted(DEFINITIONS.glob("*.yaml"))
        for body in yaml.safe_load_all(file.read_text())
    ]


def define(gateway: Gateway, bodies: list[dict[str, object]]) -> None:
    """Install definitions and wait until their kinds are served."""
    names = []
    for body in bodies:
        metadata = body["metadata"]
        assert isinstance(metadata, dict)
        names.append(str(metadata["name"]))
        gateway.patch(
            CRDS,
            names[-1],
            body,
            patch_type=PatchType.APPLY,
            options=PatchOptions(field_manager="test", force=True),
        )
    for name in names:
        eventually(lambda name=name: _is_established(gateway, name), f"{name} is served")


def _is_established(gateway: Gateway, name: str) -> bool:
    body = gateway.get(CRDS, name, as_type=dict)
    conditions = body.get("status", {}).get("conditions") or []
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)

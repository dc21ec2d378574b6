"""The two servers of the contract, with our CRDs installed, and a namespace for each test."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from tests.contract.api import APPLY, Api, Server
from tests.fakes.sandbox_server import sandbox_server
from tests.real_cluster.cluster import PLAIN_USER, RealCluster
from tests.real_cluster.fixture import real_cluster  # noqa: F401 - a fixture

CRDS = Path(__file__).resolve().parents[2] / "deploy" / "crds"
CRD_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PLAIN_TOKEN = "contract-plain-user-token"
HISTORY_EVENTS = 4_100
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def embedded_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The embedded API server in a process of its own."""
    with sandbox_server(tmp_path_factory.mktemp("sandbox"), persistent=True) as running:
        running.add_token(PLAIN_TOKEN, PLAIN_USER)
        server = Server(
            name="sandbox",
            url=running.url,
            ca_file=running.ca_file,
            kubeconfig=running.kubeconfig,
            tokens={"admin": running.token, PLAIN_USER: PLAIN_TOKEN},
            has_controllers=True,
            forget_history=_outrun_history,
        )
        _prepare(server)
        yield server


@pytest.fixture(scope="session")
def real_server(real_cluster: RealCluster) -> Server:  # noqa: F811 - asks for the fixture
    """The real kube-apiserver."""
    server = Server(
        name="real",
        url=real_cluster.url,
        ca_file=real_cluster.ca_file,
        kubeconfig=real_cluster.kubeconfig,
        tokens={"admin": real_cluster.admin_token, PLAIN_USER: real_cluster.plain_token},
        has_controllers=False,
        # A custom kind's history starts with its CRD, so version 1 is out of reach.
        forget_history=lambda api, path: "1",
    )
    _prepare(server)
    return server


@pytest.fixture(
    scope="session",
    params=[
        pytest.param("embedded_server", id="sandbox", marks=pytest.mark.integration),
        pytest.param("real_server", id="real", marks=pytest.mark.e2e),
    ],
)
def server(request: pytest.FixtureRequest) -> Server:
    chosen_server: Server = request.getfixturevalue(request.param)
    return chosen_server


@pytest.fixture
def api(server: Server) -> Api:
    """The admin's client, with a fresh namespace."""
    client = Api(server)
    name = f"contract-{next(_numbers)}"
    client.post("/api/v1/namespaces", {"metadata": {"name": name}}).ok(201)
    client.namespace = name
    return client


@pytest.fixture
def unique() -> str:
    """A name that no other test uses, for cluster-scoped objects."""
    return f"contract-{next(_numbers)}"


def _prepare(server: Server) -> None:
    """Install our CRDs and wait until they are served."""
    api = Api(server)
    for file in sorted(CRDS.glob("*.yaml")):
        crd = yaml.safe_load(file.read_text())
        path = f"{CRD_PATH}/{crd['metadata']['name']}"
        api.patch(path, crd, APPLY, fieldManager="contract", force="true").ok()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        items = api.get(CRD_PATH).ok()["items"]
        established = [
            condition["type"] == "Established" and condition["status"] == "True"
            for crd in items
            for condition in crd.get("status", {}).get("conditions") or ()
        ]
        if sum(established) >= 6 and api.get("/apis/kai.scheduler/v1/configs").status == 200:
            return
        time.sleep(0.1)
    raise AssertionError(f"the CRDs were not established within 20 s on {server.name}")


def _outrun_history(api: Api, path: str) -> str:
    """Write more changes than the sandbox keeps, so that the first ones are forgotten."""
    old: str = api.get(path).ok()["metadata"]["resourceVersion"]

    def touch(number: int) -> None:
        api.patch(path, {"metadata": {"labels": {"n": str(number)}}}).ok()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(touch, range(HISTORY_EVENTS)))
    return old

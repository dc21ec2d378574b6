"""The real client keeps the contract, against the embedded API server and against a real one."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from kube.client import HttpGateway, connect
from kube.errors import AlreadyExistsError
from kube.gateway import Gateway
from kube.link import Target
from kube.resources import NAMESPACES, SERVICE_ACCOUNTS
from tests.fakes.sandbox_server import SandboxServer
from tests.kube.contract import CHECKS
from tests.real_cluster.cluster import RealCluster

Check = Callable[[Gateway, str], None]


def namespace_on(gateway: HttpGateway) -> str:
    """Make a namespace with the service account that pods need where no controller makes it."""
    name = f"contract-{uuid.uuid4().hex[:8]}"
    gateway.create(NAMESPACES, {"metadata": {"name": name}})
    with suppress(AlreadyExistsError):  # the embedded server makes it itself
        gateway.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace=name)
    return name


def run(check: Check, kubeconfig: Path) -> None:
    gateway = connect(Target(kubeconfig=kubeconfig))
    try:
        check(gateway, namespace_on(gateway))
    finally:
        gateway.close()


@pytest.mark.integration
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_client_meets_the_contract_with_the_embedded_server(
    check: Check, sandbox: SandboxServer
) -> None:
    run(check, sandbox.kubeconfig)


@pytest.mark.e2e
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_client_meets_the_contract_with_a_real_server(
    check: Check, real_cluster: RealCluster
) -> None:
    run(check, real_cluster.kubeconfig)

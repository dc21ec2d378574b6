"""Whether devices are named through CDI: by the Config, else as the GPU operator is set up."""

from __future__ import annotations

import json
from typing import Any

import pytest

from binder.cdi import VERSION_LABEL, cluster_uses_cdi
from binder.settings import params_from_environment
from kube.errors import ForbiddenError, NotFoundError, ServerError
from kube.resources import CLUSTER_POLICIES
from tests.fakes.gateway import FakeGateway


def policy(version: str, **cdi: bool) -> FakeGateway:
    gateway = FakeGateway()
    metadata = {"name": "cluster-policy", "labels": {VERSION_LABEL: version}}
    gateway.seed(CLUSTER_POLICIES, {"metadata": metadata, "spec": {"cdi": cdi}})
    return gateway


@pytest.mark.parametrize(
    ("version", "cdi", "expected"),
    [
        ("v25.10.0", {"enabled": True}, True),
        ("v25.10.1", {"enabled": True}, True),
        ("v26.3.0", {"enabled": True}, True),
        ("v25.9.2", {"enabled": True}, False),
        ("v25.9.2", {"enabled": True, "default": True}, True),
        ("v25.10.0", {"enabled": False, "default": True}, False),
        ("v25.10.0", {}, False),
        ("", {"enabled": True}, False),
        ("newest", {"enabled": True, "default": True}, True),
    ],
)
def test_the_policy_of_the_gpu_operator_decides(
    version: str, cdi: dict[str, bool], expected: bool
) -> None:
    assert cluster_uses_cdi(policy(version, **cdi)) is expected


@pytest.mark.parametrize("error", [NotFoundError("no kind"), ForbiddenError("no right")])
def test_without_a_readable_policy_there_is_no_cdi(error: Any) -> None:
    gateway = FakeGateway()
    gateway.fail_next("list", "clusterpolicies", error)
    assert not cluster_uses_cdi(gateway)


def test_a_server_without_an_answer_is_no_answer() -> None:
    gateway = FakeGateway()
    gateway.fail_next("list", "clusterpolicies", ServerError("no answer"))
    with pytest.raises(ServerError):
        cluster_uses_cdi(gateway)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, "true"),
        ({"cdiEnabled": False}, "false"),
        ({"plugins": {"gpusharing": {"arguments": {"cdiEnabled": "false"}}}}, "false"),
        ({"plugins": {"gpusharing": {"priority": 90}}}, "true"),
    ],
)
def test_the_config_comes_before_the_policy(config: dict[str, Any], expected: str) -> None:
    environment = {"KAIWEB_BINDER": json.dumps(config)}
    params = params_from_environment(environment, uses_cdi=lambda: True)
    [sharing] = [step for step in params.steps if step.name == "gpusharing"]
    assert sharing.arguments["cdiEnabled"] == expected

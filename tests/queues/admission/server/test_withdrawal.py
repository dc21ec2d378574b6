"""Webhooks of disabled components are removed, but only ours: KAI's have the same names."""

from __future__ import annotations

from typing import Any

import pytest

from kube.errors import ForbiddenError, ServerError
from kube.resources import Resource
from queues import cluster
from queues.admission.install.registration import (
    FIELD_MANAGER,
    MUTATING,
    VALIDATING,
    Registration,
    UrlTarget,
    install,
)
from queues.admission.server.embedded import admission_server
from queues.admission.server.server import AdmissionServer
from queues.admission.server.switches import configurations_off
from queues.admission.server.withdrawal import AdmissionWithdrawal
from tests.fakes.gateway import FakeGateway

PODS = {"mutating-kai-admission", "validating-kai-admission"}
OTHERS = {"kai-podgroup-validation-v2alpha2", "kai-queue-validation-v2"}


def cluster_with_webhooks(manager: str = FIELD_MANAGER) -> FakeGateway:
    gateway = FakeGateway()
    for name in PODS | OTHERS:
        body: dict[str, Any] = {"metadata": {"name": name, "managedFields": [{"manager": manager}]}}
        gateway.seed(MUTATING if name.startswith("mutating") else VALIDATING, body)
    return gateway


def names(gateway: FakeGateway) -> set[str]:
    resources: tuple[Resource, ...] = (MUTATING, VALIDATING)
    return {name for resource in resources for name in gateway.names(resource)}


def test_a_disabled_component_has_its_webhooks_removed_and_the_others_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KAIWEB_ADMIT_PODS", "0")
    gateway = cluster_with_webhooks()
    target = UrlTarget(base="https://127.0.0.1:9")
    registration = Registration(target=target, bundle=b"CA", off=configurations_off())
    for _ in range(2):
        install(gateway, registration)
        assert names(gateway) == OTHERS


@pytest.mark.parametrize(("manager", "left"), [(FIELD_MANAGER, set()), ("operator", PODS | OTHERS)])
def test_without_admission_our_webhooks_are_removed_once_the_cluster_answers(
    manager: str, left: set[str]
) -> None:
    gateway = cluster_with_webhooks(manager)
    gateway.fail_next("get", "mutatingwebhookconfigurations", ServerError("no answer"))
    AdmissionWithdrawal(gateway, retry_s=0.001).run()
    assert names(gateway) == left


def test_without_the_right_to_remove_them_it_gives_up() -> None:
    gateway = cluster_with_webhooks()
    gateway.fail_next("get", "mutatingwebhookconfigurations", ForbiddenError("no", status=403))
    AdmissionWithdrawal(gateway, retry_s=60).run()
    assert names(gateway) == PODS | OTHERS


@pytest.mark.parametrize(("switch", "kind"), [("0", AdmissionWithdrawal), ("1", AdmissionServer)])
def test_the_environment_decides_whether_there_is_a_server(
    monkeypatch: pytest.MonkeyPatch, switch: str, kind: type
) -> None:
    monkeypatch.setattr(cluster, "gateway", FakeGateway)
    monkeypatch.setattr(cluster, "is_on_this_host", lambda: True)
    monkeypatch.setenv("KAIWEB_ADMISSION", switch)
    assert isinstance(admission_server(), kind)

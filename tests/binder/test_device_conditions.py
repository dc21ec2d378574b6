"""A pod is bound after the drivers have prepared its devices; devices that are not prepared are taken back."""

from __future__ import annotations

from typing import Any

import pytest

from binder.errors import BindError
from binder.params import DEFAULT_STEPS
from binder.steps.base import BindJob
from binder.steps.claim_status import ConflictRetry
from binder.steps.device_claims import DeviceClaims
from kube.resources import RESOURCE_CLAIMS
from tests.binder.objects import pod, request
from tests.binder.test_steps import job
from tests.fakes.gateway import FakeGateway

CONFIG = {config.name: config for config in DEFAULT_STEPS}["dynamicresources"]
RESULT = {
    "driver": "fabric.x",
    "pool": "p",
    "device": "gpu-0",
    "request": "r",
    "bindingConditions": ["attached", "ready"],
    "bindingFailureConditions": ["broken"],
}


class Driver:
    """A claim of pod `p`; `reports` says after how many seconds which conditions are true."""

    def __init__(self, *reports: tuple[float, str], timeout_s: float = 10) -> None:
        self.gateway = FakeGateway()
        self.gateway.seed(RESOURCE_CLAIMS, {"metadata": {"name": "claim", "namespace": "ns"}})
        self.time = 0.0
        self._reports = list(reports)
        retry = ConflictRetry(timeout_s=timeout_s, clock=lambda: self.time, sleep=self._sleep)
        self.step = DeviceClaims(self.gateway, CONFIG, retry)
        body = pod("p", spec={"resourceClaims": [{"name": "gpu", "resourceClaimName": "claim"}]})
        allocation = {"devices": {"results": [RESULT]}}
        allocations = [{"name": "gpu", "allocation": allocation}]
        self.job: BindJob = job(body, request("p", resourceClaimAllocations=allocations))

    def _sleep(self, seconds: float) -> None:
        self.time += seconds
        true_ones = [name for at, name in self._reports if at <= self.time]
        conditions = [{"type": name, "status": "True"} for name in true_ones]
        device = {key: RESULT[key] for key in ("driver", "pool", "device")}
        self.report([device | {"conditions": conditions}])

    def report(self, devices: list[dict[str, Any]]) -> None:
        body = {"status": {"devices": devices}}
        self.gateway.patch(RESOURCE_CLAIMS, "claim", body, namespace="ns", sub="status")

    @property
    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = self.gateway.raw(RESOURCE_CLAIMS, "claim", "ns")["status"]
        return status


def test_the_pod_waits_until_every_condition_is_true() -> None:
    driver = Driver((1, "attached"), (3, "ready"))
    driver.step.prepare(driver.job)
    assert driver.time == 3
    assert driver.status["allocation"]["devices"]["results"] == [RESULT]


def test_a_condition_of_failure_ends_the_attempt_at_once() -> None:
    driver = Driver((1, "attached"), (2, "broken"), (2, "ready"))
    with pytest.raises(BindError, match=r"cannot be prepared: broken of fabric\.x/p/gpu-0"):
        driver.step.prepare(driver.job)
    assert driver.time == 2


def test_after_the_timeout_the_devices_are_free_again() -> None:
    driver = Driver((1, "attached"), timeout_s=5)
    with pytest.raises(BindError, match=r"timed out .* ns/p: ready of fabric\.x/p/gpu-0"):
        driver.step.prepare(driver.job)
    driver.step.roll_back(driver.job)
    assert not any(driver.status.get(key) for key in ("allocation", "reservedFor", "devices"))
    driver.step.roll_back(driver.job)  # a second time changes nothing


def test_prepared_devices_stay_when_something_else_fails() -> None:
    driver = Driver((1, "attached"), (1, "ready"))
    driver.step.prepare(driver.job)
    driver.step.roll_back(driver.job)
    assert driver.status["allocation"]["devices"]["results"] == [RESULT]


def test_devices_that_another_pod_waits_for_stay() -> None:
    driver = Driver(timeout_s=1)
    with pytest.raises(BindError, match="timed out"):
        driver.step.prepare(driver.job)
    reserved = [*driver.status["reservedFor"], {"resource": "pods", "name": "o", "uid": "uid-o"}]
    body = {"status": {"reservedFor": reserved}}
    driver.gateway.patch(RESOURCE_CLAIMS, "claim", body, namespace="ns", sub="status")
    driver.step.roll_back(driver.job)
    assert driver.status["allocation"]["devices"]["results"] == [RESULT]


def test_a_claim_that_loses_its_devices_ends_the_attempt() -> None:
    driver = Driver()

    def lose(devices: list[dict[str, Any]]) -> None:
        body = {"status": {"allocation": None}}
        driver.gateway.patch(RESOURCE_CLAIMS, "claim", body, namespace="ns", sub="status")

    driver.report = lose  # type: ignore[method-assign]
    with pytest.raises(BindError, match="has lost its devices"):
        driver.step.prepare(driver.job)
    driver.step.roll_back(driver.job)


def test_a_claim_that_is_gone_needs_no_undoing() -> None:
    driver = Driver(timeout_s=0)
    driver.gateway.delete(RESOURCE_CLAIMS, "claim", namespace="ns")
    driver.step.roll_back(driver.job)

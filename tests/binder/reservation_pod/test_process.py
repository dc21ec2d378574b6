"""The program in a reservation pod: what it reports, what it refuses, and that it then just stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from binder.reservation_pod.__main__ import source_of
from binder.reservation_pod.devices import (
    DeviceError,
    ListedDevices,
    NvmlDevices,
    only_device,
)
from binder.reservation_pod.process import (
    ATTEMPTS,
    EnvironmentVariableError,
    OwnPod,
    report_device,
)
from kube.client import connect
from kube.errors import ForbiddenError, ServerError
from kube.keys import RESERVED_DEVICE
from kube.link import Target
from kube.resources import PODS
from tests.fakes.gateway import FakeGateway
from tests.fakes.sandbox_server import SandboxServer

OWN = OwnPod("ns", "holder")


def cluster(**annotations: str) -> FakeGateway:
    gateway = FakeGateway()
    metadata = {"name": "holder", "namespace": "ns", "annotations": annotations}
    gateway.seed(PODS, {"metadata": metadata, "spec": {"nodeName": "n1"}})
    return gateway


def annotation(gateway: FakeGateway) -> str:
    return str(gateway.raw(PODS, "holder", "ns")["metadata"]["annotations"][RESERVED_DEVICE])


def test_the_only_device_is_written_onto_the_pod() -> None:
    gateway = cluster()
    assert report_device(gateway, OWN, ListedDevices(["GPU-1"])) == "GPU-1"
    assert annotation(gateway) == "GPU-1"


def test_a_device_that_was_reported_before_is_kept_without_asking_again() -> None:
    gateway = cluster(**{RESERVED_DEVICE: "GPU-0"})
    assert report_device(gateway, OWN, ListedDevices([])) == "GPU-0"
    assert gateway.calls == []


@pytest.mark.parametrize("names", [[], ["GPU-1", "GPU-2"]])
def test_any_other_number_of_devices_is_refused(names: Sequence[str]) -> None:
    gateway = cluster()
    with pytest.raises(DeviceError, match=f"^found {len(names)} devices, 1 was expected$"):
        report_device(gateway, OWN, ListedDevices(names))
    assert gateway.calls == []


@pytest.mark.parametrize(
    ("environment", "problem"),
    [
        ({"POD_NAME": "holder"}, "could not find pod namespace"),
        ({"POD_NAMESPACE": "ns"}, "could not find pod name"),
    ],
)
def test_without_its_own_name_it_does_not_start(environment: dict[str, str], problem: str) -> None:
    with pytest.raises(EnvironmentVariableError, match=f"^{problem}$"):
        OwnPod.of(environment)


def test_a_server_without_an_answer_is_asked_again() -> None:
    gateway, pauses = cluster(), []
    gateway.fail_next("get", "pods", ServerError("no answer"))
    gateway.fail_next("patch", "pods", ServerError("no answer"))
    report_device(gateway, OWN, ListedDevices(["GPU-1"]), sleep=pauses.append)
    assert annotation(gateway) == "GPU-1"
    assert len(pauses) == 2


def test_a_server_that_never_answers_ends_it() -> None:
    gateway, pauses = cluster(), []
    for _ in range(ATTEMPTS):
        gateway.fail_next("get", "pods", ServerError("no answer"))
    with pytest.raises(ServerError):
        report_device(gateway, OWN, ListedDevices(["GPU-1"]), sleep=pauses.append)
    assert len(pauses) == ATTEMPTS - 1


def test_a_refusal_ends_it_at_once() -> None:
    gateway, pauses = cluster(), []
    gateway.fail_next("patch", "pods", ForbiddenError("no", status=403))
    with pytest.raises(ForbiddenError):
        report_device(gateway, OWN, ListedDevices(["GPU-1"]), sleep=pauses.append)
    assert pauses == []


class FakeNvml(SimpleNamespace):
    """The part of pynvml that is used."""

    NVMLError = type("NVMLError", (Exception,), {})

    def __init__(self, *names: str | bytes, is_driver_there: bool = True) -> None:
        super().__init__(names=names, is_driver_there=is_driver_there, is_open=False)

    def nvmlInit(self) -> None:
        if not self.is_driver_there:
            raise self.NVMLError("Driver Not Loaded")
        self.is_open = True

    def nvmlShutdown(self) -> None:
        self.is_open = False

    def nvmlDeviceGetCount(self) -> int:
        return len(self.names)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> Any:
        assert self.is_open
        return self.names[handle]


@pytest.mark.parametrize("name", ["GPU-1", b"GPU-1"])
def test_nvml_tells_the_uuid_of_each_visible_device(
    monkeypatch: pytest.MonkeyPatch, name: str | bytes
) -> None:
    nvml = FakeNvml(name)
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    assert only_device(NvmlDevices()) == "GPU-1"
    assert not nvml.is_open


def test_nvml_without_a_driver_is_a_device_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(is_driver_there=False))
    with pytest.raises(DeviceError, match=r"^NVML: Driver Not Loaded$"):
        NvmlDevices().ids()


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(DeviceError, match="nvidia-ml-py is not installed"):
        NvmlDevices().ids()


def test_listed_devices_take_the_place_of_nvml() -> None:
    assert list(source_of({"KAIWEB_DEVICES": "GPU-1,GPU-2"}).ids()) == ["GPU-1", "GPU-2"]
    assert isinstance(source_of({}), NvmlDevices)


@pytest.mark.integration
def test_the_process_reports_holds_and_ends_on_a_signal(sandbox: SandboxServer) -> None:
    gateway = connect(Target(kubeconfig=sandbox.kubeconfig))
    name = f"holder-{uuid.uuid4().hex[:6]}"
    body = {
        "metadata": {"name": name},
        "spec": {"schedulerName": "none", "containers": [{"name": "c", "image": "i"}]},
    }
    gateway.create(PODS, body, namespace="default")
    environment = {
        **os.environ,
        "KUBECONFIG": str(sandbox.kubeconfig),
        "POD_NAMESPACE": "default",
        "POD_NAME": name,
        "KAIWEB_DEVICES": "GPU-7",
    }
    command = [sys.executable, "-m", "binder.reservation_pod"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        deadline = time.monotonic() + 20
        lines = []
        while b"holding device GPU-7" not in b"".join(lines):
            assert time.monotonic() < deadline, lines
            lines.append(process.stderr.readline())
        stored: dict[str, Any] = gateway.get(PODS, name, as_type=dict, namespace="default")
        assert stored["metadata"]["annotations"] == {RESERVED_DEVICE: "GPU-7"}
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == 0
    gateway.close()


@pytest.mark.integration
def test_the_process_ends_with_an_error_when_it_cannot_report() -> None:
    command = [sys.executable, "-m", "binder.reservation_pod"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("POD_")}
    ended = subprocess.run(command, env=environment, capture_output=True, timeout=30, check=False)
    assert ended.returncode == 1
    assert b"could not find pod namespace" in ended.stderr

"""The exporter writes what has changed, forgets nothing on errors, and repairs what others changed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from binder.numa_exporter.__main__ import main, run, source_of
from binder.numa_exporter.allocations import (
    AllocationError,
    DeviceGrant,
    ListedGrants,
    PodGrant,
)
from binder.numa_exporter.exporter import PlacementExporter
from binder.numa_exporter.kubelet import KubeletGrants
from kube.client import connect
from kube.errors import ServerError, UnauthorizedError
from kube.keys import NUMA_OBSERVED
from kube.link import Target
from kube.resources import PODS
from tests.fakes.gateway import FakeGateway
from tests.fakes.sandbox_server import SandboxServer

ON_ZONE_0 = '[{"zone":"node-0","amount":{"nvidia.com/gpu":"1"}}]'
ON_ZONE_1 = '[{"zone":"node-1","amount":{"nvidia.com/gpu":"1"}}]'


def on_zone(zone: int, name: str = "p") -> PodGrant:
    device = DeviceGrant(resource="nvidia.com/gpu", ids=("a",), zones=(zone,))
    return PodGrant(namespace="ns", name=name, devices=(device,))


@dataclass
class Kubelet:
    answers: list[PodGrant] = field(default_factory=lambda: [on_zone(0)])

    def grants(self) -> Sequence[PodGrant]:
        return self.answers


def node_with_a_pod() -> tuple[FakeGateway, Kubelet, PlacementExporter]:
    gateway, kubelet = FakeGateway(), Kubelet()
    for name, node in (("p", "n1"), ("elsewhere", "n2")):
        gateway.seed(
            PODS, {"metadata": {"name": name, "namespace": "ns"}, "spec": {"nodeName": node}}
        )
    return gateway, kubelet, PlacementExporter(gateway, "n1", kubelet, {})


def annotation(gateway: FakeGateway, name: str = "p") -> str | None:
    annotations = gateway.raw(PODS, name, "ns")["metadata"].get("annotations") or {}
    text: str | None = annotations.get(NUMA_OBSERVED)
    return text


def patches(gateway: FakeGateway) -> int:
    return sum(call[0] == "patch" for call in gateway.calls)


def test_a_placement_is_written_once_until_it_changes() -> None:
    gateway, kubelet, exporter = node_with_a_pod()
    exporter.poll()
    exporter.poll()
    assert (annotation(gateway), patches(gateway)) == (ON_ZONE_0, 1)
    kubelet.answers = [on_zone(1)]
    exporter.poll()
    assert (annotation(gateway), patches(gateway)) == (ON_ZONE_1, 2)


def test_what_could_not_be_written_is_written_by_the_next_poll() -> None:
    gateway, _, exporter = node_with_a_pod()
    gateway.fail_next("patch", "pods", ServerError("no answer"))
    exporter.poll()
    assert annotation(gateway) is None
    exporter.poll()
    assert annotation(gateway) == ON_ZONE_0


def test_a_pod_that_is_gone_is_patched_once() -> None:
    gateway, kubelet, exporter = node_with_a_pod()
    kubelet.answers = [on_zone(0, "gone")]
    exporter.poll()
    exporter.poll()
    assert patches(gateway) == 1


def test_a_resync_repairs_what_differs_on_this_node_only() -> None:
    gateway, kubelet, exporter = node_with_a_pod()
    kubelet.answers = [on_zone(0), on_zone(0, "elsewhere")]
    exporter.poll()
    for name in ("p", "elsewhere"):
        changed = {"metadata": {"annotations": {NUMA_OBSERVED: "[]"}}}
        gateway.patch(PODS, name, changed, namespace="ns")
    exporter.poll()
    assert annotation(gateway) == "[]"
    exporter.resync()
    assert (annotation(gateway), annotation(gateway, "elsewhere")) == (ON_ZONE_0, "[]")


def test_polling_goes_on_after_errors_but_not_without_rights() -> None:
    polls: list[str] = []

    class Exporter(PlacementExporter):
        def poll(self) -> None:
            polls.append("poll")
            if len(polls) == 1:
                raise AllocationError("no kubelet")
            raise UnauthorizedError("no", status=401)

    exporter = Exporter(FakeGateway(), "n1", Kubelet(), {})
    with pytest.raises(UnauthorizedError):
        run(exporter, threading.Event(), 0.001, 0)
    assert polls == ["poll", "poll"]


def test_it_needs_to_know_its_node_and_sensible_intervals(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([], {}) == 1
    for wrong in ("0s", "-1s", "soon"):
        with pytest.raises(SystemExit):
            main(["--poll-interval", wrong], {})
    assert "expected more than 0, got 0s" in capsys.readouterr().err


def test_a_file_takes_the_place_of_the_kubelet(tmp_path: Path) -> None:
    file = tmp_path / "grants.json"
    source = source_of({"KAIWEB_POD_RESOURCES": str(file)}, Path("kubelet.sock"))
    assert isinstance(source, ListedGrants)
    assert source_of({}, Path("kubelet.sock")) == KubeletGrants(Path("kubelet.sock"))
    with pytest.raises(AllocationError, match=r"grants\.json"):
        source.grants()
    file.write_text('[{"namespace": "ns", "name": "p", "cpus": [1, 2]}]')
    assert source.grants() == [PodGrant(namespace="ns", name="p", cpus=(1, 2))]


@pytest.mark.integration
def test_the_process_writes_onto_a_pod_of_a_cluster_and_ends_on_a_signal(
    sandbox: SandboxServer, tmp_path: Path
) -> None:
    gateway = connect(Target(kubeconfig=sandbox.kubeconfig))
    body = {
        "metadata": {"name": "numa-pod"},
        "spec": {"schedulerName": "none", "containers": [{"name": "c", "image": "i"}]},
    }
    gateway.create(PODS, body, namespace="default")
    device = {"resource": "nvidia.com/gpu", "ids": ["a"], "zones": [1]}
    grants = tmp_path / "grants.json"
    grants.write_text(
        json.dumps([{"namespace": "default", "name": "numa-pod", "devices": [device]}])
    )
    environment = {
        **os.environ,
        "KUBECONFIG": str(sandbox.kubeconfig),
        "NODE_NAME": "n1",
        "KAIWEB_POD_RESOURCES": str(grants),
    }
    command = [sys.executable, "-m", "binder.numa_exporter", "--poll-interval", "100ms"]
    with subprocess.Popen(command, env=environment) as process:
        deadline = time.monotonic() + 20
        text = None
        while text is None:
            assert time.monotonic() < deadline
            stored: dict[str, Any] = gateway.get(
                PODS, "numa-pod", as_type=dict, namespace="default"
            )
            text = (stored["metadata"].get("annotations") or {}).get(NUMA_OBSERVED)
            time.sleep(0.05)
        assert text == ON_ZONE_1
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == 0
    gateway.close()

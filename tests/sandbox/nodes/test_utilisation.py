"""The simulated series of GPUs: one for each device that a running pod holds, some of them idle."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

from kaiweb.supervisor.ports import pick
from kaiweb.utilisation.dcgm import read_samples
from kube.resources import PODS
from sandbox.nodes.simpod import SimPod
from sandbox.nodes.utilisation import DeviceNumbers, UtilisationServer, percent
from tests.fakes.gateway import FakeGateway

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def seed(gateway: FakeGateway, name: str, gpus: int, phase: str = "Running") -> None:
    container = {"name": "main", "resources": {"requests": {"nvidia.com/gpu": str(gpus)}}}
    body = {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}"},
        "spec": {"nodeName": "n1", "containers": [container]}, "status": {"phase": phase},
    }  # fmt: skip
    gateway.seed(PODS, body)


def held(gateway: FakeGateway, numbers: DeviceNumbers) -> list[tuple[str, str]]:
    pods = gateway.list(PODS, as_type=SimPod).items
    labels = [series["metric"] for series in numbers.series(pods, 0)]
    return sorted((row["pod"], row["gpu"]) for row in labels)


def test_a_pod_keeps_its_devices_when_another_ends() -> None:
    gateway, numbers = FakeGateway(now=NOW), DeviceNumbers()
    seed(gateway, "a", 1)
    seed(gateway, "b", 2)
    seed(gateway, "waits", 1, "Pending")
    first = held(gateway, numbers)
    assert [pod for pod, _gpu in first] == ["a", "b", "b"]
    assert {gpu for _pod, gpu in first} == {"0", "1", "2"}
    without_a = FakeGateway(now=NOW)
    seed(without_a, "b", 2)
    assert held(without_a, numbers) == [row for row in first if row[0] == "b"]


def test_most_pods_are_busy_and_some_do_nothing() -> None:
    values = [percent(f"pod-{number}", 0) for number in range(600)]
    assert 60 < sum(value < 5 for value in values) < 140
    assert all(0 <= value <= 1 or 55 <= value <= 95 for value in values)


def test_the_product_reads_what_the_sandbox_serves() -> None:
    gateway = FakeGateway(now=NOW)
    seed(gateway, "train-0", 2)
    stop = threading.Event()
    port = pick()
    server = threading.Thread(target=UtilisationServer(gateway, port, stop).run)
    server.start()
    try:
        for _attempt in range(50):
            try:
                samples = read_samples(f"http://127.0.0.1:{port}")
                break
            except RuntimeError:
                stop.wait(0.1)
    finally:
        stop.set()
        server.join()
    assert [(s.hosts, s.device, s.pods) for s in samples] == [
        (("n1",), "0", ("ns/train-0",)),
        (("n1",), "1", ("ns/train-0",)),
    ]

"""The bench binds what it creates, says where the time went, and leaves nothing behind."""

from __future__ import annotations

from itertools import count

from binder.tools.bench import BindMeasurement, measure_binds
from kube.resources import BINDREQUESTS, NAMESPACES, NODES, PODS
from tests.binder.objects import Harness
from tests.fakes.gateway import FakeGateway


def test_all_pods_are_bound_and_everything_is_deleted() -> None:
    gateway = FakeGateway(follow_s=0.2)
    looks = count()
    measurement = measure_binds(
        gateway, pods=5, concurrency=2, server_cpu_s=lambda: {"server": 3.0 * next(looks)}
    )
    assert measurement.counts["bind pods"] == 5
    assert measurement.counts["patch bindrequests/status"] == 5
    assert measurement.counts["create events"] == 10
    assert measurement.cpu_s["server"] == 3.0
    for resource in (PODS, BINDREQUESTS, NODES, NAMESPACES):
        assert gateway.names(resource) == []


def test_the_text_names_the_sustained_rate_and_the_processor_time() -> None:
    measurement = BindMeasurement(
        pods=100,
        concurrency=16,
        bound_s=0.5,
        reported_s=0.8,
        announced_s=1.0,
        cpu_s={"binder": 0.2, "kube-apiserver": 0.8},
        counts={"bind pods": 100, "create events": 200},
        seconds={"bind pods": 1.0, "create events": 3.0},
    )
    assert measurement.text().splitlines() == [
        "binds: 100 pods by one binder with 16 threads: 100 binds/s with all statuses and events "
        "written (1.00 s); bound after 0.50 s (200/s), statuses after 0.80 s",
        "  processor time of one bind: binder 2.0 ms, kube-apiserver 8.0 ms; 500 binds per second "
        "of the binder's, 100 of all",
        "  create events                   200 requests     15.0 ms each    75 % of the waiting for answers",
        "  bind pods                       100 requests     10.0 ms each    25 % of the waiting for answers",
    ]


def test_the_events_of_a_hundred_binds_a_second_are_never_held_back() -> None:
    recorder = Harness().worker.recorder
    per_second = 2 * 100
    waits = [recorder.pace.wait_s(number / per_second) for number in range(30 * per_second)]
    assert (max(waits), recorder.writers) == (0.0, 4)

"""The bench binds what it creates, says where the time went, and leaves nothing behind."""

from __future__ import annotations

from binder.tools.bench import measure_binds
from kube.resources import BINDREQUESTS, NAMESPACES, NODES, PODS
from tests.fakes.gateway import FakeGateway


def test_all_pods_are_bound_and_everything_is_deleted() -> None:
    gateway = FakeGateway(follow_s=0.2)
    measurement = measure_binds(gateway, pods=5, concurrency=2)
    assert measurement.counts["bind pods"] == 5
    assert measurement.counts["patch bindrequests/status"] == 5
    assert "binds: 5 pods by one binder with 2 threads: bound after " in measurement.text()
    for resource in (PODS, BINDREQUESTS, NODES, NAMESPACES):
        assert gateway.names(resource) == []

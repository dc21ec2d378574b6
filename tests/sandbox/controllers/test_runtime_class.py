"""What a GPU operator installs beside the nodes."""

from __future__ import annotations

from sandbox.controllers.runtime_class import RUNTIME_CLASSES, ensure_runtime_class
from tests.fakes.gateway import FakeGateway


def test_the_runtime_class_is_made_once():
    gateway = FakeGateway()
    assert ensure_runtime_class(gateway)
    assert not ensure_runtime_class(gateway)
    assert gateway.raw(RUNTIME_CLASSES, "nvidia")["handler"] == "nvidia"

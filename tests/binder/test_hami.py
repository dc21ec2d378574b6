"""The memory limit of a part of a GPU."""

from __future__ import annotations

from typing import Any

import pytest

from binder.params import StepConfig
from binder.steps.base import BindJob
from binder.steps.hami import HamiCore
from kube.objects.bindrequest import BindRequest
from kube.objects.meta import convert
from kube.objects.pod import Pod
from kube.resources import CONFIGMAPS, NODES
from tests.binder.objects import fraction_pod, fraction_request
from tests.fakes.gateway import FakeGateway

MAP = "p-abcdefg-shared-gpu-0"


def job(portion: str) -> BindJob:
    body: dict[str, Any] = fraction_request("p", "g")
    body["spec"]["receivedGPU"]["portion"] = portion
    return BindJob(convert(body, BindRequest), convert(fraction_pod("p"), Pod), "n1")


@pytest.mark.parametrize(
    ("labels", "portion", "limit"),
    [
        ({"nvidia.com/gpu.memory": "15360"}, "0.27", "4147m"),
        ({"nvidia.com/gpu.memory": "15360"}, "", None),
        ({"nvidia.com/gpu.memory": "lots"}, "0.27", None),
        ({}, "0.27", None),
    ],
)
def test_the_memory_limit_is_the_pods_portion_of_the_device_of_the_node(
    labels: dict[str, str], portion: str, limit: str | None
) -> None:
    gateway = FakeGateway()
    gateway.seed(NODES, {"metadata": {"name": "n1", "labels": labels}})
    gateway.seed(
        CONFIGMAPS, {"metadata": {"name": MAP, "namespace": "ns"}, "data": {"GPU_PORTION": "x"}}
    )
    step = HamiCore(gateway, StepConfig(name="hamicore", priority=50))
    assert step.concerns(job(portion))
    step.prepare(job(portion))
    added = {} if limit is None else {"CUDA_DEVICE_MEMORY_LIMIT": limit}
    assert gateway.raw(CONFIGMAPS, MAP, "ns")["data"] == {"GPU_PORTION": "x", **added}

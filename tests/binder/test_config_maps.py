"""The two ConfigMaps of a pod that shares a GPU: which container they are for, what is in them, whose they are."""

from __future__ import annotations

from typing import Any

import pytest

from binder.errors import BindError
from binder.params import StepConfig
from binder.steps.base import BindJob
from binder.steps.gpu_sharing import GpuSharing
from kube.objects.bindrequest import BindRequest
from kube.objects.meta import convert
from kube.objects.pod import Pod
from kube.resources import CONFIGMAPS
from tests.binder.objects import fraction_pod, fraction_request
from tests.fakes.gateway import FakeGateway

PREFIX = "p-abcdefg-shared-gpu"
PORTIONS = {"GPU_PORTION": "0.50", "RUNAI_NUM_OF_GPUS": "0.50"}
VISIBLE = {"NVIDIA_VISIBLE_DEVICES": "GPU-1"}


def job(body: dict[str, Any] | None = None, *devices: str) -> BindJob:
    return BindJob(
        request=convert(fraction_request("p", "g1"), BindRequest),
        pod=convert(body or fraction_pod("p"), Pod),
        node="n1",
        devices=devices or ("GPU-1",),
    )


def step(gateway: FakeGateway, *, cdi: str = "false") -> GpuSharing:
    return GpuSharing(
        gateway, StepConfig(name="gpusharing", priority=100, arguments={"cdiEnabled": cdi})
    )


def maps(gateway: FakeGateway) -> dict[str, dict[str, str]]:
    return {
        name: gateway.raw(CONFIGMAPS, name, "ns")["data"]
        for name in gateway.names(CONFIGMAPS, "ns")
    }


def existing_map(owner: str, **data: str) -> dict[str, Any]:
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner}
    metadata = {"name": f"{PREFIX}-0", "namespace": "ns", "ownerReferences": [reference]}
    return {"metadata": metadata, "data": data}


def test_devices_are_named_for_the_container_device_interface_where_it_is_on() -> None:
    gateway = FakeGateway()
    step(gateway, cdi="true").prepare(job(None, "GPU-1", "GPU-2"))
    assert maps(gateway)[f"{PREFIX}-0"]["NVIDIA_VISIBLE_DEVICES"] == (
        "k8s.device-plugin.nvidia.com/gpu=GPU-1,k8s.device-plugin.nvidia.com/gpu=GPU-2"
    )


def test_a_container_that_reads_no_single_variable_gets_it_from_the_map_of_plain_ones() -> None:
    gateway = FakeGateway()
    body = fraction_pod("p")
    del body["spec"]["containers"][0]["env"]
    step(gateway).prepare(job(body))
    assert maps(gateway) == {f"{PREFIX}-0": PORTIONS, f"{PREFIX}-0-evar": VISIBLE}


@pytest.mark.parametrize(("container", "index"), [("side", "1"), ("first", "i0"), ("next", "i1")])
def test_the_container_named_in_the_annotation_gets_the_device(container: str, index: str) -> None:
    gateway = FakeGateway()
    body = fraction_pod("p")
    body["metadata"]["annotations"]["gpu-fraction-container-name"] = container
    body["spec"]["containers"].append({"name": "side"})
    body["spec"]["initContainers"] = [{"name": "first"}, {"name": "next"}]
    step(gateway).prepare(job(body))
    name = f"{PREFIX}-{index}"
    assert maps(gateway) == {name: PORTIONS, f"{name}-evar": VISIBLE}
    step(gateway).roll_back(job(body))
    assert maps(gateway) == {}


def test_an_unknown_container_fails_the_attempt() -> None:
    body = fraction_pod("p")
    body["metadata"]["annotations"]["gpu-fraction-container-name"] = "nobody"
    text = "container with name nobody not found for fraction request"
    with pytest.raises(BindError, match=text):
        step(FakeGateway()).prepare(job(body))


def test_a_map_of_the_pod_keeps_what_is_not_ours_and_its_older_name_of_the_devices() -> None:
    gateway = FakeGateway()
    data = {"OTHER": "kept", "RUNAI-VISIBLE-DEVICES": "GPU-0", "GPU_PORTION": "0.25"}
    gateway.seed(CONFIGMAPS, existing_map("uid-p", **data))
    step(gateway).prepare(job())
    expected = {"OTHER": "kept", "RUNAI-VISIBLE-DEVICES": "GPU-1", **PORTIONS, **VISIBLE}
    assert maps(gateway)[f"{PREFIX}-0"] == expected


def test_a_map_of_an_earlier_pod_becomes_the_pods_own() -> None:
    gateway = FakeGateway()
    gateway.seed(CONFIGMAPS, existing_map("uid-earlier", OTHER="gone", GPU_PORTION="0.25"))
    step(gateway).prepare(job())
    assert maps(gateway)[f"{PREFIX}-0"] == {**PORTIONS, **VISIBLE}
    (owner,) = gateway.raw(CONFIGMAPS, f"{PREFIX}-0", "ns")["metadata"]["ownerReferences"]
    assert owner["uid"] == "uid-p"

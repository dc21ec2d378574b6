"""The one count of a pod's resources."""

from __future__ import annotations

import time
from fractions import Fraction
from typing import Any

import pytest

from kube.objects.devices import ResourceClaim
from kube.objects.meta import convert, decode
from kube.objects.node import Node
from kube.objects.pod import Pod
from queues.workloads.accounting import (
    AccountingError,
    allocated_resources,
    claim_names,
    claimed_devices,
    format_list,
    node_gpu_memory,
    parse_list,
    pod_demand,
    requested_resources,
)


def container(
    limits: dict[str, str] | None = None, restart: str = "", **requests: str
) -> dict[str, Any]:
    named = {key.replace("_", "-"): value for key, value in requests.items()}
    return {"restartPolicy": restart, "resources": {"requests": named, "limits": limits or {}}}


def pod(
    *containers: dict[str, Any],
    init: tuple[dict[str, Any], ...] = (),
    overhead: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
) -> Pod:
    body = {
        "metadata": {"name": "p", "namespace": "lab", "annotations": annotations or {}},
        "spec": {
            "nodeName": "n1",
            "containers": list(containers),
            "initContainers": list(init),
            "overhead": overhead or {},
        },
    }
    return convert(body, Pod)


def requested(the_pod: Pod) -> dict[str, str]:
    return format_list(requested_resources(pod_demand(the_pod)))


def test_containers_add_up_and_overhead_adds() -> None:
    counted_pod = pod(
        container(cpu="250m", memory="64Mi"),
        container(cpu="1", memory="1Gi"),
        overhead={"cpu": "100m"},
    )
    assert requested(counted_pod) == {"cpu": "1350m", "memory": "1088Mi"}
    assert dict(pod_demand(counted_pod).overhead) == {"cpu": Fraction(1, 10)}


def test_init_containers_raise_the_peak_and_sidecars_add() -> None:
    counted_pod = pod(
        container(cpu="1"),
        init=(
            container(cpu="2"),
            container(cpu="500m", restart="Always"),
            container(cpu="3", memory="1Gi"),
        ),
    )
    # The last init container runs beside the sidecar: 3 + 0.5.
    assert requested(counted_pod) == {"cpu": "3500m", "memory": "1Gi"}
    late = pod(
        container(cpu="3"), init=(container(cpu="500m", restart="Always"), container(cpu="1"))
    )
    assert requested(late) == {"cpu": "3500m"}


def test_a_limit_is_a_request_where_none_is_given() -> None:
    assert requested(pod(container(limits={"nvidia.com/gpu": "2", "cpu": "4"}, cpu="1"))) == {
        "cpu": "1",
        "nvidia.com/gpu": "2",
    }
    assert requested(pod(container(limits={"amd.com/gpu": "1"}))) == {"nvidia.com/gpu": "1"}


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({"gpu-fraction": "0.5"}, {"nvidia.com/gpu": "500m"}),
        ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"}, {"nvidia.com/gpu": "1"}),
        ({"gpu-fraction": "5e-1"}, {"nvidia.com/gpu": "500m"}),
        ({"gpu-fraction": ".333", "gpu-fraction-num-devices": "3"}, {"nvidia.com/gpu": "999m"}),
        ({"gpu-fraction": "1"}, {"nvidia.com/gpu": "1"}),
        ({"gpu-memory": "2000"}, {"run.ai/gpu.memory": "2k"}),
        ({"gpu-memory": "2000", "gpu-fraction-num-devices": "2"}, {"run.ai/gpu.memory": "4k"}),
        ({"gpu-memory": "2000", "gpu-fraction": "0.25"}, {"nvidia.com/gpu": "250m"}),
        ({"gpu-fraction": "1.5"}, {}),
        ({"gpu-fraction": "half"}, {}),
        ({"gpu-memory": "2Gi"}, {}),
        ({"gpu-fraction-num-devices": "2"}, {}),
    ],
)
def test_parts_of_devices(annotations: dict[str, str], expected: dict[str, str]) -> None:
    counted_pod = pod(container(), annotations=annotations)
    assert requested(counted_pod) == expected


def test_a_part_replaces_whole_devices() -> None:
    counted_pod = pod(
        container(limits={"nvidia.com/gpu": "1"}), annotations={"gpu-fraction": "0.5"}
    )
    assert requested(counted_pod) == {"nvidia.com/gpu": "500m"}


def test_mig_slices_keep_their_name() -> None:
    demand = pod_demand(
        pod(container(limits={"nvidia.com/mig-3g.20gb": "2", "nvidia.com/mig-1g.5gb": "1"}))
    )
    assert format_list(requested_resources(demand)) == {
        "nvidia.com/mig-1g.5gb": "1",
        "nvidia.com/mig-3g.20gb": "2",
    }
    assert not demand.legacy_mig


def test_the_old_mig_annotation_has_a_reason_of_its_own() -> None:
    demand = pod_demand(pod(container(), annotations={"nvidia.com/mig-1g.5gb": "1"}))
    assert demand.legacy_mig
    assert dict(demand.mig) == {"nvidia.com/mig-1g.5gb": 1}


def test_a_shared_device_is_held_only_once_the_binder_gave_it() -> None:
    half = {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"}
    waiting = pod(container(cpu="1"), annotations=half)
    assert format_list(allocated_resources(waiting, pod_demand(waiting))) == {"cpu": "1"}
    fraction_pod = pod(
        container(cpu="1"), annotations={**half, "received-resource-type": "Fraction"}
    )
    assert format_list(allocated_resources(fraction_pod, pod_demand(fraction_pod))) == {
        "cpu": "1",
        "nvidia.com/gpu": "1",
    }
    memory = pod(
        container(), annotations={"gpu-memory": "2000", "received-resource-type": "Fraction"}
    )
    amounts = allocated_resources(memory, pod_demand(memory), 16_384)
    # 0.1220703125 is finer than a quantity can say; a status would never agree with its count.
    assert (
        amounts
        == {"nvidia.com/gpu": Fraction(122_070_313, 10**9)}
        == parse_list(format_list(amounts))
    )
    with pytest.raises(
        AccountingError, match="pod lab/p holds gpu-memory on node n1, whose GPU memory is unknown"
    ):
        allocated_resources(memory, pod_demand(memory))


def claim(*requests: dict[str, Any], **annotations: str) -> ResourceClaim:
    named = {key.replace("__", "/").replace("_", "-"): value for key, value in annotations.items()}
    body = {"metadata": {"annotations": named}, "spec": {"devices": {"requests": list(requests)}}}
    return convert(body, ResourceClaim)


def exactly(device_class: str, mode: str = "ExactCount", count: int = 0) -> dict[str, Any]:
    return {"exactly": {"deviceClassName": device_class, "allocationMode": mode, "count": count}}


def test_claims_count_gpu_classes() -> None:
    assert claimed_devices(
        [claim(exactly("gpu.x", count=2), exactly("GPU.y"), exactly("nic"))]
    ) == {"gpu.x": 3}
    assert claimed_devices([claim(exactly("gpu", "All")), claim(exactly("gpu", count=4))]) == {
        "gpu": 5
    }
    alternatives = [
        {"name": "many", "deviceClassName": "gpu", "count": 3},
        {"name": "one", "deviceClassName": "gpu"},
    ]
    assert claimed_devices([claim({"firstAvailable": alternatives})]) == {"gpu": 3}
    watching = {"exactly": {"deviceClassName": "gpu", "adminAccess": True}}
    assert claimed_devices([claim(watching)]) == {}
    assert claimed_devices([claim(exactly("nic", count=3))]) == {}
    extended = claim(exactly("gpu"))
    marked = {"resource.kubernetes.io/extended-resource-claim": "true"}
    body = {
        "metadata": {"annotations": marked},
        "spec": {"devices": {"requests": [exactly("gpu")]}},
    }
    assert claimed_devices([extended, convert(body, ResourceClaim)]) == {"gpu": 1}
    assert claimed_devices(
        [claim(exactly("gpu", count=2**62)), claim(exactly("gpu", count=2**62))]
    ) == {"gpu": 2**63 - 1}


def test_a_claim_that_has_its_devices_counts_what_it_holds() -> None:
    requests = [
        {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}},
        {
            "name": "s",
            "firstAvailable": [
                {"name": "two", "deviceClassName": "gpu", "count": 2},
                {"name": "cpu", "deviceClassName": "accelerator"},
            ],
        },
    ]
    results = [{"request": name} for name in ("r", "r", "r", "s/cpu")]
    body = {
        "spec": {"devices": {"requests": requests}},
        "status": {"allocation": {"devices": {"results": results}}},
    }
    assert claimed_devices([convert(body, ResourceClaim)]) == {"gpu": 3}


def test_a_claim_joins_the_request() -> None:
    demand = pod_demand(pod(container()), [claim(exactly("gpu.example.test", count=1))])
    assert format_list(requested_resources(demand)) == {"gpu.example.test": "1"}


def test_claim_names_of_templates_come_with_the_status() -> None:
    body = {
        "spec": {
            "resourceClaims": [
                {"name": "a", "resourceClaimName": "shared"},
                {"name": "b", "resourceClaimTemplateName": "t"},
                {"name": "c", "resourceClaimTemplateName": "t"},
            ]
        },
        "status": {"resourceClaimStatuses": [{"name": "b", "resourceClaimName": "p-b-x"}]},
    }
    assert claim_names(convert(body, Pod)) == ["shared", "p-b-x"]


def node(**labels: str) -> Node:
    return convert({"metadata": {"name": "n1", "labels": labels}}, Node)


def test_gpu_memory_of_a_node() -> None:
    assert node_gpu_memory(node(**{"nvidia.com/gpu.memory": "16384"})) == 16384
    assert node_gpu_memory(node(**{"beta.amd.com/gpu.vram.16G": "8"})) == 16000
    assert node_gpu_memory(node(**{"beta.amd.com/gpu.vram.512M": "8"})) == 512
    with pytest.raises(AccountingError) as both:
        node_gpu_memory(node(**{"nvidia.com/gpu.memory": "1", "beta.amd.com/gpu.vram.16G": "8"}))
    assert str(both.value) == (
        "the node n1 has both nvidia and amd gpu labels. Such nodes aren't supported for fraction "
        "resource requests"
    )
    for bad in ({}, {"nvidia.com/gpu.memory": "lots"}, {"beta.amd.com/gpu.vram.big": "1"}):
        with pytest.raises(AccountingError, match="n1"):
            node_gpu_memory(node(**bad))


def test_a_fraction_with_a_huge_exponent_costs_nothing_and_asks_for_nothing() -> None:
    """The scheduler and the mirror once spent hours on one such pod, whoever was to schedule it."""
    pod = decode(
        b'{"metadata": {"name": "p", "annotations": {"gpu-fraction": "1e-99999999"}}}', Pod
    )
    began = time.perf_counter()
    assert pod_demand(pod).gpu_fraction == 0
    assert time.perf_counter() - began < 0.1

"""The message of a pod that fails before any node is tried, and what its device claims lack."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kube.errors import NotFoundError
from kube.resources import (
    BINDREQUESTS,
    CONFIGMAPS,
    DEVICE_CLASSES,
    NODES,
    PODGROUPS,
    PODS,
    PVCS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    STORAGE_CLASSES,
)
from tests.scheduler.explain.waiting_pod import NO_NODES, args, message_of_pod, queues, sits, wants
from tests.scheduler.load.objects import group, meta, node
from tests.scheduler.loop.harness import Harness
from tests.scheduler.loop.harness import harness as open_harness

NOT_MET = "Scheduling conditions were not met for pod ns/p:\n"
NIC, MIG = "example.com/nic", "nvidia.com/mig-1g.5gb"


@pytest.fixture
def harness() -> Iterator[Harness]:
    with open_harness() as opened:
        yield opened


def needs_maps(*names: str) -> dict[str, Any]:
    sources = [{"configMapRef": {"name": name}} for name in names]
    return {"containers": [{"name": "main", "envFrom": sources}]}


def test_missing_config_maps(harness: Harness) -> None:
    queues(harness).seed(NODES, node("n0")).seed(CONFIGMAPS, {"metadata": meta("there", "ns")})
    assert message_of_pod(wants(harness, **needs_maps("there", "b", "a"))) == (
        f"{NOT_MET}ConfigMap: Missing required configmaps: [a b].\n"
    )
    (condition,) = harness.group_conditions("pg")
    assert condition["message"] == (
        f"PodSchedulingErrors: Resources were not found for pod ns/p due to: {NOT_MET}ConfigMap: "
        "Missing required configmaps: [a b].\n."
    )


def _only_on(*nodes: str) -> Any:
    field = {"key": "metadata.name", "operator": "In"}
    return {"matchFields": [{**field, "values": [name]} for name in nodes]}


def _affinity(*terms: Any) -> Any:
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def test_terms_that_name_nodes_and_leave_none(harness: Harness) -> None:
    queues(harness).seed(NODES, node("n0"), node("n1"))
    both = _affinity(_only_on("n0", "n1"))
    assert (
        message_of_pod(wants(harness, affinity=both))
        == f"{NOT_MET}NodeAffinity: pod affinity terms conflict.\n"
    )


def test_an_alternative_that_leaves_a_node_is_enough(harness: Harness) -> None:
    queues(harness).seed(NODES, node("n0"), node("n1"))
    wants(harness, affinity=_affinity(_only_on("n0", "n1"), _only_on("n1"))).cycle()
    assert harness.gateway.raw(BINDREQUESTS, "p", "ns")["spec"]["selectedNode"] == "n1"


def test_every_failed_check_has_a_line(harness: Harness) -> None:
    queues(harness).seed(NODES, node("n0", gpus=2))
    harness.seed(CONFIGMAPS, {"metadata": meta("other", "ns")})
    claim = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    main: Any = {"name": "main", "envFrom": [{"configMapRef": {"name": "a"}}]}
    main["resources"] = {"requests": {"nvidia.com/gpu": "3"}}
    assert message_of_pod(wants(harness, containers=[main], volumes=claim)) == (
        f"{NOT_MET}"
        'VolumeBinding: persistentvolumeclaim "data" not found.\n'
        "MaxNodePoolResources: The pod ns/p requires GPU: 3, CPU: 0 (cores), memory: 0 (GB), pods: 1. Max GPU "
        "resources available in a single node in the default node-pool is topped at 2.\n"
        "ConfigMap: Missing required configmaps: [a].\n"
    )


def test_an_evicting_action_reports_a_failed_check_in_one_sentence(harness: Harness) -> None:
    """When placing was not even tried, because the queue is at its limit."""
    queues(harness, quota=1, limit=1).seed(NODES, node("n0"))
    harness.seed(CONFIGMAPS, {"metadata": meta("other", "ns")})
    harness.seed(PODGROUPS, group("held")).seed(
        PODS, sits("held-0", {"nvidia.com/gpu": "1"}, group="held")
    )
    main: Any = {"name": "main", "envFrom": [{"configMapRef": {"name": "a"}}]}
    main["resources"] = {"requests": {"nvidia.com/gpu": "1"}}
    assert message_of_pod(wants(harness, containers=[main])) == "Missing required configmaps: [a]"
    (condition,) = harness.group_conditions("pg")
    assert condition["message"] == (
        "Unable to schedule podgroup: Resources were not found for pod ns/p due to: Missing required "
        "configmaps: [a]. \nThe queue quota has reached the allowable limit of GPUs. Limit is 1 GPUs, "
        "currently 1 GPUs allocated and workload requested 1 GPUs."
    )


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ({"status": {"phase": "Lost"}}, 'persistentvolumeclaim "data" bound to non-existent persistentvolume "pv"'),
        ({"deleted": "2026-01-01T00:00:00Z"}, 'persistentvolumeclaim "data" is being deleted'),
        ({"volume": ""}, "pod has unbound immediate PersistentVolumeClaims"),
    ],
)  # fmt: skip
def test_claims_on_volumes_that_no_node_cures(
    harness: Harness, claim: dict[str, Any], text: str
) -> None:
    queues(harness).seed(NODES, node("n0"))
    harness.seed(STORAGE_CLASSES, {"metadata": meta("now"), "volumeBindingMode": "Immediate"})
    about = meta("data", "ns")
    if "deleted" in claim:
        about["deletionTimestamp"] = claim["deleted"]
        about["finalizers"] = ["kubernetes.io/pvc-protection"]
    spec = {"storageClassName": "now", "volumeName": claim.get("volume", "pv")}
    harness.seed(PVCS, {"metadata": about, "spec": spec, "status": claim.get("status", {})})
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    assert message_of_pod(wants(harness, volumes=[volume])) == f"{NOT_MET}VolumeBinding: {text}.\n"


@pytest.mark.parametrize(
    ("requests", "required", "answer"),
    [
        (
            {"nvidia.com/gpu": "9", "cpu": "1500m", "memory": "2G"},
            "GPU: 9, CPU: 1.5 (cores), memory: 2 (GB), pods: 1",
            "Max GPU resources available in a single node in the default node-pool is topped at 8",
        ),
        (
            {"cpu": "33"},
            "GPU: 0, CPU: 33 (cores), memory: 0 (GB), pods: 1",
            "Max CPU resources available in a single node in the default node-pool is topped at 32 cores",
        ),
        (
            {"memory": "200G"},
            "GPU: 0, CPU: 0 (cores), memory: 200 (GB), pods: 1",
            "Max memory resources available in a single node in the default node-pool is topped at 128.5 GB",
        ),
        (
            {NIC: "5"},
            f"GPU: 0, CPU: 0 (cores), memory: 0 (GB), pods: 1, {NIC}: 5",
            f"Max {NIC} resources available in a single node in the default node-pool is topped at 4",
        ),
        (
            {"example.com/none": "1", NIC: "2"},
            f"GPU: 0, CPU: 0 (cores), memory: 0 (GB), pods: 1, {NIC}: 2, example.com/none: 1",
            "No node in the default node-pool has example.com/none resources",
        ),
        (
            {"ephemeral-storage": "200G"},
            "GPU: 0, CPU: 0 (cores), memory: 0 (GB), pods: 1, ephemeral-storage: 200 (GB)",
            "Max ephemeral-storage resources available in a single node in the default node-pool is "
            "topped at 100 GB",
        ),
        (
            {MIG: "1", "ephemeral-storage": "1G"},
            f"GPU: 1, CPU: 0 (cores), memory: 0 (GB), pods: 1, ephemeral-storage: 1 (GB), mig {MIG}: 1",
            f"No node in the default node-pool has {MIG} resources",
        ),
    ],
)  # fmt: skip
def test_more_than_any_node_has(
    harness: Harness, requests: dict[str, str], required: str, answer: str
) -> None:
    has = {"cpu": "32", "memory": "128.5G", "pods": "110", "nvidia.com/gpu": "8"}
    has |= {NIC: "4", "ephemeral-storage": "100G"}
    queues(harness).seed(NODES, node("n0", allocatable=has))
    asked_for = f"The pod ns/p requires {required}. {answer}"
    assert (
        message_of_pod(wants(harness, requests)) == f"{NOT_MET}MaxNodePoolResources: {asked_for}.\n"
    )


# ------------------------------------------------------------------------------- claims on devices


def device_class(harness: Harness, name: str = "gpu.example.com") -> Harness:
    return harness.seed(DEVICE_CLASSES, {"metadata": meta(name), "spec": {}})


def devices(harness: Harness, count: int, where: str = "n0") -> Harness:
    spec = {
        "driver": "gpu.example.com",
        "nodeName": where,
        "pool": {"name": where},
        "devices": [{"name": f"gpu-{index}"} for index in range(count)],
    }
    return harness.seed(RESOURCE_SLICES, {"metadata": meta(f"slice-{where}"), "spec": spec})


def claim(
    harness: Harness, *, labels: dict[str, str] | None = None, count: int = 1, **status: Any
) -> Harness:
    exactly = {"deviceClassName": "gpu.example.com", "allocationMode": "ExactCount", "count": count}
    spec = {"devices": {"requests": [{"name": "r0", "exactly": exactly}]}}
    about = meta("c", "ns", labels={"kai.scheduler/queue": "q"} if labels is None else labels)
    return harness.seed(RESOURCE_CLAIMS, {"metadata": about, "spec": spec, "status": status})


CLAIMS: Any = {"resourceClaims": [{"name": "mine", "resourceClaimName": "c"}]}


def test_device_claims_that_the_cluster_does_not_serve(harness: Harness) -> None:
    queues(harness).seed(NODES, node("n0"))
    harness.gateway.fail_next(
        "list", "resourceclaims", NotFoundError("the server has no such kind")
    )
    two = [{"name": "a", "resourceClaimName": "c"}, {"name": "b", "resourceClaimName": "d"}]
    assert message_of_pod(wants(harness, resourceClaims=two)) == (
        "pod ns/p cannot be scheduled, it references resource claims c, d while dynamic resource "
        "allocation is not available in the cluster"
    )


def test_a_claim_that_does_not_exist(harness: Harness) -> None:
    device_class(devices(queues(harness), 1)).seed(NODES, node("n0", gpus=0))
    assert message_of_pod(wants(harness, **CLAIMS)) == "resource claim ns/c does not exist"


def test_a_claim_with_as_many_consumers_as_there_may_be(harness: Harness) -> None:
    device_class(devices(queues(harness), 1)).seed(NODES, node("n0", gpus=0))
    others = [{"resource": "pods", "name": f"o{n}", "uid": f"uid-o{n}"} for n in range(256)]
    claim(harness, reservedFor=others)
    assert message_of_pod(wants(harness, **CLAIMS)) == (
        "resource claim ns/c has reached its maximum number of consumers (256)"
    )


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        ({}, "is a shared GPU claim but does not have a queue label (kai.scheduler/queue)"),
        (
            {"kai.scheduler/queue": "other"},
            "is a shared GPU claim with wrong queue label (expected queue: q, claim queue label: other)",
        ),
    ],
)
def test_a_shared_claim_names_the_queue_it_is_charged_to(
    harness: Harness, labels: dict[str, str], text: str
) -> None:
    device_class(devices(queues(harness), 1)).seed(NODES, node("n0", gpus=0))
    claim(harness, labels=labels)
    assert (
        message_of_pod(wants(harness, **CLAIMS))
        == f"pod ns/p cannot be scheduled: DRA claim c {text}"
    )


def test_a_claim_of_an_unknown_class(harness: Harness) -> None:
    claim(devices(queues(harness), 1)).seed(NODES, node("n0", gpus=0))
    assert message_of_pod(wants(harness, **CLAIMS)) == (
        "device class gpu.example.com does not exist for claim ns/c request r0"
    )


def test_a_claim_that_was_served_elsewhere(harness: Harness) -> None:
    device_class(devices(queues(harness), 2)).seed(NODES, node("n0", gpus=0))
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n9"]}]}]
    result = {"driver": "gpu.example.com", "pool": "n9", "device": "gpu-0", "request": "r0"}
    allocation = {
        "devices": {"results": [result]},
        "nodeSelector": {"nodeSelectorTerms": terms},
    }
    claim(harness, allocation=allocation)
    assert message_of_pod(wants(harness, **CLAIMS)) == (
        f"{NO_NODES}: 1 claim ns/c node selector does not match node n0."
    )


def test_devices_that_others_hold(harness: Harness) -> None:
    device_class(devices(queues(harness), 1)).seed(NODES, node("n0", gpus=1))
    claim(harness, count=2)
    assert message_of_pod(wants(harness, **CLAIMS)) == (
        f"{NO_NODES}: 1 cannot allocate all DRA claims on node n0."
    )


def test_figures_of_device_claims(harness: Harness) -> None:
    args(queues(harness), detailed_fit_errors="true").seed(NODES, node("n0", gpus=1))
    device_class(devices(harness, 2)).seed(PODS, sits("busy", {"nvidia.com/gpu": "2"}))
    claim(harness, count=2)
    assert message_of_pod(wants(harness, **CLAIMS)) == (
        "\n<n0>: Node didn't have enough resources: GPUs, requested: 2 as DRA gpu claims , used: 2, "
        f"capacity: 3.\n{NO_NODES}."
    )

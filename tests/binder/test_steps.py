"""What is prepared before a bind: device claims and volumes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from binder.errors import BindError
from binder.params import DEFAULT_STEPS
from binder.steps.base import BindJob
from binder.steps.claim_status import ConflictRetry
from binder.steps.device_claims import DeviceClaims
from binder.steps.volumes import Volumes
from kube.errors import ConflictError
from kube.objects.bindrequest import BindRequest
from kube.objects.meta import convert
from kube.objects.pod import Pod
from kube.resources import NODES, PVCS, PVS, RESOURCE_CLAIMS, STORAGE_CLASSES
from tests.binder.objects import pod, request
from tests.fakes.gateway import FakeGateway

CONFIG = {config.name: config for config in DEFAULT_STEPS}
ALLOCATION = {"devices": {"results": [{"driver": "d", "pool": "p", "device": "x", "request": "r"}]}}


def job(pod_body: dict[str, Any], request_body: dict[str, Any]) -> BindJob:
    return BindJob(convert(request_body, BindRequest), convert(pod_body, Pod), "n1")


# ------------------------------------------------------------------------------------ device claims


def claim_job(*, template: bool = False) -> BindJob:
    key = "resourceClaimTemplateName" if template else "resourceClaimName"
    body = pod("p", spec={"resourceClaims": [{"name": "gpu", key: "t" if template else "claim"}]})
    if template:
        claim_statuses = [{"name": "gpu", "resourceClaimName": "claim"}]
        body["status"]["resourceClaimStatuses"] = claim_statuses
    allocations = [{"name": "gpu", "allocation": ALLOCATION}]
    return job(body, request("p", resourceClaimAllocations=allocations))


def claim_status(gateway: FakeGateway) -> dict[str, Any]:
    status: dict[str, Any] = gateway.raw(RESOURCE_CLAIMS, "claim", "ns")["status"]
    return status


@pytest.mark.parametrize("template", [False, True])
def test_claim_status_holds_the_chosen_devices_and_the_pod(template: bool) -> None:
    gateway = FakeGateway()
    gateway.seed(RESOURCE_CLAIMS, {"metadata": {"name": "claim", "namespace": "ns"}})
    step = DeviceClaims(gateway, CONFIG["dynamicresources"])
    assert step.concerns(claim_job(template=template))
    step.prepare(claim_job(template=template))
    reserved = {"resource": "pods", "name": "p", "uid": "uid-p"}
    assert claim_status(gateway) == {"allocation": ALLOCATION, "reservedFor": [reserved]}
    writes = len(gateway.calls)
    step.prepare(claim_job(template=template))  # a second attempt finds it done
    assert len(gateway.calls) == writes


def test_a_claim_with_devices_is_protected_from_deletion_beside_other_finalizers() -> None:
    gateway = FakeGateway()
    meta = {"name": "claim", "namespace": "ns", "finalizers": ["example.com/own"]}
    gateway.seed(RESOURCE_CLAIMS, {"metadata": meta})
    DeviceClaims(gateway, CONFIG["dynamicresources"]).prepare(claim_job())
    assert gateway.raw(RESOURCE_CLAIMS, "claim", "ns")["metadata"]["finalizers"] == [
        "example.com/own",
        "resource.kubernetes.io/delete-protection",
    ]


def test_existing_allocation_and_reservations_of_a_claim_stay() -> None:
    gateway = FakeGateway()
    other = {"resource": "pods", "name": "o", "uid": "uid-o"}
    older = {"devices": {"results": []}}
    status = {"allocation": older, "reservedFor": [other]}
    gateway.seed(
        RESOURCE_CLAIMS, {"metadata": {"name": "claim", "namespace": "ns"}, "status": status}
    )
    DeviceClaims(gateway, CONFIG["dynamicresources"]).prepare(claim_job())
    assert claim_status(gateway)["allocation"] == older
    assert [item["uid"] for item in claim_status(gateway)["reservedFor"]] == ["uid-o", "uid-p"]


def test_conflict_is_retried_and_a_missing_claim_fails() -> None:
    gateway = FakeGateway()
    gateway.seed(RESOURCE_CLAIMS, {"metadata": {"name": "claim", "namespace": "ns"}})
    gateway.fail_next("patch", "resourceclaims", ConflictError("newer"))
    step = DeviceClaims(gateway, CONFIG["dynamicresources"])
    step.prepare(claim_job())
    assert claim_status(gateway)["allocation"] == ALLOCATION
    with pytest.raises(BindError, match="failed to update claim claim for pod ns/p"):
        DeviceClaims(FakeGateway(), CONFIG["dynamicresources"]).prepare(claim_job())


def test_a_claim_that_others_keep_changing_fails_after_the_timeout() -> None:
    waited: list[float] = []
    patience = ConflictRetry(timeout_s=1.0, clock=lambda: sum(waited), sleep=waited.append)
    gateway = FakeGateway()
    gateway.seed(RESOURCE_CLAIMS, {"metadata": {"name": "claim", "namespace": "ns"}})
    for _ in range(60):
        gateway.fail_next("patch", "resourceclaims", ConflictError("newer"))
    with pytest.raises(BindError, match="failed to update claim claim for pod ns/p: newer"):
        DeviceClaims(gateway, CONFIG["dynamicresources"], patience).prepare(claim_job())
    assert sum(waited) == pytest.approx(1.0)


def test_a_claim_that_the_pod_does_not_refer_to_fails() -> None:
    allocations = [{"name": "other", "allocation": ALLOCATION}]
    bind_job = job(pod("p"), request("p", resourceClaimAllocations=allocations))
    with pytest.raises(BindError, match="claim other from bind request not found in pod ns/p"):
        DeviceClaims(FakeGateway(), CONFIG["dynamicresources"]).prepare(bind_job)


# ------------------------------------------------------------------------------------------ volumes


class Time:
    """A clock that moves when somebody sleeps, and then runs an action."""

    def __init__(self, action: Callable[[], None]) -> None:
        self.now = 0.0
        self.action = action

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.action()


def volume_job() -> BindJob:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    return job(pod("p", spec={"volumes": [volume]}), request("p"))


def cluster(provisioner: str = "csi.x", **claim_spec: Any) -> FakeGateway:
    gateway = FakeGateway()
    late_binding = {"volumeBindingMode": "WaitForFirstConsumer", "provisioner": provisioner}
    gateway.seed(NODES, {"metadata": {"name": "n1"}})
    gateway.seed(STORAGE_CLASSES, {"metadata": {"name": "late"}, **late_binding})
    spec = {
        "storageClassName": "late",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "10Gi"}},
        **claim_spec,
    }
    metadata = {"name": "data", "namespace": "ns"}
    gateway.seed(PVCS, {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})
    return gateway


def volumes_step(gateway: FakeGateway, action: Callable[[], None] = lambda: None) -> Volumes:
    time = Time(action)
    return Volumes(gateway, CONFIG["volumebinding"], clock=lambda: time.now, sleep=time.sleep)


def binding_claim(gateway: FakeGateway) -> Callable[[], None]:
    return lambda: (
        gateway.patch(PVCS, "data", {"status": {"phase": "Bound"}}, namespace="ns") and None
    )


def test_dynamic_claim_is_annotated_with_the_node_and_waited_for() -> None:
    gateway = cluster()
    volumes_step(gateway, binding_claim(gateway)).prepare(volume_job())
    claim = gateway.raw(PVCS, "data", "ns")
    assert claim["metadata"]["annotations"] == {"volume.kubernetes.io/selected-node": "n1"}
    assert claim["status"]["phase"] == "Bound"


def test_smallest_static_volume_that_fits_is_reserved() -> None:
    gateway = cluster("kubernetes.io/no-provisioner")
    for name, size, modes in (
        ("small", "5Gi", ["ReadWriteOnce"]),
        ("large", "50Gi", ["ReadWriteOnce"]),
        ("fits", "20Gi", ["ReadWriteOnce", "ReadOnlyMany"]),
        ("other-mode", "10Gi", ["ReadOnlyMany"]),
    ):
        spec = {"capacity": {"storage": size}, "storageClassName": "late", "accessModes": modes}
        gateway.seed(
            PVS, {"metadata": {"name": name}, "spec": spec, "status": {"phase": "Available"}}
        )
    volumes_step(gateway, binding_claim(gateway)).prepare(volume_job())
    assert gateway.raw(PVS, "fits")["spec"]["claimRef"]["name"] == "data"
    assert all("claimRef" not in gateway.raw(PVS, name)["spec"] for name in ("small", "large"))


@pytest.mark.parametrize(
    ("gateway", "problem"),
    [
        (cluster(storageClassName=""), "failed PreFilter.*unbound immediate"),
        (cluster("kubernetes.io/no-provisioner"), "failed Filter.*didn't find available"),
        (cluster(), "failed Bind.*timed out waiting for claims to be bound: data"),
        (FakeGateway(), "failed Bind.*not found"),
    ],
)
def test_volume_errors_name_stage_pod_and_node(gateway: FakeGateway, problem: str) -> None:
    with pytest.raises(BindError, match=problem) as failure:
        volumes_step(gateway).prepare(volume_job())
    assert "K8sPlugin VolumeBinding" in str(failure.value)
    assert "for pod: ns/p and node n1. error: " in str(failure.value)


def test_bound_claim_causes_no_write() -> None:
    gateway = cluster()
    binding_claim(gateway)()
    writes = len(gateway.calls)
    volumes_step(gateway).prepare(volume_job())
    assert len(gateway.calls) == writes

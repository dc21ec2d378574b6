"""Pods that share a GPU: reservation, labels, config maps, and what happens when things go wrong."""

from __future__ import annotations

from typing import Any

from binder.reservations import reservation_body
from kube.errors import ServerError
from kube.objects.meta import convert
from kube.objects.pod import Pod
from kube.resources import BINDREQUESTS, CONFIGMAPS, NODES, PODS
from tests.binder.objects import Rig, fraction_pod, fraction_request, pod

RESERVATIONS = "kai-resource-reservation"


def allocate(rig: Rig, *devices: str) -> None:
    """Let the process in each new reservation pod tell its device, as soon as someone waits."""
    left = list(devices)

    def tell() -> None:
        for name in rig.gateway.names(PODS, RESERVATIONS):
            body = rig.pod(name, RESERVATIONS)
            if (
                not body["metadata"].get("annotations", {}).get("run.ai/reserve_for_gpu_index")
                and left
            ):
                marks = {"metadata": {"annotations": {"run.ai/reserve_for_gpu_index": left.pop(0)}}}
                rig.gateway.patch(PODS, name, marks, namespace=RESERVATIONS)

    rig.while_waiting.append(tell)


def test_bound_fraction_pod_has_its_device_a_group_label_and_config_maps() -> None:
    rig = Rig().seed(pods=[fraction_pod("p")], requests=[fraction_request("p", "g1")])
    allocate(rig, "GPU-1")
    rig.run()
    assert rig.status() == {"phase": "Succeeded"}
    assert rig.pod()["spec"]["nodeName"] == "n1"
    assert rig.pod()["metadata"]["labels"] == {"runai-gpu-group": "g1"}
    assert rig.pod()["metadata"]["annotations"]["received-resource-type"] == "Fraction"
    prefix = "p-abcdefg-shared-gpu-0"
    assert rig.gateway.names(CONFIGMAPS, "ns") == [prefix, f"{prefix}-evar"]
    capabilities = rig.gateway.raw(CONFIGMAPS, prefix, "ns")
    assert capabilities["data"] == {
        "GPU_PORTION": "0.50",
        "RUNAI_NUM_OF_GPUS": "0.50",
        "NVIDIA_VISIBLE_DEVICES": "GPU-1",
    }
    assert capabilities["metadata"]["ownerReferences"][0]["uid"] == "uid-p"
    assert rig.gateway.raw(CONFIGMAPS, f"{prefix}-evar", "ns")["data"] == {}
    (name,) = rig.gateway.names(PODS, RESERVATIONS)
    assert name == "gpu-reservation-bb8a26907a9bbf15"
    reservation = rig.pod(name, RESERVATIONS)
    assert reservation["spec"]["nodeName"] == "n1"
    container = reservation["spec"]["containers"][0]
    assert container["resources"] == {
        "requests": {"nvidia.com/gpu": "1"},
        "limits": {"nvidia.com/gpu": "1"},
    }


def test_second_pod_of_a_group_uses_the_same_reservation() -> None:
    rig = Rig().seed(
        pods=[fraction_pod("a"), fraction_pod("b")],
        requests=[fraction_request("a", "g1"), fraction_request("b", "g1")],
    )
    allocate(rig, "GPU-1")
    rig.run()
    assert len(rig.gateway.names(PODS, RESERVATIONS)) == 1
    for name in "ab":
        data = rig.gateway.raw(CONFIGMAPS, f"{name}-abcdefg-shared-gpu-0", "ns")["data"]
        assert data["NVIDIA_VISIBLE_DEVICES"] == "GPU-1"


def test_several_devices_have_one_label_each() -> None:
    rig = Rig().seed(
        pods=[fraction_pod("p", devices=2)], requests=[fraction_request("p", "g1", "g2")]
    )
    allocate(rig, "GPU-1", "GPU-2")
    rig.run()
    assert rig.pod()["metadata"]["labels"] == {
        "runai-gpu-group/g1": "g1",
        "runai-gpu-group/g2": "g2",
    }
    data = rig.gateway.raw(CONFIGMAPS, "p-abcdefg-shared-gpu-0", "ns")["data"]
    assert data["NVIDIA_VISIBLE_DEVICES"] == "GPU-1,GPU-2"


def test_reservation_without_a_device_is_deleted_and_the_request_fails() -> None:
    rig = Rig().seed(pods=[fraction_pod("p")], requests=[fraction_request("p", "g1")]).run()
    assert rig.gateway.names(PODS, RESERVATIONS) == []
    assert rig.status()["phase"] == "Failed"
    assert "failed waiting for GPU reservation pod to allocate" in rig.status()["reason"]
    assert rig.pod()["metadata"].get("labels", {}) == {}


def test_failed_binding_removes_labels_config_maps_and_reservation() -> None:
    rig = Rig().seed(pods=[fraction_pod("p")], requests=[fraction_request("p", "g1")])
    allocate(rig, "GPU-1")
    rig.gateway.fail_next("bind", "pods", ServerError("no"))
    rig.run()
    assert rig.status()["phase"] == "Failed"
    assert rig.gateway.names(CONFIGMAPS, "ns") == []
    assert rig.pod()["metadata"]["labels"] == {}
    assert rig.gateway.names(PODS, RESERVATIONS) == []


def test_reservation_is_deleted_with_its_last_user() -> None:
    rig = Rig().seed(pods=[fraction_pod("p")], requests=[fraction_request("p", "g1")])
    allocate(rig, "GPU-1")
    rig.run()
    rig.gateway.delete(PODS, "p", namespace="ns", grace_period_s=0)
    rig.run()
    assert rig.gateway.names(PODS, RESERVATIONS) == []


def test_reservation_stays_while_an_open_request_uses_its_group() -> None:
    holder = reservation_body(
        convert(fraction_pod("x"), Pod), "n1", "g1", Rig().worker.params.reservation
    )
    rig = Rig().seed(pods=[holder], requests=[fraction_request("late", "g1")])
    rig.watch()
    rig.worker.reservations.sync_all()
    assert len(rig.gateway.names(PODS, RESERVATIONS)) == 1
    rig.gateway.delete(BINDREQUESTS, "late", namespace="ns")
    rig.run()
    assert rig.gateway.names(PODS, RESERVATIONS) == []


def test_running_user_without_a_reservation_is_deleted() -> None:
    labels = {"labels": {"runai-gpu-group": "g1"}}
    orphan = pod("orphan", node="n1", metadata=labels, phase="Running")
    waiting = pod("waiting", metadata={"labels": {"runai-gpu-group": "g2"}})
    rig = Rig().seed(pods=[orphan, waiting])
    rig.watch()
    rig.worker.reservations.sync_all()
    assert "deletionTimestamp" in rig.pod("orphan")["metadata"]
    assert "deletionTimestamp" not in rig.pod("waiting")["metadata"]


def test_fraction_without_groups_is_deleted_not_failed() -> None:
    rig = Rig().seed(pods=[fraction_pod("p")], requests=[fraction_request("p")]).run()
    assert rig.gateway.names(BINDREQUESTS, "ns") == []
    assert rig.condition("PodBound")["message"] == (
        "Failed to bind pod ns/p to node n1: "
        "no SelectedGPUGroups for fractional pod: invalid binding request"
    )


def test_no_reservation_is_created_while_the_cluster_scales_up() -> None:
    scaling = pod("scale", metadata={"namespace": "kai-scale-adjust"})
    rig = (
        Rig().seed(pods=[scaling, fraction_pod("p")], requests=[fraction_request("p", "g1")]).run()
    )
    assert rig.status()["reason"].endswith(
        "cluster is scaling up, could not create reservation pod"
    )


def _holder(*, node_labels: dict[str, str]) -> dict[str, Any]:
    rig = Rig().seed(pods=[fraction_pod("p")], requests=[fraction_request("p", "g1")])
    rig.gateway.patch(NODES, "n1", {"metadata": {"labels": node_labels}})
    allocate(rig, "GPU-1")
    rig.run()
    (name,) = rig.gateway.names(PODS, RESERVATIONS)
    return rig.pod(name, RESERVATIONS)


def test_reservation_pod_refuses_disruption_and_has_its_own_name_in_its_environment() -> None:
    holder = _holder(node_labels={})
    assert holder["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"] == "true"
    assert holder["metadata"]["labels"] == {
        "app": "kai-resource-reservation",
        "runai-gpu-group": "g1",
    }
    assert holder["spec"]["serviceAccountName"] == "kai-resource-reservation"
    (container,) = holder["spec"]["containers"]
    assert container["image"] == "registry/local/kai-scheduler/resource-reservation"
    assert "args" not in container
    assert container["env"] == [
        {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
    ]


def test_reservation_pod_runs_sleep_where_gpus_are_simulated() -> None:
    (container,) = _holder(node_labels={"run.ai/fake.gpu": "true"})["spec"]["containers"]
    assert (container["image"], container["args"]) == ("ubuntu", ["sleep", "infinity"])


def test_fraction_pod_without_a_config_map_name_fails_and_says_so() -> None:
    plain = pod("p", metadata={"annotations": {"gpu-fraction": "0.5"}})
    rig = Rig().seed(pods=[plain], requests=[fraction_request("p", "g1")])
    allocate(rig, "GPU-1")
    rig.run()
    assert rig.status()["reason"] == (
        "plugin gpusharing failed in PreBind: "
        "no desired configmap name found in pod ns/p annotations"
    )

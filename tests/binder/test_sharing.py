"""Pods that share a GPU: reservation, labels, config maps, and what happens when things go wrong."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from binder.reservations.body import reservation_body
from kube.errors import ServerError
from kube.objects.meta import convert
from kube.objects.pod import Pod
from kube.resources import BINDREQUESTS, CONFIGMAPS, NODES, PODS
from tests.binder.objects import Harness, fraction_pod, fraction_request, pod, request

RESERVATIONS = "kai-resource-reservation"


def allocate(harness: Harness, *devices: str) -> None:
    """Act as the process in each new reservation pod: while the binder waits, write the device into an annotation."""
    free_devices = list(devices)

    def annotate() -> None:
        for name in harness.gateway.names(PODS, RESERVATIONS):
            body = harness.pod(name, RESERVATIONS)
            if (
                not body["metadata"].get("annotations", {}).get("run.ai/reserve_for_gpu_index")
                and free_devices
            ):
                annotated = {
                    "metadata": {
                        "annotations": {"run.ai/reserve_for_gpu_index": free_devices.pop(0)}
                    }
                }
                harness.gateway.patch(PODS, name, annotated, namespace=RESERVATIONS)

    harness.while_waiting.append(annotate)


def reservation_of(group: str) -> dict[str, Any]:
    """Return a reservation pod of a GPU group on node n1 that nobody created through a binder."""
    params = Harness().worker.params.reservation
    return reservation_body(convert(fraction_pod("x"), Pod), "n1", group, params)


def test_bound_fraction_pod_gets_a_device_a_label_of_its_group_and_config_maps() -> None:
    harness = Harness().seed(pods=[fraction_pod("p")], requests=[fraction_request("p", "g1")])
    allocate(harness, "GPU-1")
    harness.run()
    assert harness.status() == {"phase": "Succeeded"}
    assert harness.pod()["spec"]["nodeName"] == "n1"
    assert harness.pod()["metadata"]["labels"] == {"runai-gpu-group": "g1"}
    assert harness.pod()["metadata"]["annotations"]["received-resource-type"] == "Fraction"
    prefix = "p-abcdefg-shared-gpu-0"
    assert harness.gateway.names(CONFIGMAPS, "ns") == [prefix, f"{prefix}-evar"]
    capabilities = harness.gateway.raw(CONFIGMAPS, prefix, "ns")
    assert capabilities["data"] == {
        "GPU_PORTION": "0.50",
        "RUNAI_NUM_OF_GPUS": "0.50",
        "NVIDIA_VISIBLE_DEVICES": "GPU-1",
    }
    assert capabilities["metadata"]["ownerReferences"][0]["uid"] == "uid-p"
    assert harness.gateway.raw(CONFIGMAPS, f"{prefix}-evar", "ns")["data"] == {}
    (name,) = harness.gateway.names(PODS, RESERVATIONS)
    assert name == "gpu-reservation-bb8a26907a9bbf15"
    reservation = harness.pod(name, RESERVATIONS)
    assert reservation["spec"]["nodeName"] == "n1"
    container = reservation["spec"]["containers"][0]
    assert container["resources"] == {
        "requests": {"nvidia.com/gpu": "1"},
        "limits": {"nvidia.com/gpu": "1"},
    }


def test_second_pod_of_a_group_uses_the_same_reservation() -> None:
    harness = Harness().seed(
        pods=[fraction_pod("a"), fraction_pod("b")],
        requests=[fraction_request("a", "g1"), fraction_request("b", "g1")],
    )
    allocate(harness, "GPU-1")
    harness.run()
    assert len(harness.gateway.names(PODS, RESERVATIONS)) == 1
    for name in "ab":
        data = harness.gateway.raw(CONFIGMAPS, f"{name}-abcdefg-shared-gpu-0", "ns")["data"]
        assert data["NVIDIA_VISIBLE_DEVICES"] == "GPU-1"


def test_several_devices_have_one_label_each() -> None:
    harness = Harness().seed(
        pods=[fraction_pod("p", devices=2)], requests=[fraction_request("p", "g1", "g2")]
    )
    allocate(harness, "GPU-1", "GPU-2")
    harness.run()
    assert harness.pod()["metadata"]["labels"] == {
        "runai-gpu-group/g1": "g1",
        "runai-gpu-group/g2": "g2",
    }
    data = harness.gateway.raw(CONFIGMAPS, "p-abcdefg-shared-gpu-0", "ns")["data"]
    assert data["NVIDIA_VISIBLE_DEVICES"] == "GPU-1,GPU-2"


def test_reservation_without_a_device_is_deleted_and_the_request_fails() -> None:
    harness = Harness().seed(pods=[fraction_pod("p")], requests=[fraction_request("p", "g1")]).run()
    assert harness.gateway.names(PODS, RESERVATIONS) == []
    assert harness.status()["phase"] == "Failed"
    assert "failed waiting for GPU reservation pod to allocate" in harness.status()["reason"]
    assert harness.pod()["metadata"].get("labels", {}) == {}


def test_failed_binding_removes_labels_config_maps_and_reservation() -> None:
    harness = Harness().seed(pods=[fraction_pod("p")], requests=[fraction_request("p", "g1")])
    allocate(harness, "GPU-1")
    harness.gateway.fail_next("bind", "pods", ServerError("no"))
    harness.run()
    assert harness.status()["phase"] == "Failed"
    assert harness.gateway.names(CONFIGMAPS, "ns") == []
    assert harness.pod()["metadata"]["labels"] == {}
    assert harness.gateway.names(PODS, RESERVATIONS) == []


def test_undoing_is_repeated_until_the_server_takes_it() -> None:
    harness = Harness().seed(pods=[fraction_pod("p")], requests=[fraction_request("p", "g1")])
    allocate(harness, "GPU-1")
    harness.gateway.fail_next("bind", "pods", ServerError("no"))
    harness.gateway.fail_next("delete", "configmaps", ServerError("busy"))
    harness.run()
    assert harness.status()["phase"] == "Failed"
    assert harness.gateway.names(CONFIGMAPS, "ns") == []
    assert harness.gateway.names(PODS, RESERVATIONS) == []


def test_reservation_is_deleted_with_its_last_user() -> None:
    harness = Harness().seed(pods=[fraction_pod("p")], requests=[fraction_request("p", "g1")])
    allocate(harness, "GPU-1")
    harness.run()
    harness.gateway.delete(PODS, "p", namespace="ns", grace_period_s=0)
    harness.run()
    assert harness.gateway.names(PODS, RESERVATIONS) == []


def test_reservation_stays_while_an_open_request_uses_its_group() -> None:
    harness = Harness().seed(pods=[reservation_of("g1")], requests=[fraction_request("late", "g1")])
    harness.watch()
    harness.worker.reservations.sync_all()
    assert len(harness.gateway.names(PODS, RESERVATIONS)) == 1
    harness.gateway.delete(BINDREQUESTS, "late", namespace="ns")
    harness.run()
    assert harness.gateway.names(PODS, RESERVATIONS) == []


def test_a_whole_gpu_is_not_bound_beside_a_reservation_whose_last_user_has_just_ended() -> None:
    harness = Harness().seed(pods=[fraction_pod("p")], requests=[fraction_request("p", "g1")])
    harness.gateway.patch(NODES, "n1", {"status": {"allocatable": {"nvidia.com/gpu": "1"}}})
    allocate(harness, "GPU-1")
    harness.run()
    harness.seed(pods=[whole_gpu_pod("w")], requests=[request("w")])
    harness.watch()
    status = {"status": {"phase": "Succeeded"}}
    harness.gateway.patch(PODS, "p", status, namespace="ns", sub="status")
    harness.work()
    assert harness.pod("w")["spec"]["nodeName"] == "n1"
    assert harness.gateway.names(PODS, RESERVATIONS) == []


def whole_gpu_pod(name: str) -> dict[str, Any]:
    whole = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    return pod(name, spec={"containers": [whole]})


def test_a_bind_does_not_ask_about_reservations_on_a_node_where_nothing_is_shared() -> None:
    harness = Harness().seed(pods=[whole_gpu_pod("w")], requests=[request("w")])
    harness.watch()
    harness.gateway.fail_next("list", "pods", ServerError("a list was requested"))
    harness.work()
    assert harness.pod("w")["spec"]["nodeName"] == "n1"


def test_a_reservation_that_no_watch_has_shown_makes_room_after_the_next_sync() -> None:
    harness = Harness()
    harness.gateway.patch(NODES, "n1", {"status": {"allocatable": {"nvidia.com/gpu": "1"}}})
    harness.seed(pods=[whole_gpu_pod("w")], requests=[request("w")])
    harness.watch()
    body = reservation_of("g1")
    body["spec"]["nodeName"] = "n1"
    harness.seed(pods=[body])
    harness.worker.reservations.sync_all()
    harness.work()
    assert harness.pod("w")["spec"]["nodeName"] == "n1"
    assert harness.gateway.names(PODS, RESERVATIONS) == []


def test_running_user_without_a_reservation_is_deleted() -> None:
    labels = {"labels": {"runai-gpu-group": "g1"}}
    orphan = pod("orphan", node="n1", metadata=labels, phase="Running")
    waiting = pod("waiting", metadata={"labels": {"runai-gpu-group": "g2"}})
    harness = Harness().seed(pods=[orphan, waiting])
    harness.watch()
    harness.worker.reservations.sync_all()
    assert "deletionTimestamp" in harness.pod("orphan")["metadata"]
    assert "deletionTimestamp" not in harness.pod("waiting")["metadata"]


def test_fraction_without_groups_is_deleted_not_failed() -> None:
    harness = Harness().seed(pods=[fraction_pod("p")], requests=[fraction_request("p")]).run()
    assert harness.gateway.names(BINDREQUESTS, "ns") == []
    assert harness.condition("PodBound")["message"] == (
        "Failed to bind pod ns/p to node n1: "
        "no SelectedGPUGroups for fractional pod: invalid binding request"
    )


def test_no_reservation_is_created_while_the_cluster_scales_up() -> None:
    scaling = pod("scale", metadata={"namespace": "kai-scale-adjust"})
    harness = (
        Harness()
        .seed(pods=[scaling, fraction_pod("p")], requests=[fraction_request("p", "g1")])
        .run()
    )
    assert harness.status()["reason"].endswith(
        "cluster is scaling up, could not create reservation pod"
    )


def _bound_reservation(*, node_labels: dict[str, str]) -> dict[str, Any]:
    harness = Harness().seed(pods=[fraction_pod("p")], requests=[fraction_request("p", "g1")])
    harness.gateway.patch(NODES, "n1", {"metadata": {"labels": node_labels}})
    allocate(harness, "GPU-1")
    harness.run()
    (name,) = harness.gateway.names(PODS, RESERVATIONS)
    return harness.pod(name, RESERVATIONS)


def test_reservation_pod_refuses_disruption_and_has_its_own_name_in_its_environment() -> None:
    reservation = _bound_reservation(node_labels={})
    assert reservation["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"] == "true"
    assert reservation["metadata"]["labels"] == {
        "app": "kai-resource-reservation",
        "runai-gpu-group": "g1",
    }
    assert reservation["spec"]["serviceAccountName"] == "kai-resource-reservation"
    (container,) = reservation["spec"]["containers"]
    assert container["image"] == "registry/local/kai-scheduler/resource-reservation"
    assert "args" not in container
    assert container["env"] == [
        {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
    ]


def test_reservation_pod_runs_sleep_where_gpus_are_simulated() -> None:
    (container,) = _bound_reservation(node_labels={"run.ai/fake.gpu": "true"})["spec"]["containers"]
    assert (container["image"], container["args"]) == ("ubuntu", ["sleep", "infinity"])


def test_fraction_pod_without_a_config_map_name_fails_and_says_so() -> None:
    plain = pod("p", metadata={"annotations": {"gpu-fraction": "0.5"}})
    harness = Harness().seed(pods=[plain], requests=[fraction_request("p", "g1")])
    allocate(harness, "GPU-1")
    harness.run()
    assert harness.status()["reason"] == (
        "plugin gpusharing failed in PreBind: "
        "no desired configmap name found in pod ns/p annotations"
    )


def test_a_label_left_by_an_interrupted_attempt_keeps_no_reservation() -> None:
    labelled = pod("left", metadata={"labels": {"runai-gpu-group": "g1"}})
    harness = Harness().seed(pods=[reservation_of("g1"), labelled])
    harness.watch()
    harness.worker.reservations.sync_all()
    assert harness.gateway.names(PODS, RESERVATIONS) == []


def test_a_reservation_stays_when_its_user_was_bound_but_the_watch_has_not_shown_it() -> None:
    labelled = pod("late", metadata={"labels": {"runai-gpu-group": "g1"}})
    harness = Harness().seed(pods=[reservation_of("g1"), labelled])
    harness.watch()
    harness.gateway.bind("ns", "late", pod_uid="uid-late", node="n1")
    harness.worker.reservations.sync_all()
    assert len(harness.gateway.names(PODS, RESERVATIONS)) == 1


@pytest.mark.parametrize("binders", [1, 2])
def test_sixteen_half_gpu_pods_at_once_reserve_eight_devices(binders: int) -> None:
    """Several threads and one or two binder processes; nothing is created twice or deleted in between."""
    names = [f"p{index}" for index in range(16)]
    first = Harness().seed(
        pods=[fraction_pod(name) for name in names],
        requests=[fraction_request(name, f"g{index // 2}") for index, name in enumerate(names)],
    )
    harnesses = [first, *(Harness(first.gateway) for _ in range(binders - 1))]
    for number, harness in enumerate(harnesses):
        allocate(harness, *(f"GPU-{number}-{index}" for index in range(16)))
    for _ in range(3):
        for harness in harnesses:
            harness.watch()
            harness.worker.sweep()
        with ThreadPoolExecutor(4 * binders) as pool:
            futures = [pool.submit(harness.work) for harness in harnesses for _ in range(4)]
            for future in futures:
                future.result()
        for harness in harnesses:
            harness.watch()
            harness.worker.reservations.sync_all()
    assert {first.status(name)["phase"] for name in names} == {"Succeeded"}
    reservations = [
        first.pod(name, RESERVATIONS) for name in first.gateway.names(PODS, RESERVATIONS)
    ]
    assert len(reservations) == 8
    created = [call for call in first.gateway.calls if call[0] == "create" and call[1] == "pods"]
    assert len({call[2] for call in created}) == 8
    assert not [call for call in first.gateway.calls if call[0] == "delete"]
    users = Counter(first.pod(name)["metadata"]["labels"]["runai-gpu-group"] for name in names)
    assert set(users.values()) == {2}

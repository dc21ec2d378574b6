"""The timetable of the simulated kubelets."""

from __future__ import annotations

import threading

from kube.errors import InvalidError, NotFoundError, ServerError
from kube.objects.meta import convert
from kube.objects.node import Node
from kube.resources import PODS
from sandbox.nodes import podhints
from sandbox.nodes.devices import device_id
from sandbox.nodes.kubelet import RETRY_S, DueAction, KubeletRunner, Kubelets, PodAction
from sandbox.nodes.simpod import GPU, RESERVED_DEVICE, SimPod
from tests.fakes.gateway import FakeGateway
from tests.sandbox.simulators.pods import NOW, running, sim_pod


def kubelets(gpus: int = 8) -> Kubelets:
    made = Kubelets()
    made.node_seen(node("n1", gpus))
    return made


def node(name: str, gpus: int) -> Node:
    return convert({"metadata": {"name": name}, "status": {"allocatable": {GPU: str(gpus)}}}, Node)


def deeds(steps: list[DueAction]) -> list[tuple[PodAction, str]]:
    return [(step.action, step.pod.metadata.name) for step in steps]


def test_bound_pod_starts_at_once() -> None:
    made = kubelets()
    made.pod_seen(sim_pod("a"), NOW)
    assert deeds(made.due(NOW)) == [(PodAction.START, "a")]
    assert made.due(NOW + 100) == []


def test_unbound_pod_is_left_alone() -> None:
    made = kubelets()
    made.pod_seen(sim_pod("a", node=""), NOW)
    assert made.next_due() is None


def test_start_delay_postpones_the_start() -> None:
    made = kubelets()
    made.pod_seen(sim_pod("a", annotations={podhints.START_DELAY: "5s"}), NOW)
    assert made.next_due() == NOW + 5
    assert made.due(NOW + 4.9) == []
    assert deeds(made.due(NOW + 5)) == [(PodAction.START, "a")]


def test_other_changes_do_not_start_a_pod_twice() -> None:
    made = kubelets()
    made.pod_seen(sim_pod("a"), NOW)
    (step,) = made.due(NOW)
    made.pod_seen(sim_pod("a", labels={"changed": "yes"}), NOW)
    assert made.due(NOW) == []
    made.done(step)
    made.pod_seen(running("a"), NOW)
    assert made.due(NOW + 1000) == []


def test_running_pod_ends_after_its_duration_from_its_start() -> None:
    made = kubelets()
    made.pod_seen(running("a", annotations={podhints.DURATION: "1m30s"}), NOW + 60)
    assert made.next_due() == NOW + 90
    assert deeds(made.due(NOW + 90)) == [(PodAction.FINISH, "a")]


def test_sleep_command_counts_as_a_duration() -> None:
    made = kubelets()
    made.pod_seen(running("a", command=["sleep", "20"]), NOW)
    assert made.next_due() == NOW + 20


def test_sleep_command_of_a_pod_that_always_restarts_does_not_end_it() -> None:
    made = kubelets()
    made.pod_seen(running("a", command=["sleep", "20"], restart="Always"), NOW)
    assert made.next_due() is None


def test_failing_container_is_restarted_on_failure() -> None:
    made = kubelets()
    hints = {podhints.DURATION: "10s", podhints.EXIT_CODE: "2"}
    made.pod_seen(running("a", restart="OnFailure", annotations=hints), NOW)
    assert deeds(made.due(NOW + 10)) == [(PodAction.RESTART, "a")]


def test_restarted_container_runs_its_duration_again() -> None:
    made = kubelets()
    hints = {podhints.DURATION: "10s", podhints.EXIT_CODE: "2"}
    pod = sim_pod(
        "a",
        phase="Running",
        restart="OnFailure",
        annotations=hints,
        status={
            "startTime": "2026-01-01T00:00:00Z",
            "containerStatuses": [{"name": "main", "restartCount": 1}],
        },
    )
    made.pod_seen(pod, NOW + 10)
    assert made.next_due() == NOW + 20


def test_deleted_pod_is_removed_after_its_shutdown() -> None:
    made = kubelets()
    pod = running(
        "a",
        annotations={podhints.SHUTDOWN: "10s"},
        deletionTimestamp="2026-01-01T00:00:30Z",
        deletionGracePeriodSeconds=30,
    )
    made.pod_seen(pod, NOW)
    assert made.next_due() == NOW + 10
    made.pod_seen(pod, NOW + 5)
    assert deeds(made.due(NOW + 10)) == [(PodAction.REMOVE, "a")]


def test_shutdown_is_cut_by_the_grace_period() -> None:
    made = kubelets()
    pod = running(
        "a",
        annotations={podhints.SHUTDOWN: "10m"},
        deletionTimestamp="2026-01-01T00:00:05Z",
        deletionGracePeriodSeconds=5,
    )
    made.pod_seen(pod, NOW)
    assert made.next_due() == NOW + 5


def test_deletion_overrules_a_planned_end() -> None:
    made = kubelets()
    made.pod_seen(running("a", annotations={podhints.DURATION: "1h"}), NOW)
    made.pod_seen(
        running(
            "a",
            annotations={podhints.DURATION: "1h"},
            deletionTimestamp="2026-01-01T00:00:00Z",
            deletionGracePeriodSeconds=0,
        ),
        NOW,
    )
    assert deeds(made.due(NOW)) == [(PodAction.REMOVE, "a")]
    assert made.due(NOW + 4000) == []


def test_overbooked_node_refuses_the_pod_and_takes_the_next() -> None:
    made = kubelets(gpus=2)
    made.pod_seen(running("holder", gpus=1), NOW)
    made.pod_seen(sim_pod("big", gpus=2), NOW)
    made.pod_seen(sim_pod("small", gpus=1), NOW)
    refused, started = made.due(NOW)
    assert (refused.action, refused.pod.metadata.name) == (PodAction.REFUSE, "big")
    assert "Requested: 2, Available: 1" in refused.message
    assert (started.action, started.pod.metadata.name) == (PodAction.START, "small")


def test_finished_and_gone_pods_give_their_devices_back() -> None:
    made = kubelets(gpus=2)
    made.pod_seen(running("a", gpus=1), NOW)
    made.pod_seen(running("b", gpus=1), NOW)
    made.pod_seen(sim_pod("a", gpus=1, phase="Succeeded"), NOW)
    made.pod_gone(running("b", gpus=1))
    made.pod_seen(sim_pod("c", gpus=2), NOW)
    assert deeds(made.due(NOW)) == [(PodAction.START, "c")]


def test_reservation_pod_is_told_a_free_device() -> None:
    made = kubelets(gpus=2)
    made.pod_seen(sim_pod("whole", gpus=1), NOW)
    made.pod_seen(sim_pod("r", gpus=1, labels={"app": "kai-resource-reservation"}), NOW)
    whole, reservation = made.due(NOW)
    assert (whole.device, reservation.device) == ("", device_id("n1", GPU, 1))


def test_after_a_restart_reserved_devices_stay_with_their_pods() -> None:
    made = kubelets(gpus=2)
    reserved = device_id("n1", GPU, 0)
    listed = [
        running("whole", gpus=1, creationTimestamp="2025-01-01T00:00:00Z"),
        running(
            "r",
            gpus=1,
            labels={"app": "kai-resource-reservation"},
            annotations={RESERVED_DEVICE: reserved},
        ),
    ]
    made.pods_listed(listed, NOW)
    made.pod_gone(listed[0])
    made.pod_seen(sim_pod("new", gpus=1, labels={"app": "kai-resource-reservation"}), NOW)
    (step,) = made.due(NOW)
    assert step.device == device_id("n1", GPU, 1)


def test_relist_forgets_pods_that_are_gone() -> None:
    made = kubelets(gpus=1)
    made.pods_listed([running("a", gpus=1)], NOW)
    made.pods_listed([sim_pod("b", gpus=1)], NOW)
    assert deeds(made.due(NOW)) == [(PodAction.START, "b")]


def test_deleted_node_takes_its_pods_along() -> None:
    made = kubelets()
    made.pod_seen(running("a"), NOW)
    made.node_gone("n1", NOW)
    assert deeds(made.due(NOW)) == [(PodAction.REMOVE, "a")]


def test_failed_write_is_tried_again() -> None:
    made = kubelets()
    made.pod_seen(sim_pod("a"), NOW)
    (step,) = made.due(NOW)
    made.failed(step, NOW)
    assert made.next_due() == NOW + RETRY_S
    assert deeds(made.due(NOW + RETRY_S)) == [(PodAction.START, "a")]


def runner(gateway: FakeGateway, *pods: SimPod) -> KubeletRunner:
    made = KubeletRunner(gateway, threading.Event(), on_fatal=lambda error: None, clock=lambda: NOW)
    made.kubelets.node_seen(node("n1", 8))
    for pod in pods:
        made.kubelets.pod_seen(pod, NOW)
    return made


def seeded(gateway: FakeGateway, name: str, **metadata: object) -> None:
    body = {
        "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}", **metadata},
        "spec": {"nodeName": "n1", "containers": [{"name": "main"}]},
        "status": {"phase": "Pending", "conditions": [{"type": "PodBound", "status": "True"}]},
    }
    gateway.seed(PODS, body)


def test_start_writes_a_running_status_and_keeps_other_conditions() -> None:
    gateway = FakeGateway()
    seeded(gateway, "a")
    made = runner(gateway, sim_pod("a"))
    for step in made.kubelets.due(NOW):
        made.perform(step)
    status = gateway.raw(PODS, "a", "ns")["status"]
    assert status["phase"] == "Running"
    assert status["startTime"] == "2026-01-01T00:00:00Z"
    assert status["podIP"].startswith("10.")
    assert {item["type"] for item in status["conditions"]} >= {"PodBound", "Ready", "Initialized"}
    assert gateway.calls == [("patch", "pods", "a")]


def test_reservation_writes_the_device_before_it_runs() -> None:
    gateway = FakeGateway()
    labels = {"app": "kai-resource-reservation"}
    seeded(gateway, "r", labels=labels)
    made = runner(gateway, sim_pod("r", gpus=1, labels=labels))
    for step in made.kubelets.due(NOW):
        made.perform(step)
    stored = gateway.raw(PODS, "r", "ns")
    assert stored["metadata"]["annotations"] == {RESERVED_DEVICE: device_id("n1", GPU, 0)}
    assert stored["status"]["phase"] == "Running"


def test_removal_deletes_without_grace() -> None:
    gateway = FakeGateway()
    seeded(gateway, "a")
    gateway.delete(PODS, "a", namespace="ns")
    pod = running("a", deletionTimestamp="2026-01-01T00:00:00Z", deletionGracePeriodSeconds=0)
    made = runner(gateway, pod)
    for step in made.kubelets.due(NOW):
        made.perform(step)
    assert gateway.names(PODS, "ns") == []


def test_temporary_error_puts_the_step_back_and_a_refusal_does_not() -> None:
    gateway = FakeGateway()
    for name in ("a", "b", "c"):
        seeded(gateway, name)
    made = runner(gateway, sim_pod("a"), sim_pod("b"), sim_pod("c"))
    for error in (ServerError("down"), InvalidError("uid"), NotFoundError("gone")):
        gateway.fail_next("patch", "pods", error)
    for step in made.kubelets.due(NOW):
        made.perform(step)
    assert deeds(made.kubelets.due(NOW + RETRY_S)) == [(PodAction.START, "a")]

"""The timetable of the simulated kubelets."""

from __future__ import annotations

import threading

from kube.errors import InvalidError, NotFoundError, ServerError
from kube.keys import RESERVED_DEVICE
from kube.objects.meta import convert
from kube.objects.node import Node
from kube.resources import PODS
from sandbox.nodes import podhints
from sandbox.nodes.devices import device_id
from sandbox.nodes.kubelet import RETRY_S, DueAction, KubeletRunner, Kubelets, PodAction
from sandbox.nodes.simpod import GPU, SimPod
from tests.fakes.gateway import FakeGateway
from tests.sandbox.pods import NOW, running, sim_pod


def kubelets(gpus: int = 8) -> Kubelets:
    timetable = Kubelets()
    timetable.node_seen(node("n1", gpus))
    return timetable


def node(name: str, gpus: int) -> Node:
    return convert({"metadata": {"name": name}, "status": {"allocatable": {GPU: str(gpus)}}}, Node)


def actions(due: list[DueAction]) -> list[tuple[PodAction, str]]:
    return [(due_action.action, due_action.pod.metadata.name) for due_action in due]


def test_bound_pod_starts_at_once() -> None:
    timetable = kubelets()
    timetable.pod_seen(sim_pod("a"), NOW)
    assert actions(timetable.due(NOW)) == [(PodAction.START, "a")]
    assert timetable.due(NOW + 100) == []


def test_unbound_pod_is_left_alone() -> None:
    timetable = kubelets()
    timetable.pod_seen(sim_pod("a", node=""), NOW)
    assert timetable.next_due() is None


def test_start_delay_postpones_the_start() -> None:
    timetable = kubelets()
    timetable.pod_seen(sim_pod("a", annotations={podhints.START_DELAY: "5s"}), NOW)
    assert timetable.next_due() == NOW + 5
    assert timetable.due(NOW + 4.9) == []
    assert actions(timetable.due(NOW + 5)) == [(PodAction.START, "a")]


def test_other_changes_do_not_start_a_pod_twice() -> None:
    timetable = kubelets()
    timetable.pod_seen(sim_pod("a"), NOW)
    (step,) = timetable.due(NOW)
    timetable.pod_seen(sim_pod("a", labels={"changed": "yes"}), NOW)
    assert timetable.due(NOW) == []
    timetable.done(step)
    timetable.pod_seen(running("a"), NOW)
    assert timetable.due(NOW + 1000) == []


def test_a_late_report_of_the_time_before_the_start_does_not_cost_the_pod_its_end() -> None:
    """The watch reports the binder's condition after the start was written: the pod must still end."""
    timetable = kubelets()
    hints = {podhints.DURATION: "2s"}
    timetable.pod_seen(sim_pod("a", annotations=hints), NOW)
    (step,) = timetable.due(NOW)
    timetable.done(step)
    timetable.pod_seen(sim_pod("a", annotations=hints, labels={"changed": "yes"}), NOW)
    timetable.pod_seen(running("a", annotations=hints), NOW)
    assert timetable.due(NOW) == []
    assert actions(timetable.due(NOW + 2)) == [(PodAction.FINISH, "a")]


def test_a_restart_that_is_seen_before_its_answer_is_followed_by_the_next() -> None:
    timetable = kubelets()
    hints = {podhints.DURATION: "10s", podhints.EXIT_CODE: "2"}
    timetable.pod_seen(running("a", restart="OnFailure", annotations=hints), NOW)
    (step,) = timetable.due(NOW + 10)
    restarted = {
        "startTime": "2026-01-01T00:00:00Z",
        "containerStatuses": [{"name": "main", "restartCount": 1}],
    }
    timetable.pod_seen(
        sim_pod("a", phase="Running", restart="OnFailure", annotations=hints, status=restarted),
        NOW + 10,
    )
    timetable.done(step)
    assert actions(timetable.due(NOW + 20)) == [(PodAction.RESTART, "a")]


def test_running_pod_ends_after_its_duration_from_its_start() -> None:
    timetable = kubelets()
    timetable.pod_seen(running("a", annotations={podhints.DURATION: "1m30s"}), NOW + 60)
    assert timetable.next_due() == NOW + 90
    assert actions(timetable.due(NOW + 90)) == [(PodAction.FINISH, "a")]


def test_sleep_command_counts_as_a_duration() -> None:
    timetable = kubelets()
    timetable.pod_seen(running("a", command=["sleep", "20"]), NOW)
    assert timetable.next_due() == NOW + 20


def test_sleep_command_of_a_pod_that_always_restarts_does_not_end_it() -> None:
    timetable = kubelets()
    timetable.pod_seen(running("a", command=["sleep", "20"], restart="Always"), NOW)
    assert timetable.next_due() is None


def test_failing_container_is_restarted_on_failure() -> None:
    timetable = kubelets()
    hints = {podhints.DURATION: "10s", podhints.EXIT_CODE: "2"}
    timetable.pod_seen(running("a", restart="OnFailure", annotations=hints), NOW)
    assert actions(timetable.due(NOW + 10)) == [(PodAction.RESTART, "a")]


def test_restarted_container_runs_its_duration_again() -> None:
    timetable = kubelets()
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
    timetable.pod_seen(pod, NOW + 10)
    assert timetable.next_due() == NOW + 20


def test_deleted_pod_is_removed_after_its_shutdown() -> None:
    timetable = kubelets()
    pod = running(
        "a",
        annotations={podhints.SHUTDOWN: "10s"},
        deletionTimestamp="2026-01-01T00:00:30Z",
        deletionGracePeriodSeconds=30,
    )
    timetable.pod_seen(pod, NOW)
    assert timetable.next_due() == NOW + 10
    timetable.pod_seen(pod, NOW + 5)
    assert actions(timetable.due(NOW + 10)) == [(PodAction.REMOVE, "a")]


def test_shutdown_is_cut_by_the_grace_period() -> None:
    timetable = kubelets()
    pod = running(
        "a",
        annotations={podhints.SHUTDOWN: "10m"},
        deletionTimestamp="2026-01-01T00:00:05Z",
        deletionGracePeriodSeconds=5,
    )
    timetable.pod_seen(pod, NOW)
    assert timetable.next_due() == NOW + 5


def test_deletion_overrules_a_planned_end() -> None:
    timetable = kubelets()
    timetable.pod_seen(running("a", annotations={podhints.DURATION: "1h"}), NOW)
    timetable.pod_seen(
        running(
            "a",
            annotations={podhints.DURATION: "1h"},
            deletionTimestamp="2026-01-01T00:00:00Z",
            deletionGracePeriodSeconds=0,
        ),
        NOW,
    )
    assert actions(timetable.due(NOW)) == [(PodAction.REMOVE, "a")]
    assert timetable.due(NOW + 4000) == []


def test_overbooked_node_refuses_the_pod_and_takes_the_next() -> None:
    timetable = kubelets(gpus=2)
    timetable.pod_seen(running("holder", gpus=1), NOW)
    timetable.pod_seen(sim_pod("big", gpus=2), NOW)
    timetable.pod_seen(sim_pod("small", gpus=1), NOW)
    refused, started = timetable.due(NOW)
    assert (refused.action, refused.pod.metadata.name) == (PodAction.REFUSE, "big")
    assert "Requested: 2, Available: 1" in refused.message
    assert (started.action, started.pod.metadata.name) == (PodAction.START, "small")


def test_finished_and_gone_pods_give_their_devices_back() -> None:
    timetable = kubelets(gpus=2)
    timetable.pod_seen(running("a", gpus=1), NOW)
    timetable.pod_seen(running("b", gpus=1), NOW)
    timetable.pod_seen(sim_pod("a", gpus=1, phase="Succeeded"), NOW)
    timetable.pod_gone(running("b", gpus=1))
    timetable.pod_seen(sim_pod("c", gpus=2), NOW)
    assert actions(timetable.due(NOW)) == [(PodAction.START, "c")]


def test_a_reservation_pod_gets_a_free_device() -> None:
    timetable = kubelets(gpus=2)
    timetable.pod_seen(sim_pod("whole", gpus=1), NOW)
    timetable.pod_seen(sim_pod("r", gpus=1, labels={"app": "kai-resource-reservation"}), NOW)
    whole, reservation = timetable.due(NOW)
    assert (whole.device, reservation.device) == ("", device_id("n1", GPU, 1))


def test_after_a_restart_reserved_devices_stay_with_their_pods() -> None:
    timetable = kubelets(gpus=2)
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
    timetable.pods_listed(listed, NOW)
    timetable.pod_gone(listed[0])
    timetable.pod_seen(sim_pod("new", gpus=1, labels={"app": "kai-resource-reservation"}), NOW)
    (step,) = timetable.due(NOW)
    assert step.device == device_id("n1", GPU, 1)


def test_relist_forgets_pods_that_are_gone() -> None:
    timetable = kubelets(gpus=1)
    timetable.pods_listed([running("a", gpus=1)], NOW)
    timetable.pods_listed([sim_pod("b", gpus=1)], NOW)
    assert actions(timetable.due(NOW)) == [(PodAction.START, "b")]


def test_deleted_node_takes_its_pods_along() -> None:
    timetable = kubelets()
    timetable.pod_seen(running("a"), NOW)
    timetable.node_gone("n1", NOW)
    assert actions(timetable.due(NOW)) == [(PodAction.REMOVE, "a")]


def test_failed_write_is_tried_again() -> None:
    timetable = kubelets()
    timetable.pod_seen(sim_pod("a"), NOW)
    (step,) = timetable.due(NOW)
    timetable.failed(step, NOW)
    assert timetable.next_due() == NOW + RETRY_S
    assert actions(timetable.due(NOW + RETRY_S)) == [(PodAction.START, "a")]


def runner(gateway: FakeGateway, *pods: SimPod) -> KubeletRunner:
    kubelet_runner = KubeletRunner(
        gateway, threading.Event(), on_fatal=lambda error: None, clock=lambda: NOW
    )
    kubelet_runner.kubelets.node_seen(node("n1", 8))
    for pod in pods:
        kubelet_runner.kubelets.pod_seen(pod, NOW)
    return kubelet_runner


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
    kubelet_runner = runner(gateway, sim_pod("a"))
    for step in kubelet_runner.kubelets.due(NOW):
        kubelet_runner.perform(step)
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
    kubelet_runner = runner(gateway, sim_pod("r", gpus=1, labels=labels))
    for step in kubelet_runner.kubelets.due(NOW):
        kubelet_runner.perform(step)
    stored = gateway.raw(PODS, "r", "ns")
    assert stored["metadata"]["annotations"] == {RESERVED_DEVICE: device_id("n1", GPU, 0)}
    assert stored["status"]["phase"] == "Running"


def test_removal_deletes_without_grace() -> None:
    gateway = FakeGateway()
    seeded(gateway, "a")
    gateway.delete(PODS, "a", namespace="ns")
    pod = running("a", deletionTimestamp="2026-01-01T00:00:00Z", deletionGracePeriodSeconds=0)
    kubelet_runner = runner(gateway, pod)
    for step in kubelet_runner.kubelets.due(NOW):
        kubelet_runner.perform(step)
    assert gateway.names(PODS, "ns") == []


def test_temporary_error_puts_the_step_back_and_a_refusal_does_not() -> None:
    gateway = FakeGateway()
    for name in ("a", "b", "c"):
        seeded(gateway, name)
    kubelet_runner = runner(gateway, sim_pod("a"), sim_pod("b"), sim_pod("c"))
    for error in (ServerError("down"), InvalidError("uid"), NotFoundError("gone")):
        gateway.fail_next("patch", "pods", error)
    for step in kubelet_runner.kubelets.due(NOW):
        kubelet_runner.perform(step)
    assert actions(kubelet_runner.kubelets.due(NOW + RETRY_S)) == [(PodAction.START, "a")]

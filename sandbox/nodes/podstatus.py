"""The status that a kubelet reports for a pod, as strategic merge patches.

Conditions are merged by type, so those of the scheduler and the binder (`PodScheduled`, `PodBound`) are
not changed.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

from sandbox.nodes.simpod import SimContainer, SimPod
from sandbox.wallclock import timestamp

Status = dict[str, Any]
HOST_IP = "127.0.0.1"


def running(pod: SimPod, now: float) -> Status:
    """Return the status of a pod whose containers are all running and ready."""
    start_time = pod.status.start_time
    started_at = timestamp(now)
    ip = pod.status.pod_ip or (HOST_IP if pod.spec.host_network else pod_ip(pod.metadata.uid))
    state = {"running": {"startedAt": started_at}}
    status: Status = {
        "phase": "Running",
        "startTime": timestamp(start_time.timestamp()) if start_time else started_at,
        "hostIP": HOST_IP,
        "hostIPs": [{"ip": HOST_IP}],
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "conditions": [
            _condition(condition_type, True, started_at)
            for condition_type in (
                "PodReadyToStartContainers",
                "Initialized",
                "ContainersReady",
                "Ready",
            )
        ],
        "containerStatuses": [
            _container(container, state, ready=True, restarts=pod.restarts)
            for container in pod.spec.containers
        ],
    }
    if pod.spec.init_containers:
        status["initContainerStatuses"] = list(_init_statuses(pod, started_at))
    return status


def restarted(pod: SimPod, now: float) -> Status:
    """Return the status of a pod whose containers failed and were restarted."""
    restarted_at = timestamp(now)
    last_state = {"terminated": _terminated(pod, restarted_at)}
    return {
        "phase": "Running",
        "containerStatuses": [
            _container(
                container,
                {"running": {"startedAt": restarted_at}},
                ready=True,
                restarts=pod.restarts + 1,
                last_state=last_state,
            )
            for container in pod.spec.containers
        ],
    }


def finished(pod: SimPod, now: float) -> Status:
    """Return the status of a pod whose containers have ended, with the exit code that the pod simulates."""
    finished_at = timestamp(now)
    is_success = pod.exit_code() == 0
    reason = "PodCompleted" if is_success else "PodFailed"
    # A container has one state; the null removes the old one in the merge.
    state = {"running": None, "terminated": _terminated(pod, finished_at)}
    return {
        "phase": "Succeeded" if is_success else "Failed",
        "conditions": [
            _condition("ContainersReady", False, finished_at, reason),
            _condition("Ready", False, finished_at, reason),
        ],
        "containerStatuses": [
            _container(container, state, ready=False, restarts=pod.restarts)
            for container in pod.spec.containers
        ],
    }


def refused(reason: str, message: str, now: float) -> Status:
    """Return the status of a pod that the kubelet did not admit."""
    return {
        "phase": "Failed",
        "reason": reason,
        "message": f"Pod was rejected: {message}",
        "startTime": timestamp(now),
    }


def pod_ip(uid: str) -> str:
    """Return an address in 10.128.0.0/9 that depends only on the uid of the pod."""
    number = zlib.crc32(uid.encode())
    return f"10.{128 + (number >> 16) % 128}.{(number >> 8) % 256}.{1 + number % 254}"


def _init_statuses(pod: SimPod, time: str) -> Iterable[Status]:
    completed = {
        "terminated": {"exitCode": 0, "reason": "Completed", "startedAt": time, "finishedAt": time}
    }
    for container in pod.spec.init_containers:
        is_sidecar = container.restart_policy == "Always"
        state = {"running": {"startedAt": time}} if is_sidecar else completed
        yield _container(container, state, ready=True, restarts=0, started=is_sidecar)


def _terminated(pod: SimPod, finished_at: str) -> Status:
    code = pod.exit_code()
    start_time = pod.status.start_time
    return {
        "exitCode": code,
        "reason": "Completed" if code == 0 else "Error",
        "startedAt": timestamp(start_time.timestamp()) if start_time else finished_at,
        "finishedAt": finished_at,
    }


def _container(
    container: SimContainer,
    state: Status,
    *,
    ready: bool,
    restarts: int,
    started: bool | None = None,
    last_state: Status | None = None,
) -> Status:
    status: Status = {
        "name": container.name,
        "image": container.image,
        "imageID": f"sandbox://{container.image}",
        "containerID": "",
        "ready": ready,
        "started": ready if started is None else started,
        "restartCount": restarts,
        "state": state,
    }
    if last_state is not None:
        status["lastState"] = last_state
    return status


def _condition(condition_type: str, is_true: bool, time: str, reason: str = "") -> Status:
    condition: Status = {
        "type": condition_type,
        "status": "True" if is_true else "False",
        "lastTransitionTime": time,
    }
    if reason:
        condition["reason"] = reason
    return condition

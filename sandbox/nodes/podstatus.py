"""The status a kubelet reports for a pod, as strategic merge patches.

Conditions are merged by type, so what the scheduler and the binder wrote (`PodScheduled`, `PodBound`)
stays as it is.
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
    """All containers run and are ready."""
    started = pod.status.start_time
    at = timestamp(now)
    ip = pod.status.pod_ip or (HOST_IP if pod.spec.host_network else pod_ip(pod.metadata.uid))
    state = {"running": {"startedAt": at}}
    status: Status = {
        "phase": "Running",
        "startTime": timestamp(started.timestamp()) if started else at,
        "hostIP": HOST_IP,
        "hostIPs": [{"ip": HOST_IP}],
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "conditions": [
            _condition(kind, True, at)
            for kind in ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")
        ],
        "containerStatuses": [
            _container(item, state, ready=True, restarts=pod.restarts)
            for item in pod.spec.containers
        ],
    }
    if pod.spec.init_containers:
        status["initContainerStatuses"] = list(_init_statuses(pod, at))
    return status


def restarted(pod: SimPod, now: float) -> Status:
    """The containers ended with an error and were started again in place."""
    at = timestamp(now)
    last = {"terminated": _terminated(pod, at)}
    return {
        "phase": "Running",
        "containerStatuses": [
            _container(
                item,
                {"running": {"startedAt": at}},
                ready=True,
                restarts=pod.restarts + 1,
                last=last,
            )
            for item in pod.spec.containers
        ],
    }


def finished(pod: SimPod, now: float) -> Status:
    """All containers have ended; what the pod's exit code says decides how."""
    at = timestamp(now)
    is_success = pod.exit_code() == 0
    reason = "PodCompleted" if is_success else "PodFailed"
    # A container has one state: the null takes the old one out of the merge.
    ended = {"running": None, "terminated": _terminated(pod, at)}
    return {
        "phase": "Succeeded" if is_success else "Failed",
        "conditions": [
            _condition("ContainersReady", False, at, reason),
            _condition("Ready", False, at, reason),
        ],
        "containerStatuses": [
            _container(item, ended, ready=False, restarts=pod.restarts)
            for item in pod.spec.containers
        ],
    }


def refused(reason: str, message: str, now: float) -> Status:
    """The kubelet did not admit the pod: it ends before it started."""
    return {
        "phase": "Failed",
        "reason": reason,
        "message": f"Pod was rejected: {message}",
        "startTime": timestamp(now),
    }


def pod_ip(uid: str) -> str:
    """Return an address from 10.128.0.0/9 that depends only on the pod's uid."""
    number = zlib.crc32(uid.encode())
    return f"10.{128 + (number >> 16) % 128}.{(number >> 8) % 256}.{1 + number % 254}"


def _init_statuses(pod: SimPod, at: str) -> Iterable[Status]:
    done = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": at, "finishedAt": at}}
    for item in pod.spec.init_containers:
        is_sidecar = item.restart_policy == "Always"
        state = {"running": {"startedAt": at}} if is_sidecar else done
        yield _container(item, state, ready=True, restarts=0, started=is_sidecar)


def _terminated(pod: SimPod, at: str) -> Status:
    code = pod.exit_code()
    started = pod.status.start_time
    return {
        "exitCode": code,
        "reason": "Completed" if code == 0 else "Error",
        "startedAt": timestamp(started.timestamp()) if started else at,
        "finishedAt": at,
    }


def _container(
    container: SimContainer,
    state: Status,
    *,
    ready: bool,
    restarts: int,
    started: bool | None = None,
    last: Status | None = None,
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
    if last is not None:
        status["lastState"] = last
    return status


def _condition(kind: str, is_true: bool, at: str, reason: str = "") -> Status:
    condition: Status = {
        "type": kind,
        "status": "True" if is_true else "False",
        "lastTransitionTime": at,
    }
    if reason:
        condition["reason"] = reason
    return condition

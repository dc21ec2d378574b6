"""A second binder process beside the supervised one, stopped or killed while it works on shared GPUs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from binder.reservations.groups import groups_of
from binder.worker import SYNC_EVERY_S
from kube.client import connect
from kube.gateway import Gateway, Selectors
from kube.keys import BINDER_CLAIM
from kube.objects.bindrequest import BindRequest
from kube.objects.pod import Pod
from kube.resources import BINDREQUESTS, EVENTS, PODS
from tests.integration.process_kills import burst, end_burst
from tests.integration.stack import Stack, wait_until

PODS_AT_ONCE = 40
RESERVATIONS = "kai-resource-reservation"
HALF_GPU = {"gpu-fraction": "0.5"}


def interrupt_a_second_binder(
    stack: Stack, folder: Path, sign: signal.Signals, *, stopped_for_s: float = 0.0
) -> None:
    """Stop one of two binders amid its work, for longer than its claims count, and check what becomes of it.

    A binder stopped by SIGSTOP goes on after the other has done everything, and then must do nothing twice.

    Parameters
    ----------
    stopped_for_s : how long such a binder stands still at least
    """
    with closing(connect(stack.kubeconfig)) as cluster:
        _interrupt(stack, cluster, folder, sign, stopped_for_s)


def _interrupt(
    stack: Stack, cluster: Gateway, folder: Path, sign: signal.Signals, stopped_for_s: float
) -> None:
    name = f"two-binders-{sign.name.lower()}"
    burst(stack, f"{name}-first", 1, annotations=HALF_GPU)
    first = _wait_until_bound(cluster, f"{name}-first", 1, stack).popitem()[0]
    with _second_binder(stack, folder) as second:
        burst(stack, name, PODS_AT_ONCE, annotations=HALF_GPU)
        interrupted = _interrupt_amid_work(cluster, second, first, sign, stack)
        stopped_until = time.monotonic() + stopped_for_s
        finishers = _wait_until_bound(cluster, name, PODS_AT_ONCE, stack)
        assert finishers[first] >= len(interrupted), "the other binder takes over what was in work"
        if sign is signal.SIGSTOP:
            time.sleep(max(0.0, stopped_until - time.monotonic()))
            second.send_signal(signal.SIGCONT)
            _check_that_it_works_again(cluster, f"{name}-again", first, stack)
    _check_that_nothing_was_done_twice(cluster, name)
    if sign is signal.SIGSTOP:  # a dead process may have taken the events of its last pods with it
        wait_until(
            lambda: set(_announcements(cluster, name).values()) == {1},
            what="the event Bound of every pod",
            timeout_s=90,
            stack=stack,
        )
    verdict = stack.kaiweb("check_cluster")  # others may have left work that waits
    assert verdict.returncode == 0, verdict.stdout + verdict.stderr
    for job in (f"{name}-first", name):
        end_burst(stack, job)
    wait_until(
        lambda: _groups_of_reservations(cluster) == _groups_in_use(cluster),
        what="the end of all reservations without users",
        timeout_s=3 * SYNC_EVERY_S,
        stack=stack,
    )


@contextmanager
def _second_binder(stack: Stack, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    log = folder / "binder.log"
    environment = {
        **os.environ,
        "KAIWEB_HOME": str(folder),
        "KAIWEB_KUBECONFIG": str(stack.kubeconfig),
        "DJANGO_SETTINGS_MODULE": "kaiweb.settings.local",
        "PYTHONUNBUFFERED": "1",
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "kaiweb", "run_binder"],
            env=environment,
            stdout=output,
            stderr=output,
        )
    try:
        wait_until(
            lambda: "binder is ready" in log.read_text(),
            what="a second binder",
            timeout_s=90,
            stack=stack,
        )
        yield process
    finally:
        process.kill()
        process.wait()


def _interrupt_amid_work(
    cluster: Gateway,
    second: subprocess.Popen[bytes],
    first: str,
    sign: signal.Signals,
    stack: Stack,
) -> list[str]:
    """Stop the second binder while it has claimed requests that are not finished; return these."""

    def held() -> list[str]:
        return [
            request.key
            for request in _requests(cluster)
            if _holder(request) not in ("", first) and not request.status.phase
        ]

    def is_stopped_amid_work() -> bool:
        if not held():
            return False
        second.send_signal(signal.SIGSTOP)
        if held():
            return True
        second.send_signal(signal.SIGCONT)
        return False

    wait_until(
        is_stopped_amid_work,
        what="a claim of the second binder",
        timeout_s=60,
        every_s=0.01,
        stack=stack,
    )
    second.send_signal(sign)
    return held()


def _check_that_it_works_again(cluster: Gateway, name: str, first: str, stack: Stack) -> None:
    burst(stack, name, PODS_AT_ONCE // 2, annotations=HALF_GPU)
    finishers = _wait_until_bound(cluster, name, PODS_AT_ONCE // 2, stack)
    assert len(finishers) == 2, f"only one binder worked: {finishers}, the first is {first}"
    end_burst(stack, name)


def _wait_until_bound(cluster: Gateway, job: str, pods: int, stack: Stack) -> Counter[str]:
    """Wait until all requests of a job have succeeded; return how many each binder has claimed."""

    def finished() -> list[BindRequest]:
        return [
            request
            for request in _requests(cluster)
            if request.metadata.name.rpartition("-")[0] == job
            and request.status.phase == "Succeeded"
        ]

    wait_until(
        lambda: len(finished()) == pods,
        what=f"{pods} bound pods of {job}",
        timeout_s=120,
        stack=stack,
    )
    return Counter(map(_holder, finished()))


def _check_that_nothing_was_done_twice(cluster: Gateway, job: str) -> None:
    nodes = {request.spec.pod_name: request.spec.selected_node for request in _requests(cluster)}
    pods = _pods(cluster, job)
    assert {body["metadata"]["name"]: body["spec"].get("nodeName") for body in pods} == {
        body["metadata"]["name"]: nodes[body["metadata"]["name"]] for body in pods
    }
    assert max(_announcements(cluster, job).values()) == 1


def _announcements(cluster: Gateway, job: str) -> dict[str, int]:
    """Return how often each pod of a job was announced as bound."""
    counts: Counter[str] = Counter()
    for event in cluster.list(EVENTS, as_type=dict, namespace="burst").items:
        if event["reason"] == "Bound":
            counts[event["involvedObject"]["uid"]] += event.get("count") or 1
    return {
        body["metadata"]["name"]: counts[body["metadata"]["uid"]] for body in _pods(cluster, job)
    }


def _groups_of_reservations(cluster: Gateway) -> list[str]:
    holders = cluster.list(PODS, as_type=Pod, namespace=RESERVATIONS).items
    return sorted(group for holder in holders for group in groups_of(holder))


def _groups_in_use(cluster: Gateway) -> list[str]:
    """Return the groups of pods on nodes; other tests on the same cluster may have left some."""
    pods = cluster.list(PODS, as_type=Pod).items
    users = [
        pod
        for pod in pods
        if pod.spec.node_name and not pod.is_finished and pod.metadata.namespace != RESERVATIONS
    ]
    return sorted({group for pod in users for group in groups_of(pod)})


def _pods(cluster: Gateway, job: str) -> list[dict[str, Any]]:
    selectors = Selectors(labels=f"job-name={job}")
    return list(cluster.list(PODS, as_type=dict, namespace="burst", selectors=selectors).items)


def _requests(cluster: Gateway) -> list[BindRequest]:
    return list(cluster.list(BINDREQUESTS, as_type=BindRequest, namespace="burst").items)


def _holder(request: BindRequest) -> str:
    return request.metadata.annotations.get(BINDER_CLAIM, "")

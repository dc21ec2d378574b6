"""The simulated kubelets of all nodes: bound pods start, run for a while, end, or stop when deleted.

Not a kubelet and not a product: nothing is executed. One watch on bound pods feeds a timetable (what
is to happen to which pod, when); whatever is due is written by a few threads, because one patch at a
time could not follow a burst of thousands of bindings. Reservation pods (the ones that hold a GPU for
others to share) are told their device first, as the process inside a real one would do.

The timetable knows no clock and no network: `Kubelets` takes the time as an argument and returns
steps; `KubeletRunner` supplies both.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from kube import quantity
from kube.errors import KubeError, NotFoundError
from kube.gateway import EventType, Gateway, Listing, PatchType, WatchEvent
from kube.objects.node import Node
from kube.resources import NODES, PODS, Resource
from kube.watch import Reflector
from sandbox.nodes import podstatus
from sandbox.nodes.devices import DeviceBook, DevicesUnavailableError
from sandbox.nodes.simpod import GPU, RESERVED_DEVICE, SimPod

log = logging.getLogger(__name__)

WRITERS = 8
RETRY_S = 1.0


class Deed(StrEnum):
    """What a kubelet does to a pod."""

    START = "start"
    RESTART = "restart"
    FINISH = "finish"
    REFUSE = "refuse"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing to do now; `device` is what a reservation pod is told, `message` why it is refused."""

    deed: Deed
    pod: SimPod
    device: str = ""
    message: str = ""


@dataclass(slots=True)
class Kubelets:
    """The timetable: which pod is due for what, and which devices it holds.

    Not safe to share between threads; the runner holds its lock around every call.
    """

    devices: DeviceBook = field(default_factory=DeviceBook)
    _pods: dict[str, SimPod] = field(default_factory=dict)
    _planned: dict[str, tuple[float, Deed]] = field(default_factory=dict)
    _under_way: dict[str, Deed] = field(default_factory=dict)
    _heap: list[tuple[float, int, str, Deed]] = field(default_factory=list)
    _count: itertools.count[int] = field(default_factory=itertools.count)
    _nodes: set[str] = field(default_factory=set)

    def node_seen(self, node: Node) -> None:
        """Take over the devices a node offers."""
        counts = {
            name: quantity.to_units(amount)
            for name, amount in node.status.allocatable.items()
            if "/" in name
        }
        self._nodes.add(node.metadata.name)
        self.devices.set_capacity(node.metadata.name, counts)

    def node_gone(self, name: str, now: float) -> None:
        """Plan the removal of the pods that a deleted node leaves behind."""
        self._nodes.discard(name)
        self.devices.forget_node(name)
        for pod in self._pods.values():
            if pod.spec.node_name == name:
                self._plan(pod, Deed.REMOVE, now)

    def pods_listed(self, pods: Sequence[SimPod], now: float) -> None:
        """Take over a full list; pods that know their devices choose before those that do not."""
        listed = {pod.metadata.uid for pod in pods}
        for gone in [pod for uid, pod in self._pods.items() if uid not in listed]:
            self.pod_gone(gone)
        for pod in sorted(pods, key=_takes_first):
            self.pod_seen(pod, now)

    def pod_seen(self, pod: SimPod, now: float) -> None:
        """Take over the state of a bound pod and plan what comes next for it."""
        if not pod.spec.node_name:
            return
        uid = pod.metadata.uid
        self._pods[uid] = pod
        if pod.metadata.deletion_timestamp is not None:
            self._plan_removal(pod, now)
        elif pod.is_finished:
            self.devices.give_back(uid)
            self._planned.pop(uid, None)
        elif pod.status.phase == "Running":
            self._hold_again(pod)
            self._plan_end(pod, now)
        else:
            self._plan(pod, Deed.START, now + pod.start_delay_s())

    def pod_gone(self, pod: SimPod) -> None:
        """Forget a pod that the API server no longer has."""
        self._pods.pop(pod.metadata.uid, None)
        self._planned.pop(pod.metadata.uid, None)
        self.devices.give_back(pod.metadata.uid)

    def next_due(self) -> float | None:
        """Return when the earliest step is due, or None."""
        while self._heap and not self._is_current(self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def due(self, now: float) -> list[Step]:
        """Return the steps whose time has come, earliest first, and take them off the timetable."""
        steps = []
        while (at := self.next_due()) is not None and at <= now:
            _, _, uid, deed = heapq.heappop(self._heap)
            del self._planned[uid]
            self._under_way[uid] = deed
            steps.append(self._step(self._pods[uid], deed))
        return steps

    def done(self, step: Step) -> None:
        """Note that the write of a step has ended, well or not."""
        self._under_way.pop(step.pod.metadata.uid, None)

    def failed(self, step: Step, now: float) -> None:
        """Plan a step again whose write did not succeed, unless the pod is gone by now."""
        self.done(step)
        pod = self._pods.get(step.pod.metadata.uid)
        if pod is not None and pod.metadata.uid not in self._planned:
            deed = Deed.START if step.deed is Deed.REFUSE else step.deed
            self._plan(pod, deed, now + RETRY_S)

    def _plan_removal(self, pod: SimPod, now: float) -> None:
        _, deed = self._planned.get(pod.metadata.uid, (0.0, None))
        if deed is not Deed.REMOVE:
            self._plan(pod, Deed.REMOVE, now + pod.shutdown_s())

    def _plan_end(self, pod: SimPod, now: float) -> None:
        duration = pod.duration_s()
        if duration is None or pod.metadata.uid in self._planned:
            return
        started = pod.status.start_time
        began = started.timestamp() if started else now
        is_retried = pod.exit_code() != 0 and pod.spec.restart_policy == "OnFailure"
        # A container that was restarted begins its run anew; its pod keeps the first start time.
        end = began + duration * (1 + pod.restarts)
        self._plan(pod, Deed.RESTART if is_retried else Deed.FINISH, end)

    def _hold_again(self, pod: SimPod) -> None:
        """After a restart of the simulator: a running pod has its devices already."""
        uid = pod.metadata.uid
        if self.devices.holds(uid):
            return
        named = pod.metadata.annotations.get(RESERVED_DEVICE)
        if pod.is_reservation and named:
            self.devices.take_named(uid, pod.spec.node_name, GPU, named)
            return
        try:
            self.devices.take(uid, pod.spec.node_name, pod.device_requests())
        except DevicesUnavailableError as error:
            log.warning("pod %s runs without its devices: %s", pod.key, error)

    def _step(self, pod: SimPod, deed: Deed) -> Step:
        if deed is not Deed.START:
            return Step(deed=deed, pod=pod)
        uid = pod.metadata.uid
        named = pod.metadata.annotations.get(RESERVED_DEVICE, "")
        if self.devices.holds(uid):
            return Step(deed=deed, pod=pod, device=named)
        if pod.is_reservation and named:
            self.devices.take_named(uid, pod.spec.node_name, GPU, named)
            return Step(deed=deed, pod=pod, device=named)
        try:
            taken = self.devices.take(uid, pod.spec.node_name, pod.device_requests())
        except DevicesUnavailableError as error:
            return Step(deed=Deed.REFUSE, pod=pod, message=str(error))
        return Step(deed=deed, pod=pod, device=taken[0] if pod.is_reservation and taken else "")

    def _plan(self, pod: SimPod, deed: Deed, at: float) -> None:
        uid = pod.metadata.uid
        # Others change a bound pod too (conditions, annotations); that must not start it twice.
        if self._under_way.get(uid) is deed or self._planned.get(uid, (0.0, None))[1] is deed:
            return
        self._planned[uid] = (at, deed)
        heapq.heappush(self._heap, (at, next(self._count), uid, deed))

    def _is_current(self, entry: tuple[float, int, str, Deed]) -> bool:
        at, _, uid, deed = entry
        return self._planned.get(uid) == (at, deed)


def _takes_first(pod: SimPod) -> tuple[bool, bool, float, str]:
    has_name = RESERVED_DEVICE in pod.metadata.annotations
    return (not has_name, pod.status.phase != "Running", pod.metadata.created, pod.key)


@dataclass(slots=True)
class KubeletRunner:
    """Feeds the timetable from watches and writes what is due, until `stop` is set."""

    gateway: Gateway
    stop: threading.Event
    on_fatal: Callable[[KubeError], None]
    clock: Callable[[], float] = time.time
    kubelets: Kubelets = field(default_factory=Kubelets)
    _wake: threading.Condition = field(default_factory=threading.Condition)
    _have_nodes: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Run until stopped; returns when the last write is done."""
        Reflector(self.gateway, NODES, Node, self).start(self.stop, on_fatal=self.on_fatal)
        # Devices must be known before pods ask for them.
        while not self._have_nodes.wait(0.5):
            if self.stop.is_set():
                return
        Reflector(self.gateway, PODS, SimPod, self, field_selector="spec.nodeName!=").start(
            self.stop, on_fatal=self.on_fatal
        )
        with ThreadPoolExecutor(WRITERS, thread_name_prefix="kubelet") as pool:
            while not self.stop.is_set():
                for step in self._wait_for_due():
                    pool.submit(self.perform, step).add_done_callback(_report)

    def perform(self, step: Step) -> None:
        """Write one step to the API server; a failure puts it back on the timetable."""
        try:
            self._write(step)
        except NotFoundError:
            # Gone meanwhile; its deletion arrives by the watch.
            pass
        except KubeError as error:
            log.warning("%s of pod %s: %s", step.deed, step.pod.key, error)
            if error.permanent:
                # Refused, as for a namesake with another uid: asking again would not help.
                with self._wake:
                    self.kubelets.done(step)
                return
            with self._wake:
                self.kubelets.failed(step, self.clock())
            return
        with self._wake:
            self.kubelets.done(step)

    def replace(self, resource: Resource, listing: Listing[Any]) -> None:
        """Sink of the watches: a full list."""
        now = self.clock()
        with self._wake:
            if resource is PODS:
                self.kubelets.pods_listed(listing.items, now)
            else:
                for node in listing.items:
                    self.kubelets.node_seen(node)
                self._have_nodes.set()
            self._wake.notify()

    def apply(self, resource: Resource, event: WatchEvent[Any]) -> None:
        """Sink of the watches: one change."""
        if event.type is EventType.BOOKMARK:
            return
        now = self.clock()
        is_gone = event.type is EventType.DELETED
        with self._wake:
            if resource is PODS:
                if is_gone:
                    self.kubelets.pod_gone(event.object)
                else:
                    self.kubelets.pod_seen(event.object, now)
            elif is_gone:
                self.kubelets.node_gone(event.object.metadata.name, now)
            else:
                self.kubelets.node_seen(event.object)
            self._wake.notify()

    def _wait_for_due(self) -> list[Step]:
        with self._wake:
            due = self.kubelets.next_due()
            pause = 0.5 if due is None else min(0.5, max(0.0, due - self.clock()))
            if pause > 0:
                self._wake.wait(pause)
            return self.kubelets.due(self.clock())

    def _write(self, step: Step) -> None:
        now = self.clock()
        pod = step.pod
        match step.deed:
            case Deed.START:
                if step.device:
                    body = {"metadata": {"annotations": {RESERVED_DEVICE: step.device}}}
                    self._patch(pod, body, "")
                self._patch_status(pod, podstatus.running(pod, now))
            case Deed.RESTART:
                self._patch_status(pod, podstatus.restarted(pod, now))
            case Deed.FINISH:
                self._patch_status(pod, podstatus.finished(pod, now))
            case Deed.REFUSE:
                reason = "UnexpectedAdmissionError"
                self._patch_status(pod, podstatus.refused(reason, step.message, now))
            case Deed.REMOVE:
                self.gateway.delete(
                    PODS,
                    pod.metadata.name,
                    namespace=pod.metadata.namespace,
                    grace_period_s=0,
                    uid=pod.metadata.uid,
                )

    def _patch_status(self, pod: SimPod, status: podstatus.Status) -> None:
        # The uid makes the patch fail for a namesake that was created meanwhile.
        body = {"metadata": {"uid": pod.metadata.uid}, "status": status}
        self._patch(pod, body, "status")

    def _patch(self, pod: SimPod, body: dict[str, Any], sub: str) -> None:
        self.gateway.patch(
            PODS,
            pod.metadata.name,
            body,
            namespace=pod.metadata.namespace,
            sub=sub,
            patch_type=PatchType.STRATEGIC,
            field_manager="sandbox-kubelet",
        )


def _report(done: Future[None]) -> None:
    error = done.exception()
    if error is not None:
        log.error("kubelet step failed", exc_info=error)

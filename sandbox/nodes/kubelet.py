"""The simulated kubelets of all nodes: bound pods start, run for a while, end, or stop when deleted.

No container is executed. One watch on bound pods feeds a timetable: which action is due for which pod, and
when. Several threads write the due actions, because single patches one after the other would fall behind
a burst of thousands of bindings. A reservation pod (it holds a GPU that others share) gets an annotation
with its device before it runs; in a real cluster the process inside the pod writes it.

The timetable uses neither clock nor network: `Kubelets` takes the time as an argument and returns the due
actions, and `KubeletRunner` performs them.
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
from typing import Any, NamedTuple

from kube.errors import KubeError, NotFoundError
from kube.gateway import EventType, Gateway, Listing, PatchOptions, PatchType, WatchEvent
from kube.keys import RESERVED_DEVICE
from kube.objects.node import Node
from kube.resources import NODES, PODS, Resource
from kube.values import quantity
from kube.watch import Reflector
from sandbox.nodes import podstatus
from sandbox.nodes.devices import DeviceBook, DevicesUnavailableError
from sandbox.nodes.simpod import GPU, SimPod

log = logging.getLogger(__name__)

# Threads that write to the API server at the same time.
WRITERS = 8
RETRY_S = 1.0


class PodAction(StrEnum):
    """What a kubelet does with a pod."""

    START = "start"
    RESTART = "restart"
    FINISH = "finish"
    REFUSE = "refuse"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True, kw_only=True)
class DueAction:
    """An action that is due; `device` is for a reservation pod, `message` for a refused pod."""

    action: PodAction
    pod: SimPod
    device: str = ""
    message: str = ""


class _Step(NamedTuple):
    """One action on one run of a pod's containers; runs are counted by the restarts before them."""

    action: PodAction
    run: int = 0


@dataclass(slots=True)
class Kubelets:
    """The timetable of all bound pods, and the devices that they hold.

    Not thread-safe; the runner holds its lock during every call. Times are seconds since the epoch. The
    private dicts are keyed by pod uid.
    """

    devices: DeviceBook = field(default_factory=DeviceBook)
    _pods: dict[str, SimPod] = field(default_factory=dict)
    _planned: dict[str, tuple[float, _Step]] = field(default_factory=dict)
    _in_progress: dict[str, _Step] = field(default_factory=dict)
    #: What was written already: the watch may still report the pod as it was before, which must not repeat the step.
    _written: dict[str, set[_Step]] = field(default_factory=dict)
    #: (time, sequence number, pod uid, step); entries that differ from `_planned` are obsolete.
    _heap: list[tuple[float, int, str, _Step]] = field(default_factory=list)
    _sequence: itertools.count[int] = field(default_factory=itertools.count)

    def node_seen(self, node: Node) -> None:
        """Record the devices of a node."""
        counts = {
            name: quantity.to_units(amount)
            for name, amount in node.status.allocatable.items()
            if "/" in name
        }
        self.devices.set_capacity(node.metadata.name, counts)

    def node_gone(self, name: str, now: float) -> None:
        """Plan the removal of the pods of a deleted node."""
        self.devices.forget_node(name)
        for pod in self._pods.values():
            if pod.spec.node_name == name:
                self._plan(pod, _Step(PodAction.REMOVE), now)

    def pods_listed(self, pods: Sequence[SimPod], now: float) -> None:
        """Record all bound pods; pods that name their device take it before others get any."""
        uids = {pod.metadata.uid for pod in pods}
        for deleted in [pod for uid, pod in self._pods.items() if uid not in uids]:
            self.pod_gone(deleted)
        for pod in sorted(pods, key=_device_order):
            self.pod_seen(pod, now)

    def pod_seen(self, pod: SimPod, now: float) -> None:
        """Record the state of a bound pod and plan its next action."""
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
            self._restore_devices(pod)
            self._plan_end(pod, now)
        else:
            self._plan(pod, _Step(PodAction.START), now + pod.start_delay_s())

    def pod_gone(self, pod: SimPod) -> None:
        """Forget a deleted pod."""
        self._pods.pop(pod.metadata.uid, None)
        self._planned.pop(pod.metadata.uid, None)
        self._written.pop(pod.metadata.uid, None)
        self.devices.give_back(pod.metadata.uid)

    def next_due(self) -> float | None:
        """Return the time of the earliest action; None if none is planned."""
        while self._heap and not self._is_current(self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def due(self, now: float) -> list[DueAction]:
        """Return the due actions, earliest first, and remove them from the timetable."""
        due_actions = []
        while (due_at := self.next_due()) is not None and due_at <= now:
            _, _, uid, step = heapq.heappop(self._heap)
            del self._planned[uid]
            self._in_progress[uid] = step
            due_actions.append(self._due_action(self._pods[uid], step.action))
        return due_actions

    def done(self, due_action: DueAction) -> None:
        """Record that an action has been performed."""
        uid = due_action.pod.metadata.uid
        step = self._in_progress.pop(uid, None)
        if step is not None and uid in self._pods:
            self._written.setdefault(uid, set()).add(step)

    def given_up(self, due_action: DueAction) -> None:
        """Record that an action has failed and is not tried again."""
        self._in_progress.pop(due_action.pod.metadata.uid, None)

    def failed(self, due_action: DueAction, now: float) -> None:
        """Plan a failed action again, unless the pod is gone."""
        uid = due_action.pod.metadata.uid
        step = self._in_progress.pop(uid, None)
        pod = self._pods.get(uid)
        if step is not None and pod is not None and uid not in self._planned:
            self._plan(pod, step, now + RETRY_S)

    def _plan_removal(self, pod: SimPod, now: float) -> None:
        if not self._is_planned(pod, PodAction.REMOVE):
            self._plan(pod, _Step(PodAction.REMOVE), now + pod.shutdown_s())

    def _plan_end(self, pod: SimPod, now: float) -> None:
        if self._is_planned(pod, PodAction.REMOVE):
            return
        duration = pod.duration_s()
        if duration is None:
            if self._is_planned(pod, PodAction.START):
                del self._planned[pod.metadata.uid]
            return
        start_time = pod.status.start_time
        started_at = start_time.timestamp() if start_time else now
        is_retried = pod.exit_code() != 0 and pod.spec.restart_policy == "OnFailure"
        # Each restart adds one run of `duration`; the pod keeps the time of its first start.
        ends_at = started_at + duration * (1 + pod.restarts)
        action = PodAction.RESTART if is_retried else PodAction.FINISH
        self._plan(pod, _Step(action, pod.restarts), ends_at)

    def _restore_devices(self, pod: SimPod) -> None:
        """Record the devices of a running pod that an earlier process of the simulator started."""
        uid = pod.metadata.uid
        if self.devices.holds(uid):
            return
        device = pod.metadata.annotations.get(RESERVED_DEVICE)
        if pod.is_reservation and device:
            self.devices.take_named(uid, pod.spec.node_name, GPU, device)
            return
        try:
            self.devices.take(uid, pod.spec.node_name, pod.device_requests())
        except DevicesUnavailableError as error:
            log.warning("pod %s runs without its devices: %s", pod.key, error)

    def _due_action(self, pod: SimPod, action: PodAction) -> DueAction:
        if action is not PodAction.START:
            return DueAction(action=action, pod=pod)
        uid = pod.metadata.uid
        device = pod.metadata.annotations.get(RESERVED_DEVICE, "")
        if self.devices.holds(uid):
            return DueAction(action=action, pod=pod, device=device)
        if pod.is_reservation and device:
            self.devices.take_named(uid, pod.spec.node_name, GPU, device)
            return DueAction(action=action, pod=pod, device=device)
        try:
            devices = self.devices.take(uid, pod.spec.node_name, pod.device_requests())
        except DevicesUnavailableError as error:
            return DueAction(action=PodAction.REFUSE, pod=pod, message=str(error))
        return DueAction(
            action=action, pod=pod, device=devices[0] if pod.is_reservation and devices else ""
        )

    def _plan(self, pod: SimPod, step: _Step, due_at: float) -> None:
        uid = pod.metadata.uid
        # Other clients change bound pods, too (conditions, annotations); that must not start a pod twice.
        if self._in_progress.get(uid) == step or step in self._written.get(uid, ()):
            return
        if uid in self._planned and self._planned[uid][1] == step:
            return
        self._planned[uid] = (due_at, step)
        heapq.heappush(self._heap, (due_at, next(self._sequence), uid, step))

    def _is_planned(self, pod: SimPod, action: PodAction) -> bool:
        planned = self._planned.get(pod.metadata.uid)
        return planned is not None and planned[1].action is action

    def _is_current(self, entry: tuple[float, int, str, _Step]) -> bool:
        due_at, _, uid, step = entry
        return self._planned.get(uid) == (due_at, step)


def _device_order(pod: SimPod) -> tuple[bool, bool, float, str]:
    has_device = RESERVED_DEVICE in pod.metadata.annotations
    return (not has_device, pod.status.phase != "Running", pod.metadata.created, pod.key)


@dataclass(slots=True)
class KubeletRunner:
    """Feeds the timetable from watches (as their `Sink`) and performs the due actions, until `stop` is set."""

    gateway: Gateway
    stop: threading.Event
    on_fatal: Callable[[KubeError], None]
    clock: Callable[[], float] = time.time
    kubelets: Kubelets = field(default_factory=Kubelets)
    _wake: threading.Condition = field(default_factory=threading.Condition)
    _have_nodes: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Run until stopped, and return after the last write."""
        Reflector(self.gateway, NODES, Node, self).start(self.stop, on_fatal=self.on_fatal)
        # Nodes first, because their devices must be known before pods take them.
        while not self._have_nodes.wait(0.5):
            if self.stop.is_set():
                return
        Reflector(self.gateway, PODS, SimPod, self, field_selector="spec.nodeName!=").start(
            self.stop, on_fatal=self.on_fatal
        )
        with ThreadPoolExecutor(WRITERS, thread_name_prefix="kubelet") as pool:
            while not self.stop.is_set():
                for due_action in self._wait_for_due():
                    pool.submit(self.perform, due_action).add_done_callback(_log_error)

    def perform(self, due_action: DueAction) -> None:
        """Write one action to the API server; plan it again if that failed."""
        try:
            self._write(due_action)
        except NotFoundError:
            # The pod was deleted meanwhile: the action is done, and the watch will report the deletion.
            pass
        except KubeError as error:
            log.warning("%s of pod %s: %s", due_action.action, due_action.pod.key, error)
            if error.permanent:
                # A retry cannot succeed, e.g. because a new pod has the same name and another uid.
                with self._wake:
                    self.kubelets.given_up(due_action)
                return
            with self._wake:
                self.kubelets.failed(due_action, self.clock())
            return
        with self._wake:
            self.kubelets.done(due_action)

    def replace(self, resource: Resource, listing: Listing[Any]) -> None:
        """Record a full list of nodes or pods from a watch."""
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
        """Record one change of a node or pod from a watch."""
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

    def _wait_for_due(self) -> list[DueAction]:
        with self._wake:
            due_at = self.kubelets.next_due()
            pause = 0.5 if due_at is None else min(0.5, max(0.0, due_at - self.clock()))
            if pause > 0:
                self._wake.wait(pause)
            return self.kubelets.due(self.clock())

    def _write(self, due_action: DueAction) -> None:
        now = self.clock()
        pod = due_action.pod
        match due_action.action:
            case PodAction.START:
                if due_action.device:
                    body = {"metadata": {"annotations": {RESERVED_DEVICE: due_action.device}}}
                    self._patch(pod, body, "")
                self._patch_status(pod, podstatus.running(pod, now))
            case PodAction.RESTART:
                self._patch_status(pod, podstatus.restarted(pod, now))
            case PodAction.FINISH:
                self._patch_status(pod, podstatus.finished(pod, now))
            case PodAction.REFUSE:
                reason = "UnexpectedAdmissionError"
                self._patch_status(pod, podstatus.refused(reason, due_action.message, now))
            case PodAction.REMOVE:
                self.gateway.delete(
                    PODS,
                    pod.metadata.name,
                    namespace=pod.metadata.namespace,
                    grace_period_s=0,
                    uid=pod.metadata.uid,
                )

    def _patch_status(self, pod: SimPod, status: podstatus.Status) -> None:
        # With the uid, the patch fails if a new pod of the same name exists now.
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
            options=PatchOptions(field_manager="sandbox-kubelet"),
        )


def _log_error(future: Future[None]) -> None:
    error = future.exception()
    if error is not None:
        log.error("a kubelet action failed", exc_info=error)

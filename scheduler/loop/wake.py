"""Decide which changes start a cycle at once, and join a burst of them into one wake-up.

A cycle's own writes come back as changes too. If those started the next cycle, a cluster with one pending pod
would run cycles all the time. So each object has a short summary of what can change a decision, and only a
new summary starts a cycle.

A change of a queue decides nothing while no pod waits for a node. It is then left to the next tick, so that the
creation of thousands of queues costs a cycle a second and not one for each queue.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from kube.gateway import EventType
from kube.keys import POD_GROUP
from kube.objects.meta import KubeObject
from kube.objects.node import Node
from kube.objects.pod import Pod
from kube.objects.podgroup import PodGroup
from kube.objects.queue import Queue
from kube.resources import Resource
from scheduler.settings.watched import WATCHED

#: How long further changes are collected; the shorter one after a time without a wake-up, when few are to be expected.
PAUSE_S, CALM_PAUSE_S = 0.02, 0.01
CALM_S = 0.5


def summary(value: KubeObject) -> object:
    """Return what of an object can change a decision."""
    if isinstance(value, Pod):
        meta = value.metadata
        group = meta.annotations.get(POD_GROUP, "")
        is_over = value.is_finished or meta.deletion_timestamp is not None
        return (meta.uid, group, bool(value.spec.scheduling_gates), is_over)
    if isinstance(value, Node):
        ready = value.condition("Ready")
        return (
            value.spec,
            value.metadata.labels,
            value.status.allocatable,
            ready.status if ready else "",
        )
    if isinstance(value, (PodGroup, Queue)):
        return (value.spec, value.metadata.labels)
    return value.metadata.resource_version


def waits_for_node(pod: Pod) -> bool:
    """Return whether a cycle may try to place a pod."""
    meta = pod.metadata
    return bool(meta.annotations.get(POD_GROUP)) and not (
        pod.spec.node_name
        or pod.spec.scheduling_gates
        or pod.is_finished
        or meta.deletion_timestamp is not None
    )


@dataclass(slots=True)
class Waker:
    """Listens to a store and calls `wake` soon after something that matters.

    Parameters
    ----------
    wake : asks for a cycle; called from one thread only, not more often than every `pause_s`
    """

    wake: Callable[[], object]
    pause_s: float = PAUSE_S
    #: (Kind, key) -> the part of the object that can change a decision.
    _known: dict[tuple[str, str], object] = field(default_factory=dict)
    calm_pause_s: float = CALM_PAUSE_S
    #: Key of a pod that waits for a node -> key of its pod group.
    _waiting: dict[str, str] = field(default_factory=dict)
    _due: threading.Event = field(default_factory=threading.Event)
    _stop: threading.Event = field(default_factory=threading.Event)
    _kinds: frozenset[Resource] = frozenset(item.resource for item in WATCHED if item.wakes)

    def on_change(self, resource: Resource, event: EventType, value: Any) -> None:
        """Handle a change of the store."""
        if resource not in self._kinds:
            return
        if isinstance(value, Pod):
            self._follow(event, value)
        is_new = (resource.plural, value.key) not in self._known
        if self.matters(resource, event, value) and self._is_urgent(value, is_new=is_new):
            self._due.set()

    def follow(self, pods: Iterable[Pod]) -> None:
        """Note the pods that wait before the first change; call it after the subscription to the store."""
        for pod in pods:
            self._follow(EventType.ADDED, pod)

    def _follow(self, event: EventType, pod: Pod) -> None:
        if event is not EventType.DELETED and waits_for_node(pod):
            meta = pod.metadata
            self._waiting[pod.key] = f"{meta.namespace}/{meta.annotations[POD_GROUP]}"
        else:
            self._waiting.pop(pod.key, None)

    def _is_urgent(self, value: Any, *, is_new: bool) -> bool:
        """Return whether a change that matters is worth a cycle before the next tick.

        A new pod group comes a moment before its pods name it, so the pods wake.
        """
        if isinstance(value, PodGroup) and is_new:
            return self._due.is_set() or value.key in self._waiting.values()
        return bool(self._waiting) or not isinstance(value, (PodGroup, Queue))

    def matters(self, resource: Resource, event: EventType, value: Any) -> bool:
        """Return whether a change may change a decision."""
        key = (resource.plural, value.key)
        if event is EventType.DELETED:
            self._known.pop(key, None)
            return True
        current = summary(value)
        if self._known.get(key, _UNKNOWN) == current:
            return False
        self._known[key] = current
        if isinstance(value, Pod):
            return bool(value.spec.node_name or value.metadata.annotations.get(POD_GROUP))
        return True

    def start(self) -> None:
        threading.Thread(target=self._run, name="wake", daemon=True).start()

    def stop(self) -> None:
        self._stop.set()
        self._due.set()

    def _run(self) -> None:
        woken_at = float("-inf")
        while True:
            self._due.wait()
            if self._stop.is_set():
                return
            is_calm = time.monotonic() - woken_at > CALM_S
            # Changes that arrive meanwhile belong to the same cycle.
            time.sleep(self.calm_pause_s if is_calm else self.pause_s)
            woken_at = time.monotonic()
            self._due.clear()
            self.wake()


_UNKNOWN = object()

"""Verdicts become events and conditions, and only the changes are written.

Every cycle says the same about a pod that waits; writing it every second would drown the cluster. Events
are counted by the recorder. Conditions are compared with what the object carries and with what this
worker wrote last, because the watch may not have brought that back yet.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import floor
from typing import Any

from kube.errors import ConflictError, KubeError, NotFoundError, UnauthorizedError
from kube.events import NORMAL, WARNING, Recorder, event_about
from kube.gateway import Gateway, PatchType
from kube.keys import LAST_EVICTION, LAST_START, REASON_CODE, STALE_SINCE
from kube.objects.meta import as_body
from kube.objects.pod import Pod
from kube.objects.podgroup import PodGroup
from kube.resources import PODGROUPS, PODS
from kube.times import format_time, time_or_none
from queues.workloads.conditions import latest_condition, pool_of, transition_number
from scheduler.core.decisions import GroupMarks
from scheduler.explain.verdicts import GroupVerdict, PodVerdict, Reason
from scheduler.load.build import Snapshot
from scheduler.load.podgroups import UNSCHEDULABLE_ON_POOL
from scheduler.settings.params import ShardParams

log = logging.getLogger(__name__)
REMEMBERED = 50_000
BACK_OFF_AT_ONCE = 1
UNSCHEDULABLE = "Unschedulable"
# Reasons that more nodes would not cure.
HELD_BY_QUEUE = frozenset({"OverLimit", "NonPreemptibleOverQuota"})


@dataclass(slots=True)
class StatusWriter:
    """Writes what a cycle says about pods and pod groups; lives as long as its worker."""

    gateway: Gateway
    recorder: Recorder
    params: ShardParams
    pool: ThreadPoolExecutor
    wall: Callable[[], datetime] = lambda: datetime.now(UTC)
    on_fatal: Callable[[KubeError], None] = lambda error: None
    _said: OrderedDict[tuple[str, str], object] = field(default_factory=OrderedDict)
    _running: set[Future[None]] = field(default_factory=set)

    def write(
        self,
        snapshot: Snapshot,
        verdicts: Iterable[GroupVerdict],
        marks: Iterable[GroupMarks],
    ) -> int:
        """Start writing everything that changed; return how many pods are told that they must wait.

        The next cycle does not wait for these writes. Should two of one object overtake each other, the
        comparison with the object puts it right in the cycle after.
        """
        writes: list[Callable[[], object]] = []
        for mark in marks:
            writes.extend(self._mark(snapshot, mark))
        waiting = 0
        for verdict in verdicts:
            group = snapshot.groups.get(f"{verdict.namespace}/{verdict.name}")
            if group is not None:
                waiting += len(verdict.pods)
                writes.extend(self._say(snapshot, group, verdict))
        for key, cause in snapshot.refused_pods.items():
            text = f"The pod cannot be read: {cause}"
            writes.extend(self._tell(snapshot.pods[key], text, UNSCHEDULABLE))
        for work in writes:
            future = self.pool.submit(self._attempt, work)
            self._running.add(future)
            future.add_done_callback(self._running.discard)
        return waiting

    def wait(self) -> None:
        """Wait for the writes started so far."""
        for future in list(self._running):
            future.result()

    # ------------------------------------------------------------------------------- pod groups

    def _say(
        self, snapshot: Snapshot, group: PodGroup, verdict: GroupVerdict
    ) -> list[Callable[[], object]]:
        writes: list[Callable[[], object]] = []
        if verdict.stale:
            self.recorder.record(event_about(PODGROUPS, group, NORMAL, "StaleJob", verdict.stale))
        for outcast in verdict.outcasts:
            writes.extend(self._tell_pod(snapshot, outcast, outcast.message, UNSCHEDULABLE))
        if not verdict.is_waiting:
            if not verdict.is_settling and group.status.scheduling_conditions:
                writes.extend(self._clear(group))
            return writes
        if verdict.not_ready:
            self.recorder.record(
                event_about(PODGROUPS, group, NORMAL, "NotReady", verdict.not_ready)
            )
            return writes
        code = verdict.cause.code if verdict.cause is not None else ""
        prefix = self._prefix(group)
        mark = "" if group.spec.mark_unschedulable is False else self._mark_of(verdict)
        for pod in verdict.pods:
            writes.extend(self._tell_pod(snapshot, pod, prefix + pod.message, mark, code))
        message = prefix + verdict.message
        self.recorder.record(
            event_about(PODGROUPS, group, NORMAL, "Unschedulable", message, _coded(code))
        )
        if not verdict.has_active:
            writes.extend(self._condition(group, message, verdict.reasons))
        return writes

    def _condition(
        self, group: PodGroup, message: str, reasons: tuple[Reason, ...]
    ) -> list[Callable[[], object]]:
        """Replace this pool's condition, unless the latest one says the same already."""
        pool = self._pool_of(group)
        conditions = group.status.scheduling_conditions
        latest = latest_condition(group)
        says_so = latest is not None and (
            latest.type,
            latest.node_pool,
            latest.reason,
            latest.message,
            latest.status,
        ) == (UNSCHEDULABLE_ON_POOL, pool, "Unschedulable", message, "True")
        is_last = bool(conditions) and conditions[-1].node_pool == pool
        if (says_so and is_last) or not self._is_news(group, "condition", message):
            return []
        number = max(0, transition_number(latest)) if latest is not None else 0
        fresh = {
            "type": UNSCHEDULABLE_ON_POOL,
            "nodePool": pool,
            "reason": "Unschedulable",
            "message": message,
            "status": "True",
            "transitionID": str(number + 1),
            "lastTransitionTime": format_time(self.wall()),
            "reasons": [_reason_body(item) for item in reasons],
        }
        kept = [as_body(item) for item in conditions if item.node_pool != pool]
        return [self._patch_group(group, {"schedulingConditions": [*kept, fresh]})]

    def _clear(self, group: PodGroup) -> list[Callable[[], object]]:
        if not self._is_news(group, "condition", ""):
            return []
        return [self._patch_group(group, {"schedulingConditions": None})]

    def _patch_group(self, group: PodGroup, status: Mapping[str, Any]) -> Callable[[], object]:
        meta = group.metadata
        return lambda: self.gateway.patch(
            PODGROUPS, meta.name, {"status": status}, namespace=meta.namespace, sub="status"
        )

    def _mark(self, snapshot: Snapshot, mark: GroupMarks) -> list[Callable[[], object]]:
        """Write the timestamps that a later cycle, maybe of another process, must know."""
        group = snapshot.groups.get(f"{mark.namespace}/{mark.pod_group}")
        if group is None:
            return []
        wanted = {
            LAST_START: _moment(mark.last_start, snapshot.now),
            LAST_EVICTION: _moment(mark.last_eviction, snapshot.now),
            STALE_SINCE: _moment(mark.stale_since, snapshot.now),
        }
        carried = group.metadata.annotations
        changed = {
            key: value for key, value in wanted.items() if not _is_same(carried.get(key), value)
        }
        if not changed or not self._is_news(group, "marks", tuple(sorted(wanted.items()))):
            return []
        meta = group.metadata
        body = {"metadata": {"annotations": changed}}
        return [lambda: self.gateway.patch(PODGROUPS, meta.name, body, namespace=meta.namespace)]

    # ------------------------------------------------------------------------------------- pods

    def _mark_of(self, verdict: GroupVerdict) -> str:
        """Return the condition's reason: work that only its queue holds may be told apart (ADR 4)."""
        named = {item.reason for item in verdict.reasons}
        is_held = bool(named) and named <= HELD_BY_QUEUE
        return self.params.queue_limited_condition if is_held else UNSCHEDULABLE

    def _tell_pod(
        self, snapshot: Snapshot, verdict: PodVerdict, text: str, mark: str, code: str = ""
    ) -> list[Callable[[], object]]:
        """Tell a pod by an event, and by its condition under the reason `mark` unless that is empty."""
        ref = verdict.task
        pod = snapshot.pods.get(f"{ref.namespace}/{ref.name}")
        if pod is None or pod.metadata.uid != ref.uid:
            return []
        return self._tell(pod, text, mark, code)

    def _tell(self, pod: Pod, text: str, mark: str, code: str = "") -> list[Callable[[], object]]:
        self.recorder.record(event_about(PODS, pod, WARNING, "Unschedulable", text, _coded(code)))
        if not mark or _carries(pod, mark, text):
            return []
        if not self._is_news(pod, "condition", (mark, text)):
            return []
        old = pod.condition("PodScheduled")
        is_transition = old is None or old.status != "False" or old.last_transition_time is None
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": mark,
            "message": text,
        }
        if is_transition:
            condition["lastTransitionTime"] = format_time(self.wall())
        body = {"status": {"conditions": [condition]}}
        return [
            lambda: self.gateway.patch(
                PODS,
                pod.metadata.name,
                body,
                namespace=pod.metadata.namespace,
                sub="status",
                patch_type=PatchType.STRATEGIC,
            )
        ]

    # ---------------------------------------------------------------------------------- helpers

    def _attempt(self, work: Callable[[], object]) -> None:
        """A status that could not be written is written again when it changes or is missed."""
        try:
            work()
        except (NotFoundError, ConflictError):
            return
        except UnauthorizedError as error:
            self.on_fatal(error)
        except KubeError as error:
            log.warning("status not written: %s", error)
            self._said.clear()

    def _is_news(self, target: Pod | PodGroup, topic: str, value: object) -> bool:
        """Tell whether this differs from what was written last for this version of the object."""
        key = (target.metadata.uid, topic)
        said = (target.metadata.resource_version, value)
        if self._said.get(key) == said:
            return False
        self._said[key] = said
        self._said.move_to_end(key)
        if len(self._said) > REMEMBERED:
            self._said.popitem(last=False)
        return True

    def _pool_of(self, group: PodGroup) -> str:
        return pool_of(group, self.params.node_pool_label_key)

    def _prefix(self, group: PodGroup) -> str:
        if group.spec.scheduling_backoff == BACK_OFF_AT_ONCE:
            return f"Node-Pool '{self._pool_of(group)}': "
        return ""


def _coded(code: str) -> Mapping[str, str] | None:
    return {REASON_CODE: code} if code else None


def _carries(pod: Pod, mark: str, text: str) -> bool:
    old = pod.condition("PodScheduled")
    return old is not None and (old.status, old.reason, old.message) == ("False", mark, text)


def _reason_body(item: Reason) -> dict[str, Any]:
    body: dict[str, Any] = {"reason": item.reason, "message": item.message}
    if item.details:
        body["details"] = dict(item.details)
    return body


def _moment(relative: float | None, now: float) -> str | None:
    if relative is None:
        return None
    # Rounding up would name a moment that has not come: work would seem to go before its time. The
    # millisecond is for times that were read from a text and come back a hair too small.
    return format_time(datetime.fromtimestamp(floor(now + relative + 0.001), UTC))


def _is_same(carried: str | None, wanted: str | None) -> bool:
    """Compare moments, not texts: other writers may use fractions or an offset."""
    if not carried or not wanted:
        return (carried or None) == wanted
    carried_at, wanted_at = time_or_none(carried), time_or_none(wanted)
    if carried_at is None or wanted_at is None:
        return False
    return abs((carried_at - wanted_at).total_seconds()) < 1.5

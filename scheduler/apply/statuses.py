"""Write the explanations of a cycle as events and conditions, and only those that changed.

Every cycle explains a waiting pod anew; writing that every second would overload the API server. The recorder
counts repeated events. Conditions are compared with what the object carries and with what this worker wrote
last, because the watch may not have brought that back yet.
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
from kube.gateway import Gateway
from kube.keys import LAST_EVICTION, LAST_START, REASON_CODE, STALE_SINCE
from kube.objects.meta import as_body
from kube.objects.pod import Pod
from kube.objects.podgroup import PodGroup
from kube.resources import PODGROUPS, PODS
from kube.values.times import format_time, time_or_none
from queues.workloads.conditions import latest_condition, pool_of, transition_number
from queues.workloads.reasons import BIND_FAILING
from scheduler.apply.pod_conditions import patch_pod_condition
from scheduler.core.decisions import GroupMarks
from scheduler.explain.verdicts import GroupVerdict, PodVerdict, Reason
from scheduler.load.build import Snapshot
from scheduler.load.podgroups import UNSCHEDULABLE_ON_POOL
from scheduler.settings.params import ShardParams

log = logging.getLogger(__name__)
MAX_REMEMBERED = 50_000
#: The schedulingBackoff that allows a pod group one attempt on each node pool.
BACK_OFF_AT_ONCE = 1
UNSCHEDULABLE = "Unschedulable"
BINDING_ERROR = "BindingError"
# Reasons that adding nodes would not resolve.
HELD_BY_QUEUE = frozenset({"OverLimit", "NonPreemptibleOverQuota"})


@dataclass(slots=True)
class StatusWriter:
    """Writes events and conditions of pods and pod groups; lives until the settings change.

    Attributes
    ----------
    wall : tells the time of day
    on_fatal : called with an error after which no write can succeed, because the credentials are refused
    """

    gateway: Gateway
    recorder: Recorder
    params: ShardParams
    pool: ThreadPoolExecutor
    wall: Callable[[], datetime] = lambda: datetime.now(UTC)
    on_fatal: Callable[[KubeError], None] = lambda error: None
    _written: OrderedDict[tuple[str, str], object] = field(default_factory=OrderedDict)
    _running: set[Future[None]] = field(default_factory=set)

    def write(
        self,
        snapshot: Snapshot,
        verdicts: Iterable[GroupVerdict],
        marks: Iterable[GroupMarks],
    ) -> int:
        """Start writing everything that changed; return how many pods are unschedulable.

        The next cycle does not wait for these writes. If two writes to one object overtake each
        other, the next cycle compares with the object and writes again.
        """
        writes: list[Callable[[], object]] = []
        for group_marks in marks:
            writes.extend(self._write_marks(snapshot, group_marks))
        unschedulable = 0
        for verdict in verdicts:
            group = snapshot.groups.get(f"{verdict.namespace}/{verdict.name}")
            if group is not None:
                unschedulable += len(verdict.pods)
                writes.extend(self._report_group(snapshot, group, verdict))
        for key, cause in snapshot.refused_pods.items():
            text = f"The pod cannot be read: {cause}"
            writes.extend(self._report(snapshot.pods[key], text, UNSCHEDULABLE))
        for work in writes:
            future = self.pool.submit(self._attempt, work)
            self._running.add(future)
            future.add_done_callback(self._running.discard)
        return unschedulable

    def wait(self) -> None:
        """Wait for the writes started so far."""
        for future in list(self._running):
            future.result()

    # ------------------------------------------------------------------------------- pod groups

    def _report_group(
        self, snapshot: Snapshot, group: PodGroup, verdict: GroupVerdict
    ) -> list[Callable[[], object]]:
        writes: list[Callable[[], object]] = []
        if verdict.stale:
            self.recorder.record(event_about(PODGROUPS, group, NORMAL, "StaleJob", verdict.stale))
        prefix = self._prefix(group)
        for orphan_pod in verdict.orphan_pods:
            text = prefix + orphan_pod.message
            writes.extend(self._report_pod(snapshot, orphan_pod, text, UNSCHEDULABLE))
        if not verdict.is_waiting:
            if not verdict.is_settling and group.status.scheduling_conditions:
                writes.extend(self._clear_conditions(group))
            return writes
        if verdict.not_ready:
            self.recorder.record(
                event_about(PODGROUPS, group, NORMAL, "NotReady", verdict.not_ready)
            )
            return writes
        code = verdict.cause.code if verdict.cause is not None else ""
        has_conditions = group.spec.mark_unschedulable is not False
        condition_reason = self._condition_reason(verdict) if has_conditions else ""
        for pod in verdict.pods:
            text, own_code = prefix + pod.message, pod.code or code
            writes.extend(self._report_pod(snapshot, pod, text, condition_reason, own_code))
        message = prefix + verdict.message
        self.recorder.record(
            event_about(PODGROUPS, group, NORMAL, "Unschedulable", message, _code_annotation(code))
        )
        if not verdict.has_active:
            writes.extend(self._replace_condition(group, message, verdict.reasons))
        return writes

    def _replace_condition(
        self, group: PodGroup, message: str, reasons: tuple[Reason, ...]
    ) -> list[Callable[[], object]]:
        """Replace this pool's condition, unless the latest one is equal."""
        pool = self._pool_of(group)
        conditions = group.status.scheduling_conditions
        latest = latest_condition(group)
        is_equal = latest is not None and (
            latest.type,
            latest.node_pool,
            latest.reason,
            latest.message,
            latest.status,
        ) == (UNSCHEDULABLE_ON_POOL, pool, "Unschedulable", message, "True")
        is_last = bool(conditions) and conditions[-1].node_pool == pool
        if (is_equal and is_last) or not self._remember_if_new(group, "condition", message):
            return []
        number = max(0, transition_number(latest)) if latest is not None else 0
        new_condition = {
            "type": UNSCHEDULABLE_ON_POOL,
            "nodePool": pool,
            "reason": "Unschedulable",
            "message": message,
            "status": "True",
            "transitionID": str(number + 1),
            "lastTransitionTime": format_time(self.wall()),
            "reasons": [_reason_body(item) for item in reasons],
        }
        others = [as_body(item) for item in conditions if item.node_pool != pool]
        return [self._patch_group(group, {"schedulingConditions": [*others, new_condition]})]

    def _clear_conditions(self, group: PodGroup) -> list[Callable[[], object]]:
        if not self._remember_if_new(group, "condition", ""):
            return []
        return [self._patch_group(group, {"schedulingConditions": None})]

    def _patch_group(self, group: PodGroup, status: Mapping[str, Any]) -> Callable[[], object]:
        meta = group.metadata
        return lambda: self.gateway.patch(
            PODGROUPS, meta.name, {"status": status}, namespace=meta.namespace, sub="status"
        )

    def _write_marks(self, snapshot: Snapshot, marks: GroupMarks) -> list[Callable[[], object]]:
        """Write the timestamps that a later cycle, maybe of another process, must know."""
        group = snapshot.groups.get(f"{marks.namespace}/{marks.pod_group}")
        if group is None:
            return []
        desired = {
            LAST_START: _timestamp(marks.last_start, snapshot.now),
            LAST_EVICTION: _timestamp(marks.last_eviction, snapshot.now),
            STALE_SINCE: _timestamp(marks.stale_since, snapshot.now),
        }
        current = group.metadata.annotations
        changed = {
            key: value for key, value in desired.items() if not _is_same(current.get(key), value)
        }
        if not changed or not self._remember_if_new(group, "marks", tuple(sorted(desired.items()))):
            return []
        meta = group.metadata
        body = {"metadata": {"annotations": changed}}
        return [lambda: self.gateway.patch(PODGROUPS, meta.name, body, namespace=meta.namespace)]

    # ------------------------------------------------------------------------------------- pods

    def _condition_reason(self, verdict: GroupVerdict) -> str:
        """Return the reason of the pods' conditions: `queue_limited_condition` if only the queue holds them back (ADR 4)."""
        reasons = {item.reason for item in verdict.reasons}
        is_held = bool(reasons) and reasons <= HELD_BY_QUEUE
        return self.params.queue_limited_condition if is_held else UNSCHEDULABLE

    def _report_pod(
        self,
        snapshot: Snapshot,
        verdict: PodVerdict,
        text: str,
        condition_reason: str,
        code: str = "",
    ) -> list[Callable[[], object]]:
        """Report on a pod by an event, and by a condition unless `condition_reason` is empty."""
        ref = verdict.task
        pod = snapshot.pods.get(f"{ref.namespace}/{ref.name}")
        if pod is None or pod.metadata.uid != ref.uid:
            return []
        return self._report(pod, text, condition_reason, code)

    def _report(
        self, pod: Pod, text: str, condition_reason: str, code: str = ""
    ) -> list[Callable[[], object]]:
        is_bind_failure = code == BIND_FAILING
        event_reason = BINDING_ERROR if is_bind_failure else UNSCHEDULABLE
        if is_bind_failure:
            # Autoscalers take Unschedulable as a call for more nodes, which would not help here.
            condition_reason = BINDING_ERROR
        self.recorder.record(
            event_about(PODS, pod, WARNING, event_reason, text, _code_annotation(code))
        )
        if not condition_reason or _has_condition(pod, condition_reason, text):
            return []
        if not self._remember_if_new(pod, "condition", (condition_reason, text)):
            return []
        old = pod.condition("PodScheduled")
        is_transition = old is None or old.status != "False" or old.last_transition_time is None
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": condition_reason,
            "message": text,
        }
        if is_transition:
            condition["lastTransitionTime"] = format_time(self.wall())
        return [lambda: patch_pod_condition(self.gateway, pod, condition)]

    # ---------------------------------------------------------------------------------- helpers

    def _attempt(self, work: Callable[[], object]) -> None:
        """Write one status; one that failed is written again by the next cycle."""
        try:
            work()
        except (NotFoundError, ConflictError):
            return
        except UnauthorizedError as error:
            self.on_fatal(error)
        except KubeError as error:
            log.warning("status not written: %s", error)
            self._written.clear()

    def _remember_if_new(self, target: Pod | PodGroup, topic: str, value: object) -> bool:
        """Remember a value to write; return whether it differs from what was last written for this version of the object."""
        key = (target.metadata.uid, topic)
        latest = (target.metadata.resource_version, value)
        if self._written.get(key) == latest:
            return False
        self._written[key] = latest
        self._written.move_to_end(key)
        if len(self._written) > MAX_REMEMBERED:
            self._written.popitem(last=False)
        return True

    def _pool_of(self, group: PodGroup) -> str:
        return pool_of(group, self.params.node_pool_label_key)

    def _prefix(self, group: PodGroup) -> str:
        if group.spec.scheduling_backoff == BACK_OFF_AT_ONCE:
            return f"Node-Pool '{self._pool_of(group)}': "
        return ""


def _code_annotation(code: str) -> Mapping[str, str] | None:
    return {REASON_CODE: code} if code else None


def _has_condition(pod: Pod, reason: str, text: str) -> bool:
    old = pod.condition("PodScheduled")
    return old is not None and (old.status, old.reason, old.message) == ("False", reason, text)


def _reason_body(item: Reason) -> dict[str, Any]:
    body: dict[str, Any] = {"reason": item.reason, "message": item.message}
    if item.details:
        body["details"] = dict(item.details)
    return body


def _timestamp(relative: float | None, now: float) -> str | None:
    """Return the timestamp of a moment given in seconds from `now`."""
    if relative is None:
        return None
    # Round down. A rounded-up timestamp lies in the future, and the grace period would seem not to have elapsed.
    # The millisecond makes up for times that were parsed from text and are slightly too small.
    return format_time(datetime.fromtimestamp(floor(now + relative + 0.001), UTC))


def _is_same(current: str | None, desired: str | None) -> bool:
    """Return whether two timestamps mean the same time; other writers may use fractions or an offset."""
    if not current or not desired:
        return (current or None) == desired
    current_time, desired_time = time_or_none(current), time_or_none(desired)
    if current_time is None or desired_time is None:
        return False
    return abs((current_time - desired_time).total_seconds()) < 1.5

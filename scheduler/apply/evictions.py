"""Evict pods: through the Eviction API, which keeps to disruption budgets, or by deletion as KAI does.

A refusal is remembered, so that the search takes other victims for a while, and is reported in an event of
the pod. Only where the API server does not serve evictions is the pod deleted instead.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec

from kube.errors import (
    BadRequestError,
    DisruptionBudgetError,
    KubeError,
    NotFoundError,
    TooManyRequestsError,
)
from kube.events import NORMAL, WARNING, Recorder, event_about
from kube.gateway import Gateway
from kube.objects.pod import Pod
from kube.objects.policy import PodDisruptionBudget
from kube.resources import POD_DISRUPTION_BUDGETS, PODGROUPS, PODS
from kube.store import Store
from kube.values.times import format_time
from scheduler.apply.pod_conditions import patch_pod_condition
from scheduler.apply.refused_evictions import RefusedEvictions, answer_of
from scheduler.core.decisions import ActionName, Evict
from scheduler.explain.texts import evict_message
from scheduler.load.build import Snapshot
from scheduler.metrics import METRICS
from scheduler.settings.params import ShardParams

log = logging.getLogger(__name__)

#: How many times an eviction is requested from an overloaded API server, and the longest pause between two.
ATTEMPTS = 3
MAX_PAUSE_S = 2.0
METHOD_NOT_ALLOWED = 405
#: What events and metrics call an eviction that a person requested.
REQUEUE = "requeue"
#: What they call an eviction at the end of a maximum run time.
MAX_RUN_TIME = "maxruntime"


@dataclass(frozen=True, slots=True)
class EvictorGroup:
    """The evictions that make room for one pod group.

    Attributes
    ----------
    guarded : those that a disruption budget may refuse, to be written first and one after the other
    """

    guarded: Sequence[Evict]
    others: Sequence[Evict]


def by_evictor(
    decisions: Iterable[Evict], budget_of: Mapping[str, PodDisruptionBudget]
) -> list[EvictorGroup]:
    """Return evictions by the pod group that gets the room; without one, by the pod group that loses a pod."""
    groups: dict[tuple[str, ...], tuple[list[Evict], list[Evict]]] = {}
    for decision in decisions:
        reason = decision.reason
        key: tuple[str, ...] = (reason.action.value, reason.evictor_namespace, reason.evictor)
        if not reason.evictor:
            key = (*key, decision.pod_group_namespace, decision.pod_group)
        guarded, others = groups.setdefault(key, ([], []))
        (guarded if decision.task.uid in budget_of else others).append(decision)
    return [EvictorGroup(guarded, others) for guarded, others in groups.values()]


@dataclass(slots=True)
class EvictionWriter:
    """Performs the evictions of one cycle; safe to use from several threads."""

    gateway: Gateway
    store: Store
    recorder: Recorder
    params: ShardParams
    snapshot: Snapshot
    refused: RefusedEvictions = field(default_factory=RefusedEvictions)
    wall: Callable[[], datetime] = lambda: datetime.now(UTC)
    pause: Callable[[float], None] = time.sleep
    #: Key of a budget -> evictions of this cycle that it allowed.
    _spent: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def evict(self, decision: Evict) -> bool:
        """Evict a pod; return False if it was gone already.

        Raises
        ------
        kube.errors.KubeError : the API server refuses
        """
        ref = decision.task
        pod = self.snapshot.pods.get(f"{ref.namespace}/{ref.name}")
        if pod is None or pod.is_finished or pod.metadata.uid != ref.uid:
            return False
        text, reason = evict_message(decision), decision.reason
        purpose = (
            f" for workload {reason.evictor_namespace}/{reason.evictor}" if reason.evictor else ""
        )
        if not self._evict_pod(pod, text, purpose):
            return False
        annotations = {"num-evicted-pods": str(reason.gang_size)}
        if reason.action is not ActionName.STALE_GANG_EVICTION:
            annotations["evictor-pod-group-name"] = reason.evictor
            annotations["evictor-pod-group-namespace"] = reason.evictor_namespace
        key = f"{decision.pod_group_namespace}/{decision.pod_group}"
        self._record(key, reason.action.value, text, annotations)
        return True

    def requeue(self, pod: Pod, group_key: str) -> bool:
        """Evict a pod because a person requested it; return False if it was gone already.

        Raises
        ------
        kube.errors.KubeError : the API server refuses
        """
        text = f"Pod {pod.metadata.key} was evicted on request, to wait in its queue again"
        if not self._evict_pod(pod, text, " on request"):
            return False
        self._record(group_key, REQUEUE, text, {"num-evicted-pods": "1"})
        return True

    def end_run(self, pod: Pod, group_key: str, why: str) -> bool:
        """Evict a pod because of the maximum run time of its workload; return False if it was gone already.

        Raises
        ------
        kube.errors.KubeError : the API server refuses
        """
        text = f"Pod {pod.metadata.key} was evicted because {why}"
        if not self._evict_pod(pod, text, f" because {why}"):
            return False
        self._record(group_key, MAX_RUN_TIME, text, {"num-evicted-pods": "1"})
        return True

    def _evict_pod(self, pod: Pod, text: str, purpose: str) -> bool:
        uid = pod.metadata.uid
        try:
            self._remove(pod, text)
        except NotFoundError:
            return False
        except KubeError as error:
            self._note_refusal(purpose, pod, error)
            raise
        meta = msgspec.structs.replace(pod.metadata, deletion_timestamp=self.wall())
        self.store.amend(PODS, msgspec.structs.replace(pod, metadata=meta))
        self.refused.forget(uid)
        self._spend_budget(uid)
        return True

    def _remove(self, pod: Pod, text: str) -> None:
        sets_condition = self.params.update_pod_eviction_condition
        if not self.params.use_eviction_api:
            if sets_condition:
                self._set_condition(pod, text)
            self._delete(pod)
            return
        self._request_eviction(pod)
        if sets_condition:
            # After the eviction, because a budget may refuse it. This replaces the reason that the API server has set.
            try:
                self._set_condition(pod, text)
            except KubeError as error:
                log.info("condition of evicted pod %s: %s", pod.metadata.key, error)

    def _request_eviction(self, pod: Pod) -> None:
        meta = pod.metadata
        for attempt in range(1, ATTEMPTS + 1):
            try:
                self.gateway.evict(meta.namespace, meta.name, pod_uid=meta.uid)
                return
            except NotFoundError:
                # The pod is gone (then its deletion says so too), or the server does not serve evictions.
                self._delete(pod)
                return
            except BadRequestError as error:
                if error.status != METHOD_NOT_ALLOWED:
                    raise
                self._delete(pod)
                return
            except DisruptionBudgetError:
                raise
            except TooManyRequestsError as error:
                if attempt == ATTEMPTS:
                    raise
                self.pause(min(error.retry_after_s * attempt, MAX_PAUSE_S))

    def _delete(self, pod: Pod) -> None:
        meta = pod.metadata
        self.gateway.delete(PODS, meta.name, namespace=meta.namespace, uid=meta.uid)

    def _set_condition(self, pod: Pod, text: str) -> None:
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": text,
            "lastTransitionTime": format_time(self.wall()),
        }
        patch_pod_condition(self.gateway, pod, condition)

    def _note_refusal(self, purpose: str, pod: Pod, error: KubeError) -> None:
        """Remember a refusal that the next attempt would meet too, and record an event on the pod."""
        if not (isinstance(error, DisruptionBudgetError) or error.status in (403, 422, 500)):
            return
        now = self.wall().timestamp()
        refusal = self.refused.note(pod.metadata.uid, pod.metadata.key, error, now)
        until = format_time(datetime.fromtimestamp(round(refusal.until), UTC))
        text = (
            f"Pod {pod.metadata.key} was to be evicted{purpose}, which was refused: "
            f"{answer_of(error)}. It is not tried again before {until}"
        )
        self.recorder.record(event_about(PODS, pod, WARNING, "EvictionRefused", text))

    def _spend_budget(self, uid: str) -> None:
        """Lower what the budget in the store allows by one, until the watch brings the server's figure."""
        budget = self.snapshot.budget_of.get(uid)
        if budget is None:
            return
        with self._lock:
            spent = self._spent[budget.key] = self._spent.get(budget.key, 0) + 1
            status = msgspec.structs.replace(
                budget.status, disruptions_allowed=max(0, budget.status.disruptions_allowed - spent)
            )
            self.store.amend(POD_DISRUPTION_BUDGETS, msgspec.structs.replace(budget, status=status))

    def _record(self, key: str, action: str, text: str, annotations: Mapping[str, str]) -> None:
        group = self.snapshot.groups.get(key)
        if group is None:
            return
        annotations = {**annotations, "evictor-action-type": action}
        self.recorder.record(event_about(PODGROUPS, group, NORMAL, "Evict", text, annotations))
        METRICS.count_eviction(group, self.params.pool_name, action)

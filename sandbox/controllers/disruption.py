"""The simulated disruption controller: compute how many pods each PodDisruptionBudget allows to evict.

It works as in kube-controller-manager. The API server lowers `disruptionsAllowed` with each eviction and lists
the pod in `disruptedPods`, so that the pod is not counted as healthy until its deletion is seen here.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil
from typing import Any

from kube.errors import ConflictError, KubeError, NotFoundError
from kube.gateway import EventType
from kube.label_selectors import selects
from kube.objects.meta import KubeObject
from kube.objects.policy import PodDisruptionBudget
from kube.resources import (
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICASETS,
    STATEFULSETS,
    Resource,
)
from kube.values.times import format_time
from sandbox.controllers.loop import Controller
from sandbox.controllers.workloads.objects import ReplicaSet, StatefulSet, WorkPod, controller_of

log = logging.getLogger(__name__)

#: How long an evicted pod is not counted as healthy although its deletion has not been seen.
DELETION_TIMEOUT_S = 120.0
_TYPES: dict[Resource, type[KubeObject]] = {
    POD_DISRUPTION_BUDGETS: PodDisruptionBudget,
    PODS: WorkPod,
    REPLICASETS: ReplicaSet,
    STATEFULSETS: StatefulSet,
}
_SCALED = {resource.kind: resource for resource in (REPLICASETS, STATEFULSETS)}


@dataclass(slots=True)
class DisruptionController(Controller):
    """Keeps the status of all budgets until `stop` is set."""

    NAME = "budgets"
    TYPES = _TYPES
    clock: Callable[[], float] = time.time

    def follow(self) -> None:
        """Subscribe to changes; add the lookups that they need."""
        self.store.add_index(POD_DISRUPTION_BUDGETS, "namespace", _namespace)
        self.store.add_index(PODS, "namespace", _namespace)
        self.store.subscribe(self._changed)

    def reconcile(self, key: str) -> None:
        """Bring the status of one budget up to date; a failed write leads to a retry."""
        budget: PodDisruptionBudget | None = self.store.get(POD_DISRUPTION_BUDGETS, key)
        if budget is None:
            return
        pods = self._pods(budget)
        disrupted = self._disrupted(budget, pods)
        status = budget_status(budget, pods, self._expected(budget, pods), disrupted)
        try:
            self._write(budget, status)
        except NotFoundError:
            return
        except ConflictError:
            self.queue.retry(key)
            return
        except KubeError as error:
            log.warning("budget %s: %s", key, error)
            self.queue.retry(key)
            return
        self.queue.forget(key)
        if disrupted:
            self.queue.add_after(key, DELETION_TIMEOUT_S)

    def _pods(self, budget: PodDisruptionBudget) -> list[WorkPod]:
        in_namespace = self.store.by_index(PODS, "namespace", budget.metadata.namespace)
        return [pod for pod in in_namespace if selects(budget.spec.selector, pod.metadata.labels)]

    def _disrupted(self, budget: PodDisruptionBudget, pods: Iterable[WorkPod]) -> dict[str, float]:
        """Return the evicted pods whose deletion has not been seen yet, with the time of their eviction."""
        active = {pod.metadata.name for pod in pods if not pod.is_terminating}
        since = {
            name: disrupted_at.timestamp()
            for name, disrupted_at in budget.status.disrupted_pods.items()
        }
        now = self.clock()
        return {
            name: disrupted_at
            for name, disrupted_at in since.items()
            if name in active and disrupted_at + DELETION_TIMEOUT_S > now
        }

    def _expected(self, budget: PodDisruptionBudget, pods: Sequence[WorkPod]) -> int:
        """Return how many pods there should be: the replicas of their controllers, or the pods there are."""
        if not needs_scale(budget):
            return len(pods)
        owners = {controller_of(pod.metadata) for pod in pods}
        expected = 0
        for kind, name, uid in owners:
            owned = sum(controller_of(pod.metadata)[2] == uid for pod in pods)
            scaled = (
                self.store.get(_SCALED[kind], f"{budget.metadata.namespace}/{name}")
                if kind in _SCALED
                else None
            )
            expected += owned if scaled is None else scaled.spec.replicas
        return expected

    def _write(self, budget: PodDisruptionBudget, status: dict[str, Any]) -> None:
        current = budget.status
        expired_pods = current.disrupted_pods.keys() - status["disruptedPods"].keys()
        is_same = not expired_pods and all(
            status[name] == value
            for name, value in (
                ("disruptionsAllowed", current.disruptions_allowed),
                ("currentHealthy", current.current_healthy),
                ("desiredHealthy", current.desired_healthy),
                ("expectedPods", current.expected_pods),
                ("observedGeneration", current.observed_generation),
            )
        )
        if is_same:
            return
        meta = budget.metadata
        body = {
            "metadata": {"resourceVersion": meta.resource_version},
            "status": {
                **status,
                "disruptedPods": {**status["disruptedPods"], **dict.fromkeys(expired_pods)},
            },
        }
        self.gateway.patch(
            POD_DISRUPTION_BUDGETS, meta.name, body, namespace=meta.namespace, sub="status"
        )

    def _changed(self, resource: Resource, event: EventType, value: Any) -> None:
        if resource is POD_DISRUPTION_BUDGETS:
            if event is not EventType.DELETED:
                self.queue.add(value.key)
            return
        namespace = value.metadata.namespace
        for budget in self.store.by_index(POD_DISRUPTION_BUDGETS, "namespace", namespace):
            self.queue.add(budget.key)


def budget_status(
    budget: PodDisruptionBudget,
    pods: Iterable[WorkPod],
    expected: int,
    disrupted: dict[str, float],
) -> dict[str, Any]:
    """Return the figures of a budget.

    Parameters
    ----------
    pods : those it selects
    expected : how many there should be
    disrupted : evicted pods that may still look healthy, with the time of their eviction
    """
    healthy = sum(
        pod.is_ready and not pod.is_terminating and pod.metadata.name not in disrupted
        for pod in pods
    )
    desired = desired_healthy(budget, expected)
    allowed = max(0, healthy - desired) if expected > 0 else 0
    return {
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "observedGeneration": budget.metadata.generation,
        "disruptedPods": {
            name: format_time(_moment(disrupted_at)) for name, disrupted_at in disrupted.items()
        },
    }


def needs_scale(budget: PodDisruptionBudget) -> bool:
    """Return whether a budget is relative to the replicas of the controllers, not to the pods there are."""
    return budget.spec.max_unavailable is not None or isinstance(budget.spec.min_available, str)


def desired_healthy(budget: PodDisruptionBudget, expected: int) -> int:
    """Return how many pods must stay healthy; percentages round up."""
    spec = budget.spec
    if spec.max_unavailable is not None:
        return max(0, expected - _share(spec.max_unavailable, expected))
    return _share(1 if spec.min_available is None else spec.min_available, expected)


def _share(value: int | str, count: int) -> int:
    if isinstance(value, str):
        return ceil(int(value.removesuffix("%")) * count / 100)
    return value


def _moment(unix_time: float) -> datetime:
    return datetime.fromtimestamp(unix_time, UTC)


def _namespace(value: KubeObject) -> list[str]:
    return [value.metadata.namespace]

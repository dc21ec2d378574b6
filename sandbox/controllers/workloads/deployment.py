"""Deployments: one ReplicaSet per template, and the rolling move from old ones to the new one.

Supports rolling updates with maxSurge and maxUnavailable, Recreate, pausing and the revision history.
Not supported: minReadySeconds, progress deadlines, proportional scaling during a rollout.
"""

from __future__ import annotations

from collections.abc import Sequence

from kube.resources import DEPLOYMENTS, REPLICASETS
from sandbox.controllers.workloads.objects import Deployment, Json, ReplicaSet
from sandbox.controllers.workloads.plan import Plan, condition, owner_reference, template_hash
from sandbox.wallclock import timestamp

HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"


def plan(deployment: Deployment, owned: Sequence[ReplicaSet], now: float) -> Plan:
    """Return what to write for one Deployment; `owned` are its ReplicaSets, new and old."""
    result = Plan()
    name = f"{deployment.metadata.name}-{template_hash(deployment.spec.template)}"
    current = [rs for rs in owned if rs.metadata.deletion_timestamp is None]
    new = next((rs for rs in current if rs.metadata.name == name), None)
    old = sorted((rs for rs in current if rs is not new), key=lambda rs: rs.metadata.created)
    if deployment.metadata.deletion_timestamp is None:
        if new is None and not deployment.spec.paused:
            _create_new(deployment, name, old, result)
        elif new is not None:
            _set_revision(deployment, new, old, result)
            _roll(deployment, new, old, result)
        _delete_old_replicasets(deployment, old, result)
    _write_status(deployment, new, old, result, now)
    return result


def _create_new(deployment: Deployment, name: str, old: Sequence[ReplicaSet], result: Plan) -> None:
    is_recreated = deployment.spec.strategy.get("type") == "Recreate"
    if is_recreated and any(replicaset.spec.replicas or replicaset.pods for replicaset in old):
        for replicaset in old:
            _scale(replicaset, 0, result)
        return
    running = sum(replicaset.spec.replicas for replicaset in old)
    surge, _ = _bounds(deployment)
    replicas = min(deployment.spec.replicas, max(0, deployment.spec.replicas + surge - running))
    template = deployment.spec.template
    label = {HASH: name.rpartition("-")[2]}
    labels = {**template.get("metadata", {}).get("labels", {}), **label}
    selector = deployment.spec.selector
    body = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": {REVISION: str(_latest(old) + 1)},
            "ownerReferences": [owner_reference(DEPLOYMENTS, deployment)],
        },
        "spec": {
            "replicas": replicas,
            "selector": {**selector, "matchLabels": {**selector.get("matchLabels", {}), **label}},
            "template": {
                **template,
                "metadata": {**template.get("metadata", {}), "labels": labels},
            },
        },
    }
    result.create(REPLICASETS, deployment.metadata.namespace, body)


def _set_revision(
    deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet], result: Plan
) -> None:
    """Give the current ReplicaSet the highest revision; after a rollback it had a lower one."""
    revision = _revision(new)
    if old and revision <= _latest(old):
        revision = _latest(old) + 1
        result.patch(REPLICASETS, new, {"metadata": {"annotations": {REVISION: str(revision)}}})
    if deployment.metadata.annotations.get(REVISION) != str(revision):
        body = {"metadata": {"annotations": {REVISION: str(revision)}}}
        result.patch(DEPLOYMENTS, deployment, body)


def _roll(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet], result: Plan) -> None:
    """Scale the new ReplicaSet up and the old ones down, as far as maxSurge and maxUnavailable allow."""
    replicas = deployment.spec.replicas
    remaining = [replicaset for replicaset in old if replicaset.spec.replicas]
    if not remaining or deployment.spec.paused:
        _scale(new, replicas, result)
        return
    surge, unavailable = _bounds(deployment)
    total = new.spec.replicas + sum(replicaset.spec.replicas for replicaset in remaining)
    _scale(new, min(replicas, new.spec.replicas + max(0, replicas + surge - total)), result)
    spare = total - (replicas - unavailable) - max(0, new.spec.replicas - new.available)
    for replicaset in remaining:
        # Pods that are not available go first, because removing them does not reduce availability.
        size = replicaset.spec.replicas
        idle = min(max(0, size - replicaset.available), max(0, spare))
        spare -= idle
        available = new.available + sum(other.available for other in remaining)
        busy = max(0, min(size - idle, spare, available - replicas + unavailable))
        spare -= busy
        _scale(replicaset, size - idle - busy, result)


def _scale(replicaset: ReplicaSet, replicas: int, result: Plan) -> None:
    if replicaset.spec.replicas != replicas:
        result.patch(REPLICASETS, replicaset, {"spec": {"replicas": replicas}})


def _delete_old_replicasets(
    deployment: Deployment, old: Sequence[ReplicaSet], result: Plan
) -> None:
    empty = [rs for rs in old if not rs.spec.replicas and not rs.pods]
    for replicaset in empty[: max(0, len(empty) - deployment.spec.revision_history_limit)]:
        result.delete(REPLICASETS, replicaset)


def _write_status(
    deployment: Deployment,
    new: ReplicaSet | None,
    old: Sequence[ReplicaSet],
    result: Plan,
    now: float,
) -> None:
    replicasets = [*old, *([new] if new else [])]
    pods = sum(replicaset.pods for replicaset in replicasets)
    updated = new.pods if new else 0
    available = sum(replicaset.available for replicaset in replicasets)
    replicas = deployment.spec.replicas
    _, unavailable = _bounds(deployment)
    is_available = available >= replicas - unavailable
    is_done = updated == replicas == pods and available == replicas
    at = timestamp(now)
    stored_conditions: list[Json] = deployment.status.get("conditions") or []
    conditions = [
        condition(
            "Available",
            stored_conditions,
            is_true=is_available,
            reason="MinimumReplicasAvailable" if is_available else "MinimumReplicasUnavailable",
            message=f"Deployment {'has' if is_available else 'does not have'} minimum availability.",
            at=at,
        ),
        condition(
            "Progressing",
            stored_conditions,
            is_true=True,
            reason="NewReplicaSetAvailable" if is_done else "ReplicaSetUpdated",
            message=f'ReplicaSet "{new.metadata.name if new else ""}" '
            + ("has successfully progressed." if is_done else "is progressing."),
            at=at,
        ),
    ]
    status = {
        "observedGeneration": deployment.metadata.generation,
        "replicas": pods or None,
        "updatedReplicas": updated or None,
        "readyReplicas": available or None,
        "availableReplicas": available or None,
        "unavailableReplicas": max(0, replicas - available) or None,
        "conditions": [_keep_stored(desired, stored_conditions) for desired in conditions],
    }
    result.set_status(DEPLOYMENTS, deployment, deployment.status, status)


def _keep_stored(desired: Json, stored_conditions: Sequence[Json]) -> Json:
    """Return the stored condition if only times differ, so that times alone cause no write."""
    for stored in stored_conditions:
        if all(stored.get(key) == value for key, value in desired.items()):
            return stored
    return {**desired, "lastUpdateTime": desired["lastTransitionTime"]}


def _bounds(deployment: Deployment) -> tuple[int, int]:
    """Return (maxSurge, maxUnavailable) as numbers of pods; never both zero."""
    rolling = deployment.spec.strategy.get("rollingUpdate") or {}
    replicas = deployment.spec.replicas
    surge = _portion(rolling.get("maxSurge", "25%"), replicas, is_rounded_up=True)
    unavailable = _portion(rolling.get("maxUnavailable", "25%"), replicas, is_rounded_up=False)
    return (surge, unavailable) if surge or unavailable else (0, 1)


def _portion(value: int | str, replicas: int, *, is_rounded_up: bool) -> int:
    if isinstance(value, int):
        return value
    parts = int(value.rstrip("%")) * replicas
    return -(-parts // 100) if is_rounded_up else parts // 100


def _latest(replicasets: Sequence[ReplicaSet]) -> int:
    return max((_revision(replicaset) for replicaset in replicasets), default=0)


def _revision(replicaset: ReplicaSet) -> int:
    text = replicaset.metadata.annotations.get(REVISION, "0")
    return int(text) if text.isdigit() else 0

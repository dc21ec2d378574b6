"""The eviction subresource: delete a pod unless its disruption budget forbids that.

As in the real server, a budget's `status.disruptionsAllowed` decides, and each eviction lowers it by one.
The figure itself is computed by a controller (`sandbox.controllers.disruption`).
"""

from __future__ import annotations

from sandbox.apiserver.access.admission import AdmissionCall
from sandbox.apiserver.handlers.mutations import read_object
from sandbox.apiserver.handlers.parts import ServerParts
from sandbox.apiserver.handlers.reads import find
from sandbox.apiserver.model import clock, errors
from sandbox.apiserver.model.conditions import set_condition
from sandbox.apiserver.model.entry import Entry, Obj
from sandbox.apiserver.model.selectors import object_selector
from sandbox.apiserver.wire.request import Reply, Request, Target, success_reply

_BUDGETS = "poddisruptionbudgets.policy"
_RETRY_AFTER_S = 10


async def evict_pod(parts: ServerParts, request: Request, target: Target) -> Reply:
    """Delete a pod unless a disruption budget forbids it."""
    body = await read_object(request)
    options: Obj = body.get("deleteOptions") or {}
    if request.dry_run:
        options["dryRun"] = ["All"]
    is_dry_run = bool(options.get("dryRun"))
    call = AdmissionCall("CREATE", target, request.user, is_dry_run, [])
    await parts.writer.admit(call, body)
    entry = find(parts, target)
    pod_target = Target(resource=target.resource, namespace=target.namespace, name=target.name)
    pod = entry.load()
    if not entry.terminating and (pod.get("status") or {}).get("phase") == "Running":
        _spend_budget(parts, entry, pod, dry_run=is_dry_run)
    parts.deleter.check_preconditions(pod_target, entry, options)
    if not (is_dry_run or entry.terminating):
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        }
        set_condition(pod, condition)
        parts.store.update(entry, pod)
    await parts.deleter.delete(pod_target, find(parts, target), options, request.user)
    return success_reply()


def _spend_budget(parts: ServerParts, entry: Entry, pod: Obj, *, dry_run: bool) -> None:
    """Lower `disruptionsAllowed` of the budget that selects a pod, unless the pod may go freely.

    Raises
    ------
    ApiError : 429 if it is 0 already, 500 if several budgets select the pod
    """
    selecting_entries = [
        budget_entry
        for budget_entry in parts.store.collection(_BUDGETS).listing(entry.namespace)
        if _selects(budget_entry.load(), entry)
    ]
    if len(selecting_entries) > 1:
        raise errors.internal(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
            "support."
        )
    if not selecting_entries:
        return
    budget = selecting_entries[0].load()
    if not _is_ready(pod) and _lets_unready_go(budget):
        return
    _refuse_without_disruptions(budget)
    if not dry_run:
        status = budget["status"]
        status["disruptionsAllowed"] -= 1
        disrupted = status.get("disruptedPods") or {}
        status["disruptedPods"] = {**disrupted, entry.name: clock.stamp()}
        parts.store.update(selecting_entries[0], budget)


def _selects(budget: Obj, pod: Entry) -> bool:
    matches = object_selector(budget["spec"].get("selector"))
    return matches is not None and matches(pod.labels)


def _refuse_without_disruptions(budget: Obj) -> None:
    status, meta = budget.get("status") or {}, budget["metadata"]
    if status.get("observedGeneration", 0) < meta.get("generation", 0):
        raise _refusal(
            f"The disruption budget {meta['name']} is still being processed by the server.",
            retry_after_s=_RETRY_AFTER_S,
        )
    if status.get("disruptionsAllowed", 0) < 1:
        raise _refusal(
            f"The disruption budget {meta['name']} needs {status.get('desiredHealthy', 0)} healthy pods "
            f"and has {status.get('currentHealthy', 0)} currently"
        )


def _refusal(message: str, *, retry_after_s: int = 0) -> errors.ApiError:
    text = "Cannot evict pod as it would violate the pod's disruption budget."
    cause = {"reason": "DisruptionBudget", "message": message}
    return errors.too_many(text, [cause], retry_after_s)


def _lets_unready_go(budget: Obj) -> bool:
    """Return whether a pod that is not ready may go freely: always, or while enough others are healthy."""
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    return bool(0 < status.get("desiredHealthy", 0) <= status.get("currentHealthy", 0))


def _is_ready(pod: Obj) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

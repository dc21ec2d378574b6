"""What would unblock a waiting workload: a few candidates by its reason, each tried in a simulation before it is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kaiweb.items.amounts import rounded
from kaiweb.items.explanation import newest_reasons
from kaiweb.items.visibility import Visibility
from kaiweb.models import Simulation, SimulationState
from kube.keys import NVIDIA_GPU
from kube.values.quantity import parse_quantity
from queues.models import Node, PodGroup, Queue
from queues.workloads import reasons

MAX_CANDIDATES = 3
CYCLES = 3
#: Codes about room on nodes, which another node may end.
NEEDS_ROOM = frozenset(
    {
        reasons.NO_NODE, reasons.DEVICES, reasons.ORDER_BEHIND, reasons.TOPOLOGY,
        reasons.DISRUPTION_BUDGET,
    }
)  # fmt: skip
#: Reason -> the bound in the way, and where its condition keeps what is used of it.
BOUNDS = {
    reasons.OVER_LIMIT: ("limit", "queueAllocatedResources"),
    reasons.NON_PREEMPTIBLE_OVER_QUOTA: ("quota", "queueAllocatedNonPreemptibleResources"),
}
#: Resource of a condition -> its name in REST, and how many of REST's units one of it has.
REST_UNITS = {NVIDIA_GPU: ("gpu", 1), "cpu": ("cpuMilli", 1000), "memory": ("memoryBytes", 1)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An edit that might let the workload start; `question` are its edits as in a simulation."""

    code: str
    text: str
    question: Mapping[str, Any]


def candidates(row: PodGroup) -> list[Candidate]:
    """Return what might unblock a workload, the most likely first; empty if nothing known does."""
    remedies = [*_higher_bounds(row), *_more_quota(row), *_another_node(row)]
    return remedies[:MAX_CANDIDATES]


def _higher_bounds(row: PodGroup) -> Iterator[Candidate]:
    for reason in newest_reasons(row):
        bound, used_key = BOUNDS.get(str(reason.get("reason")), ("", ""))
        details = (reason.get("details") or {}).get("queueDetails") or {}
        queue = details.get("name", "")
        needed_amounts = _sums(details.get("podGroupRequestedResources"), details.get(used_key))
        present = _present(queue, bound)
        edit = {name: amount for name, amount in needed_amounts.items() if 0 <= present.get(name, -1.0) < amount}  # fmt: skip
        if bound and edit:
            changes = ", ".join(f"{name} {present[name]:g} → {edit[name]:g}" for name in edit)
            yield Candidate(
                code=f"raise-{bound}",
                text=f"a higher {bound} of queue '{queue}': {changes}",
                question={"queues": [{"name": queue, "edit": {bound: edit}}]},
            )


def _sums(requested: object, used: object) -> dict[str, float]:
    """Return what would be used with the request, in REST's units."""
    if not isinstance(requested, Mapping):
        return {}
    used_amounts = used if isinstance(used, Mapping) else {}
    return {
        REST_UNITS[resource][0]: rounded(
            (_quantity(amount) + _quantity(used_amounts.get(resource, 0))) * REST_UNITS[resource][1]
        )
        for resource, amount in requested.items()
        if resource in REST_UNITS
    }


def _quantity(text: Any) -> float:
    try:
        return float(parse_quantity(text))
    except (ValueError, TypeError):
        return 0.0


def _present(name: str, bound: str) -> dict[str, float]:
    """Return the limited resources of a queue in REST's units; unlimited ones are left out."""
    queue = Queue.objects.filter(name=name).first()
    if queue is None or not bound:
        return {}
    factors = {"gpu": ("gpu", 1.0), "cpu": ("cpuMilli", 1.0), "memory": ("memoryBytes", 1e6)}
    amounts = {rest_name: (getattr(queue, f"{bound}_{column}") or 0.0) * factor for column, (rest_name, factor) in factors.items()}  # fmt: skip
    return {rest_name: amount for rest_name, amount in amounts.items() if amount >= 0}


def _more_quota(row: PodGroup) -> Iterator[Candidate]:
    """Yield a quota that covers what the queue uses and the workload, so that it may reclaim from borrowers."""
    queue = Queue.objects.filter(name=row.queue).first()
    if row.reason_code not in NEEDS_ROOM or queue is None or not row.gpu:
        return
    present, needed_quota = queue.quota_gpu or 0.0, rounded(queue.allocated_gpu + row.gpu)
    if 0 <= present < needed_quota:
        yield Candidate(
            code="raise-quota",
            text=f"a quota of {needed_quota:g} instead of {present:g} GPUs for queue '{row.queue}', to reclaim from others",
            question={"queues": [{"name": row.queue, "edit": {"quota": {"gpu": needed_quota}}}]},
        )


def _another_node(row: PodGroup) -> Iterator[Candidate]:
    if row.reason_code not in NEEDS_ROOM:
        return
    nodes = Node.objects.filter(pool=row.pool, is_ready=True, is_cordoned=False)
    model = nodes.order_by("-gpus_healthy", "-cpu", "name").first()
    if model is not None:
        yield Candidate(
            code="add-node",
            text=f"one more node like '{model.name}' ({model.gpus_healthy} GPUs)",
            question={"nodes": {"add": [{"like": model.name, "name": "one-more"}]}},
        )


def verified(
    row: PodGroup,
    run: Callable[[Mapping[str, Any]], Simulation],
    visibility: Visibility,
) -> Sequence[dict[str, Any]]:
    """Return the candidates with which the workload starts in a simulation, and does not without.

    Parameters
    ----------
    run : question -> its simulation, finished or not in time
    visibility : candidates that edit other queues are left out
    """
    items = []
    for candidate in candidates(row):
        edited = [edit["name"] for edit in candidate.question.get("queues", ())]
        if not all(visibility.shows(name) for name in edited):
            continue
        simulation = run({**candidate.question, "cycles": CYCLES})
        if simulation.state != SimulationState.DONE:
            continue
        answer = simulation.answer
        starts = [entry for entry in answer.get("starts", ()) if entry["workload"] == row.key]
        if starts and not any(entry["withoutEdits"] for entry in starts):
            items.append(
                {
                    "code": candidate.code,
                    "text": candidate.text,
                    "edits": candidate.question,
                    "simulation": simulation.pk,
                    "evictedWorkloads": answer["totals"]["evictedWorkloads"],
                }
            )
    return items

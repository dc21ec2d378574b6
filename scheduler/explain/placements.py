"""Why a task was placed on its node, as it is stored and shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scheduler.core.decisions import Bind
from scheduler.core.placement.chosen import PlacementLog, PlacementReason, ScoredNode
from scheduler.core.session.session import Session

#: What decided where no part of the score did: evictions had made room there, no other node could take the
#: task, or all were equally good and the first by name was taken.
PROMISE, ONLY_NODE, NAME = "promise", "only-node", "name"
DIGITS = 3


def recorded_placements(session: Session) -> Iterator[tuple[Bind, PlacementReason]]:
    """Yield the binds of a session whose reason was recorded."""
    log = session.attached(PlacementLog)
    by_task = log.reasons(session) if log is not None else {}
    if not by_task:
        return
    reasons = {session.state.tasks.inputs[task].uid: reason for task, reason in by_task.items()}
    for decision in session.decisions:
        if isinstance(decision, Bind):
            reason = reasons.get(decision.task.uid)
            if reason is not None and reason.chosen.node == decision.node:
                yield decision, reason


def decided_by(reason: PlacementReason) -> str:
    """Return the part of the score by which the node leads most, or what decided without one."""
    if reason.is_promised:
        return PROMISE
    if reason.runner_up is None:
        return ONLY_NODE
    leads = {name: chosen - other for name, chosen, other in _terms(reason)}
    best = max(leads, key=lambda name: leads[name], default="")
    return best if best and round(leads[best], DIGITS) > 0 else NAME


def placement_item(reason: PlacementReason) -> dict[str, Any]:
    """Return a reason as it is stored and as REST shows it."""
    runner_up = reason.runner_up
    return {
        "strategy": reason.strategy,
        "decidedBy": decided_by(reason),
        "score": round(reason.chosen.score, DIGITS),
        "nextNode": runner_up.node if runner_up else None,
        "nextScore": round(runner_up.score, DIGITS) if runner_up else None,
        "terms": [
            {
                "name": name,
                "chosen": round(chosen, DIGITS),
                "next": round(other, DIGITS) if runner_up else None,
            }
            for name, chosen, other in _terms(reason)
        ],
        "nodes": reason.nodes,
        "considered": reason.considered,
        "possible": reason.possible,
        "refused": [{"reason": name, "nodes": count} for name, count in reason.refused],
    }


def placement_line(decision: Bind, reason: PlacementReason) -> str:
    """Return one line for people about a placement."""
    terms = ", ".join(f"{name} {chosen:g} to {other:g}" for name, chosen, other in _terms(reason))
    runner_up = f", next is {reason.runner_up.node} ({terms})" if reason.runner_up else ""
    refused = "".join(f"; {count} refused: {name}" for name, count in reason.refused)
    return (
        f"pod {decision.task.name}: on {decision.node} by {decided_by(reason)}{runner_up};"
        f" {reason.possible} of {reason.considered} nodes could take it{refused}"
    )


def _terms(reason: PlacementReason) -> list[tuple[str, float, float]]:
    """Return the parts of both scores, those of the chosen node first; a missing one is 0."""
    other = _as_dict(reason.runner_up)
    chosen = _as_dict(reason.chosen)
    names = dict.fromkeys([*chosen, *other])
    return [(name, chosen.get(name, 0.0), other.get(name, 0.0)) for name in names]


def _as_dict(scored: ScoredNode | None) -> dict[str, float]:
    return dict(scored.terms) if scored else {}

"""The five conditions of Config and SchedulingShard, in KAI's words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kube.conditions import ConditionState

RECONCILING = "Reconciling"
TRUE, FALSE = "True", "False"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectState:
    """What the operator knows about one Config or SchedulingShard.

    Attributes
    ----------
    generation : the generation of the object
    problem : why its spec cannot be applied; "" if it can
    is_applied : the supervisor has read the newest wanted file
    missing : components with a process that is not up
    reasons : why a component is missing, if that is known
    unmet : missing dependencies that kaiweb does not bring itself, as KAI words them
    """

    generation: int
    problem: str = ""
    is_applied: bool = True
    missing: Sequence[str] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    unmet: Sequence[str] = ()


def beginning(generation: int) -> dict[str, ConditionState]:
    """Return the condition of an object whose generation has not been processed yet."""
    reconciling = ConditionState(TRUE, "reconciling", "Reconciliation in progress", generation)
    return {RECONCILING: reconciling}


def conditions(state: ObjectState) -> dict[str, ConditionState]:
    """Return all five, in the order in which KAI writes them."""
    deployed = _deployed(state)
    available = _condition(
        not state.missing,
        "available",
        "System available",
        "\n".join(_unavailable(name, state.reasons) for name in state.missing),
        state.generation,
    )
    if state.unmet:
        text = "".join(f"\n{item}" for item in state.unmet)
        fulfilled = ConditionState(FALSE, "dependencies_missing", text, state.generation)
    else:
        text = "Dependencies are fulfilled"
        fulfilled = ConditionState(TRUE, "dependencies_fulfilled", text, state.generation)
    is_ready = all(condition.status == TRUE for condition in (deployed, available, fulfilled))
    ready = (
        ConditionState(TRUE, "ready", "System is ready", state.generation)
        if is_ready
        else ConditionState(FALSE, "not_ready", "System not ready", state.generation)
    )
    return {
        **_reconciling(state),
        "Deployed": deployed,
        "Available": available,
        "DependenciesFulfilled": fulfilled,
        "Ready": ready,
    }


def _unavailable(name: str, reasons: Mapping[str, str]) -> str:
    reason = reasons.get(name, "")
    return f"{name}: not available" + (f": {reason}" if reason else "")


def _reconciling(state: ObjectState) -> dict[str, ConditionState]:
    """Return the condition Reconciling; it stays true for a spec that cannot be applied."""
    if state.problem or not state.is_applied:
        return beginning(state.generation)
    text = "Reconciliation completed successfully"
    return {RECONCILING: ConditionState(FALSE, "reconciled", text, state.generation)}


def _deployed(state: ObjectState) -> ConditionState:
    problem = state.problem or ("" if state.is_applied else "Resources not deployed yet")
    return _condition(not problem, "deployed", "Resources deployed", problem, state.generation)


def _condition(holds: bool, reason: str, yes: str, no: str, generation: int) -> ConditionState:
    return ConditionState(TRUE if holds else FALSE, reason, yes if holds else no, generation)

"""The five conditions of Config and SchedulingShard, in KAI's words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kube.conditions import Said

RECONCILING = "Reconciling"
TRUE, FALSE = "True", "False"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """How one object stands.

    Attributes
    ----------
    generation : of the object
    problem : why what it asks for cannot be done; "" if it can
    is_adopted : the supervisor has taken over what is wanted now
    missing : components of which some process is not up
    reasons : why, by component, where it is known
    unmet : components that lack something we do not bring ourselves, with what it is
    """

    generation: int
    problem: str = ""
    is_adopted: bool = True
    missing: Sequence[str] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    unmet: Sequence[str] = ()


def beginning(generation: int) -> dict[str, Said]:
    """Return the condition of an object whose present generation was not looked at yet."""
    said = Said(TRUE, "reconciling", "Reconciliation in progress", generation)
    return {RECONCILING: said}


def conditions(outlook: Outlook) -> dict[str, Said]:
    """Return all five, in the order in which KAI writes them."""
    deployed = _deployed(outlook)
    available = _condition(
        not outlook.missing,
        "available",
        "System available",
        "\n".join(_unavailable(name, outlook.reasons) for name in outlook.missing),
        outlook.generation,
    )
    if outlook.unmet:
        text = "".join(f"\n{item}" for item in outlook.unmet)
        fulfilled = Said(FALSE, "dependencies_missing", text, outlook.generation)
    else:
        text = "Dependencies are fulfilled"
        fulfilled = Said(TRUE, "dependencies_fulfilled", text, outlook.generation)
    is_ready = all(said.status == TRUE for said in (deployed, available, fulfilled))
    ready = (
        Said(TRUE, "ready", "System is ready", outlook.generation)
        if is_ready
        else Said(FALSE, "not_ready", "System not ready", outlook.generation)
    )
    return {
        **_reconciling(outlook),
        "Deployed": deployed,
        "Available": available,
        "DependenciesFulfilled": fulfilled,
        "Ready": ready,
    }


def _unavailable(name: str, reasons: Mapping[str, str]) -> str:
    reason = reasons.get(name, "")
    return f"{name}: not available" + (f": {reason}" if reason else "")


def _reconciling(outlook: Outlook) -> dict[str, Said]:
    """Return the first condition; what cannot be done is not reconciled until somebody edits it."""
    if outlook.problem or not outlook.is_adopted:
        return beginning(outlook.generation)
    text = "Reconciliation completed successfully"
    return {RECONCILING: Said(FALSE, "reconciled", text, outlook.generation)}


def _deployed(outlook: Outlook) -> Said:
    problem = outlook.problem or ("" if outlook.is_adopted else "Resources not deployed yet")
    return _condition(not problem, "deployed", "Resources deployed", problem, outlook.generation)


def _condition(holds: bool, reason: str, yes: str, no: str, generation: int) -> Said:
    return Said(TRUE if holds else FALSE, reason, yes if holds else no, generation)

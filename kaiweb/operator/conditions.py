"""The five conditions of Config and SchedulingShard, in KAI's words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kube.conditions import Said

RECONCILING = "Reconciling"
TRUE, FALSE = "True", "False"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How one object stands.

    Attributes
    ----------
    generation : of the object
    problem : why what it asks for cannot be done; "" if it can
    is_adopted : the supervisor has taken over what is wanted now
    missing : components of which some process is not up
    unmet : components that lack something we do not bring ourselves, with what it is
    """

    generation: int
    problem: str = ""
    is_adopted: bool = True
    missing: Sequence[str] = ()
    unmet: Sequence[str] = ()


def beginning(generation: int) -> dict[str, Said]:
    """Return the condition of an object whose present generation was not looked at yet."""
    said = Said(TRUE, "reconciling", "Reconciliation in progress", generation)
    return {RECONCILING: said}


def conditions(standing: Standing) -> dict[str, Said]:
    """Return all five, in the order in which KAI writes them."""
    deployed = _deployed(standing)
    available = _condition(
        not standing.missing,
        "available",
        "System available",
        "\n".join(f"{name}: not available" for name in standing.missing),
        standing.generation,
    )
    if standing.unmet:
        text = "".join(f"\n{item}" for item in standing.unmet)
        fulfilled = Said(FALSE, "dependencies_missing", text, standing.generation)
    else:
        text = "Dependencies are fulfilled"
        fulfilled = Said(TRUE, "dependencies_fulfilled", text, standing.generation)
    is_ready = all(said.status == TRUE for said in (deployed, available, fulfilled))
    ready = (
        Said(TRUE, "ready", "System is ready", standing.generation)
        if is_ready
        else Said(FALSE, "not_ready", "System not ready", standing.generation)
    )
    return {
        **_reconciling(standing),
        "Deployed": deployed,
        "Available": available,
        "DependenciesFulfilled": fulfilled,
        "Ready": ready,
    }


def _reconciling(standing: Standing) -> dict[str, Said]:
    """Return the first condition; what cannot be done is not reconciled until somebody edits it."""
    if standing.problem or not standing.is_adopted:
        return beginning(standing.generation)
    text = "Reconciliation completed successfully"
    return {RECONCILING: Said(FALSE, "reconciled", text, standing.generation)}


def _deployed(standing: Standing) -> Said:
    problem = standing.problem or ("" if standing.is_adopted else "Resources not deployed yet")
    return _condition(not problem, "deployed", "Resources deployed", problem, standing.generation)


def _condition(holds: bool, reason: str, yes: str, no: str, generation: int) -> Said:
    return Said(TRUE if holds else FALSE, reason, yes if holds else no, generation)

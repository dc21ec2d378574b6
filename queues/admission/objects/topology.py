"""Topology aliases: short names of levels, which must not be mistaken for one another or for a label.

The order and immutability of levels are rules of the custom resource itself; only this one compares fields
across the list in a way its expression language cannot say well.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from queues.admission.bodies import list_at, map_at
from queues.admission.review import ALLOWED, Request, Verdict, denied


def validate_topology(request: Request) -> Verdict:
    """Refuse doubled aliases and aliases that are also labels."""
    if request.operation == "DELETE":
        return ALLOWED
    problem = alias_problem(request.object)
    return denied(problem) if problem else ALLOWED


def alias_problem(topology: dict[str, Any]) -> str:
    """Return what is wrong with the aliases, or ""."""
    found = list_at(map_at(topology, "spec"), "levels")
    aliases = Counter(str(level["alias"]) for level in found if level.get("alias"))
    labels = {str(level.get("nodeLabel")) for level in found}
    doubled = sorted(alias for alias, count in aliases.items() if count > 1)
    clashing = sorted(alias for alias in aliases if alias in labels)
    parts = []
    if doubled:
        parts.append(
            f"aliases must be unique within the topology; duplicated: [{' '.join(doubled)}]"
        )
    if clashing:
        parts.append(f"an alias must not equal a nodeLabel; conflicting: [{' '.join(clashing)}]")
    return f"invalid topology aliases: {'; '.join(parts)}" if parts else ""

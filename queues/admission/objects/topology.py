"""Validate topology aliases, the short names of levels: unique, and different from every node label.

The order and immutability of levels are rules of the custom resource definition. This rule compares fields across
the list, which CEL expresses poorly.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from queues.admission.bodies import list_at, map_at
from queues.admission.review import ALLOWED, ReviewRequest, Verdict, denied


def validate_topology(request: ReviewRequest) -> Verdict:
    """Refuse duplicate aliases and aliases that are also node labels."""
    if request.operation == "DELETE":
        return ALLOWED
    problem = alias_problem(request.object)
    return denied(problem) if problem else ALLOWED


def alias_problem(topology: dict[str, Any]) -> str:
    """Return what is wrong with the aliases, or ""."""
    levels = list_at(map_at(topology, "spec"), "levels")
    aliases = Counter(str(level["alias"]) for level in levels if level.get("alias"))
    labels = {str(level.get("nodeLabel")) for level in levels}
    duplicates = sorted(alias for alias, count in aliases.items() if count > 1)
    conflicts = sorted(alias for alias in aliases if alias in labels)
    parts = []
    if duplicates:
        parts.append(
            f"aliases must be unique within the topology; duplicated: [{' '.join(duplicates)}]"
        )
    if conflicts:
        parts.append(f"an alias must not equal a nodeLabel; conflicting: [{' '.join(conflicts)}]")
    return f"invalid topology aliases: {'; '.join(parts)}" if parts else ""

"""Which roles the groups of a user give. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from queues.access.rights import Grant

EVERYBODY = "*"

#: (group, role, subtree); an empty subtree is the whole cluster.
RoleRule = tuple[str, str, str]


def groups_of(claim: Any) -> frozenset[str]:
    """Return the groups in a claim: a list of names, or a single name."""
    if isinstance(claim, str):
        return frozenset({claim})
    if not isinstance(claim, list):
        return frozenset()
    return frozenset(group for group in claim if isinstance(group, str))


def grants_of(groups: Collection[str], rules: Iterable[RoleRule]) -> frozenset[Grant]:
    """Return what the rules give to a member of the groups."""
    return frozenset(
        Grant(role, subtree) for group, role, subtree in rules if group in (EVERYBODY, *groups)
    )

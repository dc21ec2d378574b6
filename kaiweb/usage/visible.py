"""Whose use a caller may see. One function decides for REST and exports."""

from __future__ import annotations

from queues.access.rights import Rights
from queues.tree import hierarchy


def visible_queues(rights: Rights, tree: hierarchy.Tree) -> set[str] | None:
    """Return the queues whose use the caller may see; None for all, also those that no longer exist.

    A caller whose roles and token name no subtree sees all; others see the subtrees that they name.
    """
    names: set[str] | None = None
    subtrees = {grant.subtree for grant in rights.grants}
    if "" not in subtrees:
        names = set().union(*(hierarchy.subtree(tree, root) for root in subtrees))
    if rights.token_subtree:
        below = hierarchy.subtree(tree, rights.token_subtree)
        names = below if names is None else names & below
    return names

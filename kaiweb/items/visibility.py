"""Which queues a caller may see, and with them workloads, pods, events and sums.

One function decides for REST, live topics, simulations and exports: `visibility_of`. By default everybody with a role sees
everything; with `KAIWEB_READING=granted` a caller sees the subtrees of the own role bindings, narrowed by that of the token.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from django.db.models import Model, QuerySet

from queues import selectors
from queues.access.rights import Rights
from queues.tree import hierarchy

M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class Visibility:
    """The queues that a caller may see; None for all, also those that no longer exist."""

    queues: frozenset[str] | None = None

    @property
    def is_partial(self) -> bool:
        return self.queues is not None

    def shows(self, queue: str) -> bool:
        """Return whether the queue may be seen."""
        return self.queues is None or queue in self.queues

    def rows(self, rows: QuerySet[M], column: str = "queue") -> QuerySet[M]:
        """Return the rows whose queue may be seen."""
        return rows if self.queues is None else rows.filter(**{f"{column}__in": self.queues})


EVERYTHING = Visibility()


def visibility_of(
    rights: Rights, read_tree: Callable[[], hierarchy.Tree] = selectors.tree
) -> Visibility:
    """Return what the caller may see."""
    return use_visibility_of(rights, read_tree) if rights.reads_only_granted else EVERYTHING


def use_visibility_of(
    rights: Rights, read_tree: Callable[[], hierarchy.Tree] = selectors.tree
) -> Visibility:
    """Return the queues whose use the caller may see: those of the subtrees that roles and token name, in any case."""
    subtrees = {grant.subtree for grant in rights.grants}
    if "" in subtrees and not rights.token_subtree:
        return EVERYTHING
    tree = read_tree()
    names = set(tree)
    if "" not in subtrees:
        names = set().union(*(hierarchy.subtree(tree, root) for root in subtrees))
    if rights.token_subtree:
        names &= hierarchy.subtree(tree, rights.token_subtree)
    return Visibility(frozenset(names))

"""The tree of one topology as arrays: which domain of which level each node belongs to.

Level -1 is the root with its single domain 0. A node that lacks the label of any level is outside the
tree: its domain is -1 on every level, and no constrained pod group can use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scheduler.core.arrays import Bools, Floats, Ints
from scheduler.core.cluster.inputs import NodeInput, TopologyInput

ROOT = -1
OUTSIDE = -1


@dataclass(frozen=True, slots=True)
class Domain:
    """One domain: its level (ROOT for the root) and its index on that level."""

    level: int
    index: int


class DomainTree:
    """Domains of one topology.

    Attributes
    ----------
    levels : node label keys, coarsest first
    domain_of : per level, shape (nodes,): index of the node's domain, OUTSIDE if it has none
    parent : per level, shape (domains,): index of the domain one level up
    ids : per level, the ids of the domains (values of all levels down to its own, joined by a dot)
    id_rank : per level, shape (domains,): position of the domain when the level is sorted by id
    in_tree : shape (nodes,): whether the node has the labels of all levels
    """

    __slots__ = ("domain_of", "id_rank", "ids", "in_tree", "levels", "parent")

    def __init__(self, topology: TopologyInput, nodes: Sequence[NodeInput]) -> None:
        self.levels = topology.levels
        self.in_tree: Bools = np.array(
            [all(level in node.labels for level in self.levels) for node in nodes], dtype=np.bool_
        )
        self.domain_of: list[Ints] = []
        self.parent: list[Ints] = []
        self.ids: list[list[str]] = []
        self.id_rank: list[Ints] = []
        parent_of_node: list[int] = [0 if is_in else OUTSIDE for is_in in self.in_tree.tolist()]
        prefixes = [""]
        for level in self.levels:
            parent_of_node, prefixes = self._add_level(level, nodes, parent_of_node, prefixes)

    def _add_level(
        self, level: str, nodes: Sequence[NodeInput], parent_of_node: list[int], prefixes: list[str]
    ) -> tuple[list[int], list[str]]:
        """Add the domains of a level; return each node's domain and the id prefixes for the level below."""
        index_of: dict[tuple[int, str], int] = {}
        domains = [OUTSIDE] * len(nodes)
        for node_index, node in enumerate(nodes):
            if parent_of_node[node_index] != OUTSIDE:
                key = (parent_of_node[node_index], node.labels[level])
                domains[node_index] = index_of.setdefault(key, len(index_of))
        ids = [f"{prefixes[parent]}{value}" for parent, value in index_of]
        ranks = np.empty(len(ids), dtype=np.int64)
        ranks[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
        self.domain_of.append(np.array(domains, dtype=np.int64))
        self.parent.append(np.array([parent for parent, _ in index_of], dtype=np.int64))
        self.ids.append(ids)
        self.id_rank.append(ranks)
        return domains, [f"{domain_id}." for domain_id in ids]

    def id_of(self, domain: Domain) -> str:
        """Return the id of a domain as it appears in messages."""
        return "root" if domain.level == ROOT else self.ids[domain.level][domain.index]

    def count(self, level: int) -> int:
        """Return how many domains a level has."""
        return 1 if level == ROOT else len(self.ids[level])

    def members(self, domain: Domain) -> Bools:
        """Return for each node whether it is in a domain; shape (nodes,)."""
        if domain.level == ROOT:
            return self.in_tree
        is_member: Bools = self.domain_of[domain.level] == domain.index
        return is_member

    def common_domain(self, nodes: Ints, deepest: int) -> Domain:
        """Return the smallest domain, down to level `deepest`, that holds all of some tree nodes."""
        common = Domain(ROOT, 0)
        for level in range(deepest + 1):
            domains = self.domain_of[level][nodes]
            first = int(domains[0])
            if (domains != first).any():
                break
            common = Domain(level, first)
        return common

    def inside(self, common: Domain, level: int) -> Bools:
        """Return for each domain of a level whether it is `common` or lies in it; shape (domains of the level,)."""
        if level < common.level:
            return np.zeros(self.count(level), dtype=np.bool_)
        if level == common.level:
            is_inside = np.zeros(self.count(level), dtype=np.bool_)
            is_inside[common.index] = True
            return is_inside
        if level == 0:
            return np.ones(self.count(0), dtype=np.bool_)
        is_in_common: Bools = self.inside(common, level - 1)[self.parent[level]]
        return is_in_common

    def sums(self, values: Floats, level: int) -> Floats:
        """Return the sum of the nodes' values for each domain of a level; shape (domains of the level,)."""
        if level == ROOT:
            return np.array([values[self.in_tree].sum()])
        domains = self.domain_of[level][self.in_tree]
        weights = values[self.in_tree]
        return np.bincount(domains, weights, self.count(level)).astype(np.float64)


def searched_levels(levels: Sequence[str], required: str, preferred: str) -> tuple[list[int], str]:
    """Return the levels on which a domain may be chosen, most specific first, or why there are none.

    Returns
    -------
    indices of levels (ROOT for the whole cluster); or an empty list and a sentence that says what is
    wrong, such as the unknown level

    Notes
    -----
    KAI only logs a wrong level; we return the sentence, so that it is shown with the pod group.
    """
    for level in (required, preferred):
        if level and level not in levels:
            return [], f"level {level} is not one of the levels {', '.join(levels)}"
    if not required and not preferred:
        return [], "neither a required nor a preferred level is given"
    deepest = levels.index(preferred or required)
    highest = levels.index(required) if required else ROOT
    if highest > deepest:
        return [], f"the preferred level {preferred} is above the required level {required}"
    return list(range(deepest, highest - 1, -1)), ""

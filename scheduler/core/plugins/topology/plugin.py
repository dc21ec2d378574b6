"""Split the nodes of a placement into topology domains and prefer the freest part of the chosen one.

Among the domains the tightest that suffices is tried first, so that large free domains stay free. Inside
it the freest preferred-level domain scores highest, so that the pods of one gang end up together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler.core.arrays import Bools, Floats, Ints
from scheduler.core.cluster.axis import GPU_ROW
from scheduler.core.cluster.device_backed import device_backed
from scheduler.core.cluster.inputs import TopologyConstraint
from scheduler.core.cluster.podgroups import PodSetLeaf, TreeMember
from scheduler.core.cluster.state import ClusterState
from scheduler.core.plugins.topology.accounting import Need, capacity_of_nodes, tightness
from scheduler.core.plugins.topology.refusals import Refusals, Shortage, by_interest
from scheduler.core.plugins.topology.tree import ROOT, Domain, DomainTree, searched_levels
from scheduler.core.session.gang import GangView
from scheduler.core.session.nodeset import NodeSet
from scheduler.core.session.session import Session

SCORE = 100_000.0


class TopologyPlugin:
    """Registers the splitter of node sets."""

    name = "topology"

    def open(self, session: Session) -> None:
        """Register the topologies; their trees are built when a pod group first names them."""
        self._session = session
        self._state: ClusterState = session.state
        self._topologies = {
            topology.name: topology for topology in session.state.cluster_input.topologies
        }
        self._trees: dict[str, DomainTree] = {}
        self._device_backed = _device_backed_rows(session.state)
        session.hooks.splitters.append(self)

    def concerns(self, member: TreeMember) -> bool:
        """Return whether this member has a topology constraint."""
        return member.topology is not None and member.topology.topology != ""

    def split(
        self,
        view: GangView,
        member: TreeMember,
        tasks: Sequence[int],
        nodes: NodeSet,
        *,
        record: bool,
    ) -> list[NodeSet]:
        """Return the domains to try, best first.

        record : record in the fit log why there is none
        """
        constraint = member.topology
        assert constraint is not None  # because `concerns` is true
        refusals = Refusals(self._session, view, member, constraint) if record else None
        tree = self._tree(constraint.topology)
        if tree is None:
            if refusals:
                refusals.add(f"Requested topology {constraint.topology} does not exist")
            return []
        if not (constraint.required_level or constraint.preferred_level):
            # A segmented workload names the topology here and the levels in its segments.
            return [nodes]
        levels, problem = searched_levels(
            tree.levels, constraint.required_level, constraint.preferred_level
        )
        if not levels:
            if refusals:
                refusals.unsatisfied(f": {problem}")
            return []
        valid = nodes.indices[tree.in_tree[nodes.indices]]
        search = _Search(
            self._state, tree, levels, constraint, Need(self._state, tasks, self._device_backed)
        )
        if not len(valid) or not search.common_domain_fits(valid):
            if refusals:
                refusals.unsatisfied(
                    f": not enough resources in {search.place_text} to allocate the job"
                )
            return []
        domains = search.candidates(self._pinned(tree, view, member, constraint))
        if not domains and refusals:
            search.explain(refusals)
        scores = search.scores() if constraint.preferred_level else nodes.extra_scores
        valid_mask = np.zeros(len(self._state.nodes), dtype=np.bool_)
        valid_mask[valid] = True
        return [
            NodeSet.of(np.flatnonzero(tree.members(domain) & valid_mask).tolist(), scores)
            for domain in domains
        ]

    def _tree(self, name: str) -> DomainTree | None:
        tree = self._trees.get(name)
        if tree is None and name in self._topologies:
            tree = DomainTree(self._topologies[name], self._state.nodes.inputs)
            self._trees[name] = tree
        return tree

    def _pinned(
        self, tree: DomainTree, view: GangView, member: TreeMember, constraint: TopologyConstraint
    ) -> set[int] | None:
        """Return the required-level domains where the member runs already; None if it may run in any."""
        if not constraint.required_level:
            return None
        leaves = [member] if isinstance(member, PodSetLeaf) else member.pod_sets()
        domain_of = tree.domain_of[tree.levels.index(constraint.required_level)]
        homes = {
            int(domain_of[self._state.tasks.node[task]])
            for leaf in leaves
            for task in view.active_tasks(leaf.index)
            if self._state.tasks.node[task] >= 0
        }
        return homes or None


class _Search:
    """One search in the tree: the domains of some levels that have room for some tasks."""

    def __init__(
        self,
        state: ClusterState,
        tree: DomainTree,
        levels: list[int],
        constraint: TopologyConstraint,
        need: Need,
    ) -> None:
        self._state = state
        self._tree = tree
        self._levels = levels
        self._need = need
        self._required = (
            tree.levels.index(constraint.required_level) if constraint.required_level else ROOT
        )
        self._common = Domain(ROOT, 0)
        self._capacity = capacity_of_nodes(state.nodes, need) if need.is_uniform else None
        #: Level -> what `tightness` returns for its domains, shape (domains,).
        self._tightness: dict[int, Floats] = {}

    def common_domain_fits(self, valid: Ints) -> bool:
        """Find the smallest domain that holds all valid nodes; return whether the tasks fit into it."""
        self._common = self._tree.common_domain(valid, self._levels[0])
        return bool(self._fits(self._common.level)[self._common.index])

    def candidates(self, pinned: set[int] | None) -> list[Domain]:
        """Return the fitting domains: deepest level first, inside a level tightest branch first."""
        domains: list[Domain] = []
        for level in self._levels:
            if level < self._common.level:
                break
            fits = self._fits(level) & self._tree.inside(self._common, level)
            if pinned is not None:
                fits &= self._descends_from(pinned, level)
            order = self._order(level)
            domains += [Domain(level, int(index)) for index in order if fits[index]]
        return domains

    def scores(self) -> Floats:
        """Return shape (nodes,): the freest preferred-level domain highest, NaN outside."""
        level = self._levels[0]
        tree = self._tree
        inside = tree.inside(self._common, level)
        order = [index for index in self._order(level).tolist() if inside[index]]
        of_domain = np.full(tree.count(level), np.nan)
        for rank, index in enumerate(order):
            of_domain[index] = float(10 * (rank + 1) // len(order)) * SCORE
        domains = tree.domain_of[level]
        return np.where(domains >= 0, of_domain[domains], np.nan)

    def explain(self, refusals: Refusals) -> None:
        """Record which domains of the coarsest level searched lack room.

        Those that have room are ruled out by tasks of the member that run elsewhere; nothing is said of them.
        """
        level = max(self._levels[-1], self._common.level)
        is_lacking = self._tree.inside(self._common, level) & ~self._fits(level)
        room = None if self._capacity is None else self._sums(self._capacity, level)
        for index in np.flatnonzero(is_lacking).tolist():
            name = self._tree.id_of(Domain(level, index))
            if room is not None:
                refusals.too_small(name, int(room[index]), self._need.count)
            else:
                refusals.lacking(name, self._shortages(level, index))
        refusals.unsatisfied("")

    @property
    def place_text(self) -> str:
        """Return the name, in messages, of the smallest domain that holds all nodes."""
        return "the cluster" if self._common.level == ROOT else self._tree.id_of(self._common)

    def _fits(self, level: int) -> Bools:
        if self._capacity is not None:
            fits: Bools = self._sums(self._capacity, level) >= self._need.count
        else:
            fits = self._ratios(level) <= 1
        return fits

    def _ratios(self, level: int) -> Floats:
        ratios = self._tightness.get(level)
        if ratios is None:
            ratios = self._tightness[level] = tightness(
                self._state.nodes, self._need, lambda values: self._sums(values, level)
            )
        return ratios

    def _sums(self, values: Floats, level: int) -> Floats:
        return self._tree.sums(values, level)

    def _shortages(self, level: int, index: int) -> list[Shortage]:
        nodes, names = self._state.nodes, self._state.axis.names
        shortages = []
        for row in by_interest(self._need.summed_rows()):
            free = float(self._sums(nodes.idle[row] + nodes.releasing[row], level)[index])
            if free < self._need.total[row]:
                shortages.append((row, names[row], self._need.total[row], free))
        return shortages

    def _order(self, level: int) -> Ints:
        """Return the domains of a level in the order of the sorted tree, left to right."""
        if level == ROOT:
            return np.zeros(1, dtype=np.int64)
        rank_above = np.zeros(1, dtype=np.int64)
        order = rank_above
        for upper in range(level + 1):
            keys = (
                self._tree.id_rank[upper],
                -self._ratios(upper),
                rank_above[self._tree.parent[upper]],
            )
            order = np.lexsort(keys)
            rank_above = np.empty(len(order), dtype=np.int64)
            rank_above[order] = np.arange(len(order))
        return order

    def _descends_from(self, pinned: set[int], level: int) -> Bools:
        """Return shape (domains of the level,): which lie in a required-level domain of `pinned`."""
        allowed = np.isin(np.arange(self._tree.count(self._required)), sorted(pinned))
        for lower in range(self._required + 1, level + 1):
            allowed = allowed[self._tree.parent[lower]]
        return allowed


def _device_backed_rows(state: ClusterState) -> frozenset[int]:
    """Return the rows of extended resources that a device class provides."""
    rows = state.axis.row_of
    return frozenset(
        rows[name]
        for name in device_backed(state.cluster_input.devices)
        if name in rows and rows[name] != GPU_ROW
    )

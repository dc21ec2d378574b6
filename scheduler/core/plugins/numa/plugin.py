"""NUMA alignment, opt-in: a filter and a score of nodes, and the ledger of what their zones have free."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scheduler.core.arrays import Bools, Floats
from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.inputs import NumaShare, NumaTopology
from scheduler.core.cluster.state import ClusterState
from scheduler.core.cluster.status import ACTIVE_ALLOCATED
from scheduler.core.plugins.numa.align import ALIGNING, STRICT, choose_zones, take_from_zones
from scheduler.core.plugins.numa.demand import GUARANTEED, NumaDemand, is_device, read_demand
from scheduler.core.plugins.spec import ArgumentTexts
from scheduler.core.session.fit import NodeReason, NodeReasonKind
from scheduler.core.session.hooks import Scope
from scheduler.core.session.nodeset import NodeSet
from scheduler.core.session.session import Session

MAX_SCORE = 100.0

#: Zone -> the amounts a task takes there.
ZoneShares = dict[int, dict[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class NumaArguments:
    """Arguments of the plugin.

    Attributes
    ----------
    ignore : names of resources that are not aligned
    reconstruct_available : compute what a zone has free from the tasks placed there, instead of using
        the amounts that the node reports
    """

    ignore: tuple[str, ...] = ()
    reconstruct_available: bool = True

    @classmethod
    def parse(cls, texts: ArgumentTexts) -> NumaArguments:
        """Return the arguments of a configuration; what it does not name has its default."""
        names = (name.strip() for name in texts.text("ignoreList", "").split(","))
        return cls(
            ignore=tuple(name for name in names if name),
            reconstruct_available=texts.flag("reconstructAvailable", default=True),
        )


class NumaPlugin:
    """Aligns tasks to NUMA zones; does nothing in a cluster whose nodes report no zones.

    Attributes
    ----------
    free : per node, per zone: the free amounts by resource; empty for nodes whose policy does not align
    """

    name = "numa"
    scope = Scope.NODE

    def __init__(self, arguments: NumaArguments) -> None:
        self._arguments = arguments

    def open(self, session: Session) -> None:
        """Build the ledger from the running tasks, and register the hooks."""
        self._state: ClusterState = session.state
        self._topologies = [node.numa for node in session.state.nodes.inputs]
        if not any(self._topologies):
            return
        self._most_zones = max(len(numa.zones) for numa in self._topologies if numa)
        self._aligned: list[frozenset[str]] = [
            self._aligned_resources(numa) for numa in self._topologies
        ]
        self._devices = frozenset(
            name for resources in self._aligned for name in resources if is_device(name)
        )
        self._demands: dict[tuple[int, frozenset[str], bool], NumaDemand] = {}
        self.free: list[list[dict[str, float]]] = [
            self._free_at_start(n) for n in range(len(self._aligned))
        ]
        session.hooks.filters.append(self)
        session.hooks.scores.append(self)
        session.hooks.listeners.append(self)
        session.hooks.numa = self

    def concerns(self, task_class: TaskClass) -> bool:
        """Return whether tasks are Guaranteed or request a device that some node aligns."""
        return task_class.constraints.qos_class == GUARANTEED or bool(
            self._devices & self._requested(task_class)
        )

    # ------------------------------------------------------------------------------------- filter

    def mask(self, task: int, task_class: TaskClass) -> Bools:
        """Return which nodes can align a task."""
        nodes = range(len(self._topologies))
        return np.array([self.passes(task, task_class, node) for node in nodes], dtype=np.bool_)

    def passes(self, task: int, task_class: TaskClass, node: int) -> bool:
        """Return whether one node can align a task."""
        del task
        topology = self._topologies[node]
        if topology is None or topology.policy not in STRICT or not self._aligns(task_class, node):
            return True
        return self._shares(task_class, node) is not None

    def reasons(self, task: int, task_class: TaskClass, node: int) -> tuple[NodeReason, ...]:
        """Return the only reason of this filter."""
        del task, task_class, node
        return (NodeReason(NodeReasonKind.NUMA),)

    # -------------------------------------------------------------------------------------- score

    def scores(self, task: int, task_class: TaskClass, nodes: NodeSet) -> Floats:
        """Return the score of each node of a set."""
        return np.array([self.score(task, task_class, node) for node in nodes.indices.tolist()])

    def score(self, task: int, task_class: TaskClass, node: int) -> float:
        """Return 100 divided by the number of zones that the task would span; 0 where it cannot be aligned."""
        del task
        topology = self._topologies[node]
        if topology is None:
            return MAX_SCORE / self._most_zones
        if topology.policy not in ALIGNING or not self._aligns(task_class, node):
            return MAX_SCORE / max(len(topology.zones), 1)
        shares = self._shares(task_class, node)
        return 0.0 if shares is None else MAX_SCORE / max(len(shares), 1)

    # ------------------------------------------------------------------------------------- ledger

    def plan(self, task: int, node: int) -> tuple[NumaShare, ...]:
        """Return what a task would take from which zone of a node."""
        topology = self._topologies[node]
        task_class = self._state.tasks.task_class[task]
        if (
            topology is None
            or topology.policy not in ALIGNING
            or not self._aligns(task_class, node)
        ):
            return ()
        shares = self._shares(task_class, node) or {}
        return tuple(
            NumaShare(zone=topology.zones[zone].zone, amounts=tuple(sorted(shares[zone].items())))
            for zone in sorted(shares)
        )

    def placed(self, task: int, node: int) -> None:
        """Charge the zones of a task that was placed."""
        self._charge(task, node, -1.0)

    def left(self, task: int, node: int) -> None:
        """Release the zones of a task that was evicted."""
        self._charge(task, node, 1.0)

    def _charge(self, task: int, node: int, sign: float) -> None:
        journal = self._state.journal
        for zone, amounts in self._record(task, node):
            free = self.free[node][zone]
            for name, amount in amounts:
                journal.insert(free, name, free.get(name, 0.0) + sign * amount)

    def _record(self, task: int, node: int) -> list[tuple[int, tuple[tuple[str, float], ...]]]:
        """Return a task's placement by zone index; nothing if any zone of it is unknown."""
        shares = self._state.tasks.numa.get(task)
        topology = self._topologies[node]
        if not shares or topology is None or not self.free[node]:
            return []
        index_of = {zone.zone: index for index, zone in enumerate(topology.zones)}
        if any(share.zone not in index_of for share in shares):
            return []
        return [(index_of[share.zone], share.amounts) for share in shares]

    def _free_at_start(self, node: int) -> list[dict[str, float]]:
        """Return the free amounts of each zone of a node when the session opens."""
        topology = self._topologies[node]
        if topology is None or topology.policy not in ALIGNING:
            return []
        if not self._arguments.reconstruct_available:
            return [dict(zone.available) for zone in topology.zones]
        free = [dict(zone.allocatable) for zone in topology.zones]
        index_of = {zone.zone: index for index, zone in enumerate(topology.zones)}
        tasks = self._state.tasks
        for task in self._state.nodes.tasks[node]:
            shares = tasks.numa.get(task, ())
            if not ACTIVE_ALLOCATED[tasks.status[task]]:
                continue
            if any(share.zone not in index_of for share in shares):
                continue
            for share in shares:
                zone_free = free[index_of[share.zone]]
                for name, amount in share.amounts:
                    zone_free[name] = zone_free.get(name, 0.0) - amount
        return free

    # ------------------------------------------------------------------------------------ helpers

    def _aligned_resources(self, topology: NumaTopology | None) -> frozenset[str]:
        """Return the resources that a node reports in some zone and that this session aligns."""
        if topology is None or topology.policy not in ALIGNING:
            return frozenset()
        row_of = self._state.axis.row_of
        return frozenset(
            name
            for zone in topology.zones
            for name in zone.allocatable
            if name in row_of and name not in self._arguments.ignore
        )

    def _requested(self, task_class: TaskClass) -> frozenset[str]:
        names = self._state.axis.names
        return frozenset(
            names[row] for row, amount in enumerate(task_class.vector.tolist()) if amount
        )

    def _aligns(self, task_class: TaskClass, node: int) -> bool:
        """Return whether the kubelet of a node would align tasks of this class."""
        if task_class.constraints.qos_class == GUARANTEED:
            return True
        return any(is_device(name) for name in self._aligned[node] & self._requested(task_class))

    def _shares(self, task_class: TaskClass, node: int) -> ZoneShares | None:
        """Return what a task would take from which zone; None if the policy refuses it."""
        topology = self._topologies[node]
        if topology is None:
            return None
        per_container = topology.scope == "container"
        key = (task_class.index, self._aligned[node], per_container)
        demand = self._demands.get(key)
        if demand is None:
            demand = self._demands[key] = read_demand(
                task_class, self._state.axis, self._aligned[node], per_container=per_container
            )
        allocatable = [zone.allocatable for zone in topology.zones]
        free = self.free[node]
        for request in demand.init:
            if choose_zones(topology.policy, allocatable, free, request) is None:
                return None
        remaining = [dict(zone) for zone in free]
        total: ZoneShares = {}
        for request in demand.main:
            zones = choose_zones(topology.policy, allocatable, remaining, request)
            if zones is None:
                return None
            for zone, amounts in take_from_zones(remaining, zones, request).items():
                sums = total.setdefault(zone, {})
                for name, amount in amounts.items():
                    sums[name] = sums.get(name, 0.0) + amount
                    remaining[zone][name] -= amount
        return total

"""Pod groups: the subgroup tree, priority, preemptibility, and the times kept in annotations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

from kube.keys import (
    HOLD,
    LAST_EVICTION,
    LAST_START,
    MAX_RUN_TIME,
    REQUEUE_BEFORE,
    RUN_DEADLINE,
    STALE_SINCE,
)
from kube.objects import podgroup as api
from kube.objects.cluster import PriorityClass
from kube.objects.podgroup import (
    NON_PREEMPTIBLE,
    PREEMPTIBILITIES,
    SEMI_PREEMPTIBLE,
    PodGroup,
    SubGroup,
)
from kube.objects.topology import Topology
from kube.process.set_aside import SetAside
from kube.resources import PODGROUPS
from kube.store import StoreView
from kube.values.durations import seconds_or_none
from kube.values.times import time_or_none
from queues.workloads.conditions import is_backed_off
from queues.workloads.holds import hold_of
from queues.workloads.users import user_of
from scheduler.core.cluster.inputs import (
    DEFAULT_SUBGROUP,
    PodGroupInput,
    PodSetInput,
    SubGroupInput,
    TaskInput,
    TopologyConstraint,
)
from scheduler.load.changes import Following, SortedValues, changed_keys
from scheduler.settings.params import ShardParams

FALLBACK_PRIORITY = 50
NON_PREEMPTIBLE_FROM = 100
#: Annotations for which pods may have to be evicted outside of the core.
_MARKS = frozenset({REQUEUE_BEFORE, MAX_RUN_TIME, RUN_DEADLINE})
UNSCHEDULABLE_ON_POOL = "UnschedulableOnNodePool"

Aliases = Mapping[str, Mapping[str, str]]


@dataclass(slots=True)
class GroupShape:
    """The parts of a pod group that do not change from cycle to cycle."""

    group: PodGroup
    root: SubGroupInput
    pod_sets: frozenset[str]
    last_start: float | None
    last_eviction: float | None
    stale_since: float | None
    staleness_grace_s: float | None
    preemption_delay_s: float
    user: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshMarks:
    """Timestamps (Unix seconds) written a moment ago, which the group may not carry yet."""

    last_start: float | None
    last_eviction: float | None
    stale_since: float | None
    until: float


@dataclass(slots=True)
class GroupTable:
    """The pod groups of a shard, kept from cycle to cycle; only those that changed are converted again.

    Attributes
    ----------
    shapes : of the pod groups that take part in this cycle, by key
    orphaning : keys of those with tasks of subgroups that they do not have
    marked : keys of those with an annotation by which the cycle may have to evict pods (requeue, maximum run time)
    judged : keys of those whose status says why they wait, or waited
    """

    params: ShardParams
    origin: float
    aside: SetAside = field(default_factory=lambda: SetAside("snapshot"))
    shapes: dict[str, GroupShape] = field(default_factory=dict)
    orphaning: set[str] = field(default_factory=set)
    marked: set[str] = field(default_factory=set)
    judged: set[str] = field(default_factory=set)
    _groups: Following[PodGroup] = field(default_factory=lambda: Following(PODGROUPS))
    _aliases: Aliases = field(default_factory=dict)
    #: Keys of groups that cannot be read, and of those that a person holds back.
    _unreadable: set[str] = field(default_factory=set)
    _holding: set[str] = field(default_factory=set)
    #: What the inputs were made from besides their shapes and members.
    _classes: Mapping[str, PriorityClass] = field(default_factory=dict)
    _marks: dict[str, FreshMarks] = field(default_factory=dict)
    _sorted: SortedValues[PodGroupInput] = field(default_factory=SortedValues)

    def follow(self, view: StoreView, aliases: Aliases) -> tuple[set[str], set[str]]:
        """Take in the pod groups of a cycle.

        Returns
        -------
        the keys of those whose shape changed, and of those that began or ceased to take part
        """
        suspects = self._groups.follow(view) | self._unreadable
        groups = self._groups.objects
        if aliases is not self._aliases:
            suspects |= groups.keys()
        self._aliases = aliases
        changed, toggled = set(), set()
        for key in suspects:
            group = groups.get(key)
            old, new = self.shapes.pop(key, None), self._shape(key, group)
            if new is not None:
                self.shapes[key] = new
            if old is not None or new is not None:
                changed.add(key)
            if (old is None) != (new is None):
                toggled.add(key)
            self._index(key, group)
        return changed, toggled

    def _index(self, key: str, group: PodGroup | None) -> None:
        annotations = {} if group is None else group.metadata.annotations
        is_judged = group is not None and bool(group.status.scheduling_conditions)
        for keys, is_member in (
            (self._holding, HOLD in annotations),
            (self.marked, not _MARKS.isdisjoint(annotations)),
            (self.judged, is_judged),
        ):
            (keys.add if is_member else keys.discard)(key)

    def _shape(self, key: str, group: PodGroup | None) -> GroupShape | None:
        """Return the shape of a group; None if it takes no part."""
        self._unreadable.discard(key)
        if group is None or not self.params.owns(group.metadata.labels):
            return None
        shape = self.aside.read("PodGroup", group, partial(group_shape, aliases=self._aliases))
        if shape is None:
            self._unreadable.add(key)
            return None
        return None if is_backed_off(group, self.params.node_pool_label_key) else shape

    def orphans(self) -> list[TaskInput]:
        """Return the tasks of subgroups that their pod groups do not have."""
        keys = sorted(self.orphaning)
        return [task for key in keys for task in self._sorted[key].invalid_subgroup_tasks]

    def held(self, now: float) -> frozenset[str]:
        """Return the keys of the pod groups whose waiting pods a person holds back at `now` (Unix time)."""
        moment = datetime.fromtimestamp(now, UTC)
        holds = {
            key: hold_of(self._groups.objects[key].metadata.annotations) for key in self._holding
        }
        return frozenset(key for key, hold in holds.items() if hold and hold.applies(moment))

    def inputs(
        self,
        changed: set[str],
        members: Callable[[str], tuple[TaskInput, ...]],
        classes: Mapping[str, PriorityClass],
        marks: Mapping[str, FreshMarks],
    ) -> tuple[PodGroupInput, ...]:
        """Return the inputs of all pod groups that take part, sorted by key.

        Parameters
        ----------
        changed : keys of those whose shape or members changed
        members : the tasks of a pod group, by its key
        classes : priority classes by name
        marks : timestamps of pod groups, written a moment ago
        """
        changed = changed | changed_keys(self._marks, marks)
        if classes is not self._classes:
            changed |= self.shapes.keys()
        self._classes, self._marks = classes, dict(marks)
        if not changed:
            return self._sorted.values()
        fallback = fallback_priority(classes)
        for key in changed:
            self.orphaning.discard(key)
            shape = self.shapes.get(key)
            if shape is None:
                self._sorted.remove(key)
                continue
            group = group_input(shape, members(key), classes, fallback, self.origin, marks.get(key))
            self._sorted.put(key, group)
            if group.invalid_subgroup_tasks:
                self.orphaning.add(key)
        return self._sorted.values()


def group_input(
    shape: GroupShape,
    tasks: tuple[TaskInput, ...],
    classes: Mapping[str, PriorityClass],
    fallback_priority: int,
    origin: float,
    fresh: FreshMarks | None = None,
) -> PodGroupInput:
    """Join a shape with the tasks of this cycle; fresh timestamps overrule those it carries.

    origin : Unix time that all times count from
    """
    times = shape if fresh is None else fresh
    group = shape.group
    meta, spec = group.metadata, group.spec
    named = classes.get(spec.priority_class_name)
    priority = named.value if named is not None else fallback_priority
    invalid = tuple(task for task in tasks if task.subgroup not in shape.pod_sets)
    members = tuple(task for task in tasks if task.subgroup in shape.pod_sets) if invalid else tasks
    return PodGroupInput(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        queue=spec.queue,
        priority=priority,
        preemptible=is_preemptible(spec.preemptibility, priority),
        protects_minimum=spec.preemptibility == SEMI_PREEMPTIBLE,
        created=meta.created - origin,
        root=shape.root,
        tasks=members,
        invalid_subgroup_tasks=invalid,
        last_start=_relative(times.last_start, origin),
        last_eviction=_relative(times.last_eviction, origin),
        stale_since=_relative(times.stale_since, origin),
        staleness_grace_s=shape.staleness_grace_s,
        preemption_delay_s=shape.preemption_delay_s,
        user=shape.user,
    )


def is_preemptible(stated: str, priority: int) -> bool:
    """Return whether pods of a group may be evicted for others: its own field decides, else its priority."""
    if stated in PREEMPTIBILITIES:
        return stated != NON_PREEMPTIBLE
    return priority < NON_PREEMPTIBLE_FROM


def fallback_priority(classes: Mapping[str, PriorityClass]) -> int:
    """Return the priority of groups whose class is missing."""
    default = [item.value for item in classes.values() if item.global_default]
    return max(default) if default else FALLBACK_PRIORITY


def level_aliases(topologies: Mapping[str, Topology]) -> Aliases:
    """Return the aliases of each topology's levels."""
    return {
        name: {level.alias: level.node_label for level in item.spec.levels if level.alias}
        for name, item in topologies.items()
    }


def group_shape(group: PodGroup, aliases: Aliases) -> GroupShape:
    """Convert the parts of a pod group that do not change from cycle to cycle."""
    annotations = group.metadata.annotations
    root = _tree(group, aliases)
    return GroupShape(
        group=group,
        root=root,
        pod_sets=frozenset(_leaves(root)),
        last_start=_moment(annotations.get(LAST_START, "")),
        last_eviction=_moment(annotations.get(LAST_EVICTION, "")),
        stale_since=_moment(annotations.get(STALE_SINCE, "")),
        staleness_grace_s=seconds_or_none(group.spec.staleness_grace_period),
        preemption_delay_s=max(0.0, seconds_or_none(group.spec.preemption_delay) or 0.0),
        user=user_of(group.metadata.labels, annotations),
    )


def _tree(group: PodGroup, aliases: Aliases) -> SubGroupInput:
    spec = group.spec
    topology = _constraint(spec.topology_constraint, aliases)
    if not spec.sub_groups:
        least = 1 if spec.min_member is None else spec.min_member
        pod_set = PodSetInput(name=DEFAULT_SUBGROUP, min_available=least)
        return SubGroupInput(
            min_subgroups=spec.min_sub_group, topology=topology, pod_sets=(pod_set,)
        )
    children = _children(spec.sub_groups)
    if children is None:
        return SubGroupInput(topology=topology, pod_sets=(PodSetInput(),))
    groups, pod_sets = _members("", children, aliases)
    return SubGroupInput(
        min_subgroups=spec.min_sub_group, topology=topology, subgroups=groups, pod_sets=pod_sets
    )


def _children(subgroups: tuple[SubGroup, ...]) -> dict[str, list[SubGroup]] | None:
    """Return the subgroups by parent; None if names repeat, a parent is missing, or there is a loop."""
    names = [item.name for item in subgroups]
    parents = {item.name: item.parent.lower() for item in subgroups}
    if len(set(names)) != len(names) or any(up and up not in parents for up in parents.values()):
        return None
    for name in names:
        seen, up = {name}, parents[name]
        while up:
            if up in seen:
                return None
            seen.add(up)
            up = parents[up]
    children: dict[str, list[SubGroup]] = {}
    for item in subgroups:
        children.setdefault(parents[item.name], []).append(item)
    return children


def _members(
    parent: str, children: Mapping[str, list[SubGroup]], aliases: Aliases
) -> tuple[tuple[SubGroupInput, ...], tuple[PodSetInput, ...]]:
    groups: list[SubGroupInput] = []
    pod_sets: list[PodSetInput] = []
    for item in children.get(parent, ()):
        topology = _constraint(item.topology_constraint, aliases)
        if item.name in children:
            below, leaves = _members(item.name, children, aliases)
            groups.append(
                SubGroupInput(
                    name=item.name,
                    min_subgroups=item.min_sub_group,
                    topology=topology,
                    subgroups=below,
                    pod_sets=leaves,
                )
            )
        else:
            least = item.min_member or 0
            pod_sets.append(PodSetInput(name=item.name, min_available=least, topology=topology))
    return tuple(groups), tuple(pod_sets)


def _leaves(root: SubGroupInput) -> list[str]:
    names = [pod_set.name for pod_set in root.pod_sets]
    for group in root.subgroups:
        names.extend(_leaves(group))
    return names


def _constraint(
    stated: api.TopologyConstraint | None, aliases: Aliases
) -> TopologyConstraint | None:
    if stated is None or not stated.topology:
        return None
    level_aliases = aliases.get(stated.topology, {})
    return TopologyConstraint(
        topology=stated.topology,
        required_level=level_aliases.get(
            stated.required_topology_level, stated.required_topology_level
        ),
        preferred_level=level_aliases.get(
            stated.preferred_topology_level, stated.preferred_topology_level
        ),
    )


def _moment(text: str) -> float | None:
    moment = time_or_none(text)
    return None if moment is None else moment.timestamp()


def _relative(moment: float | None, origin: float) -> float | None:
    return None if moment is None else moment - origin

"""Pod groups: the subgroup tree, priority, preemptibility, and the times kept in annotations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

from kube.keys import HOLD, LAST_EVICTION, LAST_START, STALE_SINCE
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
from scheduler.settings.params import ShardParams

FALLBACK_PRIORITY = 50
NON_PREEMPTIBLE_FROM = 100
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
class GroupBuilder:
    """Converts pod groups and caches the shapes of those that did not change."""

    params: ShardParams
    aside: SetAside = field(default_factory=lambda: SetAside("snapshot"))
    #: Pod group key -> the shape and the aliases of the last call.
    _cache: dict[str, tuple[GroupShape, Aliases]] = field(default_factory=dict)

    def shapes(self, groups: Mapping[str, PodGroup], aliases: Aliases) -> dict[str, GroupShape]:
        """Return the shapes of the shard's groups that take part in this cycle."""
        previous, self._cache = self._cache, {}
        shapes = {}
        for key, group in groups.items():
            if not self.params.owns(group.metadata.labels):
                continue
            entry = previous.get(key)
            if entry is None or entry[0].group is not group or entry[1] is not aliases:
                shape = self.aside.read("PodGroup", group, partial(group_shape, aliases=aliases))
                if shape is None:
                    continue
                entry = (shape, aliases)
            self._cache[key] = entry
            if not is_backed_off(group, self.params.node_pool_label_key):
                shapes[key] = entry[0]
        return shapes


def held_groups(groups: Mapping[str, PodGroup], now: float) -> frozenset[str]:
    """Return the keys of the pod groups whose waiting pods a person holds back at `now` (Unix time)."""
    moment = datetime.fromtimestamp(now, UTC)
    holds = {
        key: hold_of(group.metadata.annotations)
        for key, group in groups.items()
        if HOLD in group.metadata.annotations
    }
    return frozenset(key for key, hold in holds.items() if hold and hold.applies(moment))


def group_input(
    shape: GroupShape,
    tasks: tuple[TaskInput, ...],
    classes: Mapping[str, PriorityClass],
    fallback_priority: int,
    now: float,
    fresh: FreshMarks | None = None,
) -> PodGroupInput:
    """Join a shape with the tasks of this cycle; fresh timestamps overrule those it carries."""
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
        created=meta.created - now,
        root=shape.root,
        tasks=members,
        invalid_subgroup_tasks=invalid,
        last_start=_relative(times.last_start, now),
        last_eviction=_relative(times.last_eviction, now),
        stale_since=_relative(times.stale_since, now),
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
    known = aliases.get(stated.topology, {})
    return TopologyConstraint(
        topology=stated.topology,
        required_level=known.get(stated.required_topology_level, stated.required_topology_level),
        preferred_level=known.get(stated.preferred_topology_level, stated.preferred_topology_level),
    )


def _moment(text: str) -> float | None:
    moment = time_or_none(text)
    return None if moment is None else moment.timestamp()


def _relative(moment: float | None, now: float) -> float | None:
    return None if moment is None else moment - now

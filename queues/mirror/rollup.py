"""Compute the sums over the pods of each pod group and node.

After every chunk, the sums of the pod groups and nodes that it touched are computed again from their pods, in the
same transaction. Computing them anew instead of adding and subtracting makes duplicates, lost events and restarts
harmless. Unchanged rows are not written.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils import timezone

from kube.objects.pod import FINISHED_PHASES
from queues import live
from queues.mirror import bulk
from queues.models import Node, Pod, PodGroup, PriorityClass, Queue, WorkloadState
from queues.tree import hierarchy
from queues.tree.shape import QueueShape
from queues.workloads import devices, reasons
from queues.workloads.holds import Hold

DEFAULT_PRIORITY = 50
SHOWN_NODES = 16
GROUP_SUMS = (
    "state", "priority", "pods", "pods_pending", "pods_gated", "pods_bound", "pods_succeeded",
    "pods_failed", "gpu", "gpu_kind", "nodes", "started_at", "reason_code", "reason_text",
    "reason_since", "position",
)  # fmt: skip
#: What the sums of a pod group, and those of a node, are computed from.
GROUP_PARTS = (
    "key", "group", "phase", "node", "is_gated", "gpu", "gpu_kind", "started_at", "reason", "message", "reason_since",
)  # fmt: skip
NODE_PARTS = ("key", "node", "gpu", "cpu", "memory", "gpu_groups", "reserves_group", "devices")
NODE_SUMS = ("used_gpu", "used_cpu", "used_memory", "pods")
WAITING = (WorkloadState.PENDING, WorkloadState.GATED, WorkloadState.PARTIAL)


def _none(_keys: Collection[str]) -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True, slots=True)
class ReasonSources:
    """Functions of other apps that return reasons by pod group; each takes keys and may leave some out.

    Attributes
    ----------
    bind_errors : the error of a failed bind request
    standings : the reason and the place in the order from the scheduler's last cycle
    """

    bind_errors: Callable[[Collection[str]], Mapping[str, str]] = _none
    standings: Callable[[Collection[str]], Mapping[str, reasons.Standing]] = _none


@dataclass(slots=True)
class Touched:
    """The keys of rows that a chunk of events from the cluster changed."""

    groups: set[str] = field(default_factory=set)
    #: Keys of pods; the sums of their groups are computed again.
    pods: set[str] = field(default_factory=set)
    #: Keys of pods that are shown in another way, though no sum changed.
    shown_pods: set[str] = field(default_factory=set)
    nodes: set[str] = field(default_factory=set)
    #: Queues whose own row, children or pod groups changed.
    queues: set[str] = field(default_factory=set)
    #: Queues that were created, deleted or put below another parent.
    moved_queues: set[str] = field(default_factory=set)
    #: Priority classes whose value changed; the priorities of their groups are computed again.
    priority_classes: set[str] = field(default_factory=set)


def _lock_nothing(_pods: Collection[str]) -> None:
    """Lock no pods: nobody else writes them."""


def roll_up(
    touched: Touched,
    tree: TreeView,
    sources: ReasonSources,
    *,
    others: Mapping[live.Kind, Iterable[str]] | None = None,
    lock_pods: Callable[[Collection[str]], None] = _lock_nothing,
) -> None:
    """Compute the touched sums and record the changes; call it inside the chunk's transaction.

    Parameters
    ----------
    others : further entries of the live log, from `queues.mirror.handover`
    lock_pods : called with keys before the rows of these pods are written
    """
    touched.groups |= groups_behind(touched, tree)
    changed_queues = _roll_up_groups(touched.groups, tree, sources)
    _roll_up_nodes(touched.nodes, lock_pods)
    queues: set[str] = set()
    for name in changed_queues | touched.queues:
        queues.update(tree.path(name) or [name])
    if touched.shown_pods:
        # Under the lock of the log: a pod that is not visible yet is recorded later, by whoever writes it.
        live.order_commits()
    workloads = touched.groups | _groups_of(touched.shown_pods)
    live.record_all(
        {**(others or {}), "workload": workloads, "node": touched.nodes, "queue": queues}
    )


def groups_behind(touched: Touched, tree: TreeView) -> set[str]:
    """Return the pod groups whose sums depend on the touched pods, queues and priority classes."""
    groups = _groups_of(touched.pods)
    if touched.moved_queues:
        groups |= _waiting_below(tree, touched.moved_queues)
    if touched.priority_classes:
        of_class = PodGroup.objects.filter(priority_class__in=touched.priority_classes)
        groups.update(of_class.values_list("key", flat=True))
    return groups


def _groups_of(pods: Collection[str]) -> set[str]:
    if not pods:
        return set()
    grouped_pods = Pod.objects.filter(key__in=pods).exclude(group="")
    return set(grouped_pods.values_list("group", flat=True))


@dataclass(slots=True)
class TreeView:
    """The queue tree, names and parents only."""

    #: By the name of the queue.
    shapes: dict[str, QueueShape] = field(default_factory=dict)
    #: Parent, which need not exist -> its children.
    _children: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    @classmethod
    def load(cls) -> TreeView:
        """Return the tree of all rows."""
        tree = cls()
        for name, parent in Queue.objects.values_list("name", "parent"):
            tree._put(name, parent)
        return tree

    def read_again(self, names: Collection[str]) -> None:
        """Bring the places of some queues up to date with their rows."""
        for name in names:
            shape = self.shapes.pop(name, None)
            if shape is not None:
                self._children[shape.parent].discard(name)
        rows = Queue.objects.filter(name__in=names)
        for name, parent in rows.values_list("name", "parent"):
            self._put(name, parent)

    def path(self, name: str) -> list[str]:
        return hierarchy.ancestors(self.shapes, name)

    def below(self, names: Iterable[str]) -> set[str]:
        """Return these queues and everything below them."""
        return hierarchy.below(names, self._children)

    def _put(self, name: str, parent: str) -> None:
        self.shapes[name] = QueueShape(name=name, parent=parent)
        self._children[parent].add(name)


def _waiting_below(tree: TreeView, names: set[str]) -> set[str]:
    """Return the waiting groups below queues that were created, deleted or moved, since their reason may have changed."""
    groups = PodGroup.objects.filter(queue__in=tree.below(names), state__in=WAITING)
    return set(groups.values_list("key", flat=True))


def _roll_up_groups(keys: set[str], tree: TreeView, sources: ReasonSources) -> set[str]:
    """Write the sums of the groups that changed; return the queues whose counts changed with them."""
    if not keys:
        return set()
    groups = PodGroup.objects.in_bulk(keys)
    pods: dict[str, list[Pod]] = defaultdict(list)
    members = Pod.objects.filter(group__in=groups).only(*GROUP_PARTS)
    for pod in members.order_by("created_at", "key"):
        pods[pod.group].append(pod)
    classes = list(PriorityClass.objects.all())
    errors, standings = sources.bind_errors(groups.keys()), sources.standings(groups.keys())
    changed: list[PodGroup] = []
    queues: set[str] = set()
    for key, group in groups.items():
        before = [getattr(group, name) for name in GROUP_SUMS]
        counted_before = (group.state, group.gpu)
        waiting = _sum_group(group, pods[key], classes)
        _set_reason(group, waiting, tree, errors.get(key, ""), standings.get(key))
        if before != [getattr(group, name) for name in GROUP_SUMS]:
            changed.append(group)
        # A group without pods until now may be a new row: its queue changes though state and GPUs look the same.
        had_pods = bool(before[GROUP_SUMS.index("pods")])
        if counted_before != (group.state, group.gpu) or not had_pods:
            queues.add(group.queue)
    bulk.update(PodGroup, changed, fields=GROUP_SUMS)
    return queues


def _sum_group(group: PodGroup, pods: list[Pod], classes: list[PriorityClass]) -> list[Pod]:
    """Set the sums over the pods; return those that wait for a node."""
    alive = [pod for pod in pods if pod.phase not in FINISHED_PHASES]
    bound = [pod for pod in alive if pod.node]
    waiting = [pod for pod in alive if not pod.node]
    phases = Counter(pod.phase for pod in pods)
    group.pods = len(alive)
    group.pods_bound = len(bound)
    group.pods_gated = sum(pod.is_gated for pod in waiting)
    group.pods_pending = len(waiting) - group.pods_gated
    group.pods_succeeded, group.pods_failed = phases["Succeeded"], phases["Failed"]
    group.gpu = round(sum(pod.gpu for pod in alive or pods), 6)
    group.gpu_kind = next((pod.gpu_kind for pod in pods if pod.gpu_kind != "none"), "none")
    group.nodes = sorted({pod.node for pod in bound})[:SHOWN_NODES]
    started = [pod.started_at for pod in pods if pod.started_at]
    group.started_at = min(started, default=group.last_start)
    group.priority = _priority(group.priority_class, classes)
    group.state = _state(group, had_pods=bool(pods))
    return waiting


def _set_reason(
    group: PodGroup,
    waiting: list[Pod],
    tree: TreeView,
    bind_error: str,
    standing: reasons.Standing | None,
) -> None:
    """Set the reason and the place in the order, which a running group also has while it waits to grow."""
    reason = reasons.Reason()
    if group.state in WAITING:
        reason = reasons.dominant(_facts(group, waiting, tree, bind_error, standing))
    group.reason_code, group.reason_text = reason.code, reason.text
    group.reason_since = reason.since
    group.position = standing.position if standing and group.pods_pending else None


def _state(group: PodGroup, *, had_pods: bool) -> WorkloadState:
    if group.pods_bound:
        enough = max(1, group.min_member)
        return WorkloadState.RUNNING if group.pods_bound >= enough else WorkloadState.PARTIAL
    if group.pods:
        is_gated = group.pods_gated == group.pods
        return WorkloadState.GATED if is_gated else WorkloadState.PENDING
    if group.pods_failed and not group.pods_succeeded:
        return WorkloadState.FAILED
    if had_pods or group.last_start:
        return WorkloadState.FINISHED
    return WorkloadState.PENDING


def _priority(name: str, classes: Iterable[PriorityClass]) -> int:
    value_by_class = {row.name: row.value for row in classes}
    if name in value_by_class:
        return value_by_class[name]
    return next((row.value for row in classes if row.is_default), DEFAULT_PRIORITY)


def _facts(
    group: PodGroup,
    waiting: list[Pod],
    tree: TreeView,
    bind_error: str,
    standing: reasons.Standing | None,
) -> reasons.Facts:
    reporting = next((pod for pod in waiting if pod.message), None)
    is_known = group.queue in tree.shapes
    return reasons.Facts(
        queue=group.queue,
        is_queue_known=is_known,
        queue_problem=hierarchy.problem_of(tree.shapes, group.queue) if is_known else "",
        hold=_hold_text(group),
        is_backed_off=group.is_backed_off,
        pool=group.pool,
        alive=group.pods,
        gated=group.pods_gated,
        min_member=group.min_member,
        conditions=group.conditions,
        pod_reason=reporting.reason if reporting else "",
        pod_message=reporting.message if reporting else "",
        pod_since=reporting.reason_since if reporting else None,
        bind_error=bind_error,
        standing=standing,
    )


def _hold_text(group: PodGroup) -> str:
    hold = Hold(group.hold_reason, group.hold_until, group.held_by)
    return hold.text if group.is_held and hold.applies(timezone.now()) else ""


def _roll_up_nodes(names: set[str], lock_pods: Callable[[Collection[str]], None]) -> None:
    if not names:
        return
    nodes = Node.objects.in_bulk(names)
    pods: dict[str, list[Pod]] = defaultdict(list)
    pods_on_nodes = Pod.objects.filter(node__in=nodes).exclude(phase__in=FINISHED_PHASES)
    for pod in pods_on_nodes.only(*NODE_PARTS).order_by("created_at", "key"):
        pods[pod.node].append(pod)
    changed: list[Node] = []
    reassigned: list[Pod] = []
    for name, node in nodes.items():
        before = [getattr(node, column) for column in NODE_SUMS]
        _sum_node(node, pods[name])
        if before != [getattr(node, column) for column in NODE_SUMS]:
            changed.append(node)
        reassigned += _assign_cells(node, pods[name])
    bulk.update(Node, changed, fields=NODE_SUMS)
    lock_pods([pod.key for pod in reassigned])
    bulk.update(Pod, reassigned, fields=("devices",))


def _sum_node(node: Node, pods: list[Pod]) -> None:
    reserved = {pod.reserves_group for pod in pods if pod.reserves_group}
    used_gpus = 0.0
    for pod in pods:
        # Fractions are on a device that is counted with its reservation pod.
        is_fraction = bool(pod.gpu_groups) and set(pod.gpu_groups) <= reserved
        used_gpus += 0.0 if is_fraction else pod.gpu
    node.used_gpu = round(used_gpus, 6)
    node.used_cpu = sum(pod.cpu for pod in pods)
    node.used_memory = sum(pod.memory for pod in pods)
    node.pods = len(pods)


def _assign_cells(node: Node, pods: list[Pod]) -> list[Pod]:
    """Assign the GPUs of a node, as cells of its picture, to its pods; return the pods whose cells changed."""
    tenants = [
        devices.Tenant(
            key=pod.key,
            whole=0 if pod.gpu_groups or pod.reserves_group else int(pod.gpu),
            groups=tuple(pod.gpu_groups),
            reserves=pod.reserves_group,
            cells=tuple(pod.devices),
        )
        for pod in pods
        if pod.gpu or pod.gpu_groups or pod.reserves_group
    ]
    cells = devices.assign(node.gpus, tenants)
    reassigned = []
    for pod in pods:
        cells_of_pod = list(cells.get(pod.key, ()))
        if pod.devices != cells_of_pod:
            pod.devices = cells_of_pod
            reassigned.append(pod)
    return reassigned

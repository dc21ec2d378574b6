"""The table of mirrored kinds, and which sums a change of each affects."""

from __future__ import annotations

from kube.objects.cluster import Event as EventObject
from kube.objects.meta import KubeObject
from kube.objects.node import Node as NodeObject
from kube.objects.pod import Pod as PodObject
from kube.objects.podgroup import PodGroup as PodGroupObject
from kube.resources import EVENTS, NODES, PODGROUPS, PODS, PRIORITY_CLASSES, QUEUES
from queues.mirror import rows
from queues.mirror.rollup import GROUP_SUMS, NODE_SUMS, Touched
from queues.mirror.views import PriorityClassView, QueueView
from queues.mirror.writer import MirroredKind
from queues.models import GroupingWarning, Node, Pod, PodGroup, PriorityClass, Queue

#: What the sums of a node and its page show of a pod.
TENANT_COLUMNS = (
    "uid", "node", "group", "phase", "is_deleting", "started_at", "gpu", "gpu_share", "gpu_groups", "reserves_group",
    "cpu", "memory",
)  # fmt: skip


def _touch_queue(old: Queue | None, new: Queue | None, touched: Touched) -> None:
    for row in (old, new):
        if row is not None:
            touched.queues.add(row.name)
            if row.parent:
                touched.queues.add(row.parent)
    is_moved = old is None or new is None or old.parent != new.parent
    if is_moved:
        touched.moved_queues.update(row.name for row in (old, new) if row is not None)


def _touch_group(old: PodGroup | None, new: PodGroup | None, touched: Touched) -> None:
    for row in (old, new):
        if row is not None:
            touched.groups.add(row.key)
    if old is None or new is None or old.queue != new.queue:
        touched.queues.update(row.queue for row in (old, new) if row is not None and row.queue)


def _count_eviction(old: PodGroup, new: PodGroup) -> None:
    """Count an eviction for each new time, because KAI records only the time of the last one."""
    is_new = new.last_eviction is not None and new.last_eviction != old.last_eviction
    new.evictions = old.evictions + int(is_new) if old.uid == new.uid else 0


def _touch_pod(old: Pod | None, new: Pod | None, touched: Touched) -> None:
    for row in (old, new):
        if row is not None:
            touched.groups.update({row.group} - {""})
    if old is None or new is None or _is_other_tenant(old, new):
        touched.nodes.update(row.node for row in (old, new) if row is not None and row.node)


def _is_other_tenant(old: Pod, new: Pod) -> bool:
    """Return whether a pod differs in what its node shows of it."""
    return any(getattr(old, name) != getattr(new, name) for name in TENANT_COLUMNS)


def _touch_node(old: Node | None, new: Node | None, touched: Touched) -> None:
    touched.nodes.update(row.name for row in (old, new) if row is not None)


def _touch_priority_class(
    old: PriorityClass | None, new: PriorityClass | None, touched: Touched
) -> None:
    if old is not None and new is not None and old.value == new.value:
        return
    touched.priority_classes.update(row.name for row in (old, new) if row is not None)


def _touch_nothing(_old: object, _new: object, _touched: Touched) -> None:
    """Do nothing: no sums depend on these rows."""


def _own_key(value: KubeObject) -> str:
    return value.key


def _group_of_pod(pod: PodObject) -> str:
    """Return the key by which a pod is divided: one worker writes a pod group and all its pods."""
    return rows.group_key(pod) or pod.key


def _group_of_row(row: Pod) -> str:
    return row.group or row.key


KINDS: tuple[MirroredKind, ...] = (
    MirroredKind(
        resource=QUEUES,
        as_type=QueueView,
        model=Queue,
        to_row=rows.queue_row,
        touch=_touch_queue,
    ),
    MirroredKind(
        resource=PRIORITY_CLASSES,
        as_type=PriorityClassView,
        model=PriorityClass,
        to_row=rows.priority_class_row,
        touch=_touch_priority_class,
    ),
    MirroredKind(
        resource=NODES,
        as_type=NodeObject,
        model=Node,
        to_row=rows.node_row,
        touch=_touch_node,
        derived=frozenset(NODE_SUMS),
        divided_by=_own_key,
    ),
    MirroredKind(
        resource=PODGROUPS,
        as_type=PodGroupObject,
        model=PodGroup,
        to_row=rows.group_row,
        touch=_touch_group,
        derived=frozenset(GROUP_SUMS),
        carry=_count_eviction,
        only={"is_lone_pod": False},
        divided_by=_own_key,
    ),
    MirroredKind(
        resource=PODS,
        as_type=PodObject,
        model=Pod,
        to_row=rows.pod_row,
        touch=_touch_pod,
        derived=frozenset({"devices"}),
        skips_equal=True,
        divided_by=_group_of_pod,
        row_divided_by=_group_of_row,
    ),
    MirroredKind(
        resource=EVENTS,
        as_type=EventObject,
        model=GroupingWarning,
        to_row=rows.warning_row,
        touch=_touch_nothing,
        field_selector="reason=PodGrouperWarning",
        # Without the right to read events only the warnings of the pod grouper are missing.
        is_optional=True,
    ),
)

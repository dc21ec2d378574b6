"""The pods of a shard, sorted into pod groups and others, and kept from cycle to cycle.

A pod is converted again only when something that its task depends on has changed: the pod, its bind request,
its resource claims, whether its pod group takes part, whether it is held back, or, for pods outside of our pod
groups, whether its node is one of ours. Time changes a task too: a deleted pod counts as stuck after a while.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace

from kube.errors import UNREADABLE
from kube.keys import BIND_FAILURES
from kube.objects.bindrequest import BindRequest
from kube.objects.devices import ResourceClaim
from kube.objects.pod import Pod
from kube.process.set_aside import SetAside, shown_cause
from kube.resources import PODS, RESOURCE_CLAIMS
from kube.store import StoreView
from scheduler.core.cluster.inputs import OtherPod, TaskInput
from scheduler.core.cluster.status import ACTIVE_USED, TaskStatus
from scheduler.load import claims
from scheduler.load.changes import Following, add_to, remove_from
from scheduler.load.pods import TaskBuilder
from scheduler.settings.params import ShardParams

APP_LABEL = "app"


@dataclass(frozen=True, slots=True)
class PodSurroundings:
    """What the task of a pod depends on besides the pod.

    Attributes
    ----------
    live : live bind requests by the key of the pod
    groups : the pod groups that take part, by key
    held, held_groups : keys of pods that wait for their next attempt, and of pod groups that a person holds back
    node_names : the nodes of the shard
    """

    live: Mapping[str, BindRequest] = field(default_factory=dict)
    groups: Mapping[str, object] = field(default_factory=dict)
    held: Set[str] = frozenset()
    held_groups: Set[str] = frozenset()
    node_names: Set[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Entry:
    """What is known of a pod.

    Attributes
    ----------
    group : key of the pod group that it names, or ""
    node : its node, or the one of its bind request, or ""
    task : None if it takes no part or cannot be read
    cause : why it cannot be read, or ""
    unclear_node : the node that it holds an unknown amount of, because it cannot be read
    """

    pod: Pod
    group: str
    node: str
    is_member: bool
    task: TaskInput | None = None
    cause: str = ""
    unclear_node: str | None = None

    def is_like(self, other: _Entry) -> bool:
        """Return whether both mean the same for pod groups."""
        return (self.task is other.task and self.is_member == other.is_member) and (
            self.group == other.group
        )


@dataclass(slots=True)
class PodTable:
    """The tasks of all pods.

    Attributes
    ----------
    others : pods of no group of ours that occupy one of our nodes, by key
    refused : members that cannot be read, by key, with the cause
    failed_binds : keys of the pods that carry the memory of a failed bind
    is_alive : uid of each pod -> whether it is not being deleted
    """

    params: ShardParams
    tasks: TaskBuilder
    aside: SetAside
    others: dict[str, OtherPod] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    failed_binds: set[str] = field(default_factory=set)
    is_alive: dict[str, bool] = field(default_factory=dict)
    _pods: Following[Pod] = field(default_factory=lambda: Following(PODS))
    _claims: Following[ResourceClaim] = field(default_factory=lambda: Following(RESOURCE_CLAIMS))
    _around: PodSurroundings = field(default_factory=PodSurroundings)
    _entries: dict[str, _Entry] = field(default_factory=dict)
    #: Keys of pods: by the pod group they name, outside of our groups by node, by resource claim.
    _naming: dict[str, set[str]] = field(default_factory=dict)
    _outside_on: dict[str, set[str]] = field(default_factory=dict)
    _claiming: dict[str, set[str]] = field(default_factory=dict)
    #: Pods to convert in every cycle: deleted ones, and those that cannot be read.
    _restless: set[str] = field(default_factory=set)

    @property
    def unclear_nodes(self) -> set[str]:
        """Return the nodes of pods that cannot be read, so that their free amounts are unknown."""
        nodes = (self._entries[key].unclear_node for key in self._restless)
        return {node for node in nodes if node is not None}

    def follow(self, view: StoreView) -> set[str]:
        """Take in the pods and resource claims of a cycle; return the keys of pods that changed, or whose claims did.

        To be called before `update`.
        """
        before = self._pods.objects
        changed = self._pods.follow(view)
        for key in changed:
            old, new = before.get(key), self._pods.objects.get(key)
            if old is not None:
                self.is_alive.pop(old.metadata.uid, None)
                self._index(key, old, add=False)
            if new is not None:
                self.is_alive[new.metadata.uid] = new.metadata.deletion_timestamp is None
                self._index(key, new, add=True)
        for claim in self._claims.follow(view):
            changed |= self._claiming.get(claim, set())
        self.tasks.limit_shapes(len(self._pods.objects))
        return changed

    def update(
        self, changed: Set[str], toggled_groups: Set[str], around: PodSurroundings, now: float
    ) -> set[str]:
        """Convert what changed; return the keys of the pod groups whose members changed.

        Parameters
        ----------
        changed : pods that changed themselves (`follow`), or whose live bind request did
        toggled_groups : pod groups that take part now and did not before, or the other way round
        now : Unix time of the cycle
        """
        dirty = changed | self._restless | self._affected(toggled_groups, around)
        self._around = around
        groups: set[str] = set()
        for key in dirty:
            old = self._entries.pop(key, None)
            new = self._convert(key, old, now)
            self._replace(key, old, new)
            if old is None or new is None or not old.is_like(new):
                groups.update(
                    entry.group for entry in (old, new) if entry is not None and entry.is_member
                )
        return groups

    def members(self, group: str) -> tuple[TaskInput, ...]:
        """Return the tasks of a pod group, in the order of the keys of their pods."""
        entries = (self._entries[key] for key in sorted(self._naming.get(group, ())))
        return tuple(entry.task for entry in entries if entry.is_member and entry.task is not None)

    def _affected(self, toggled_groups: Set[str], around: PodSurroundings) -> set[str]:
        """Return the pods for which something around them changed."""
        before = self._around
        affected = set(before.held ^ around.held)
        for group in toggled_groups | (before.held_groups ^ around.held_groups):
            affected |= self._naming.get(group, set())
        if before.node_names is not around.node_names:
            for node in before.node_names ^ around.node_names:
                affected |= self._outside_on.get(node, set())
        return affected

    def _index(self, key: str, pod: Pod, *, add: bool) -> None:
        change = add_to if add else remove_from
        if group := pod.pod_group_key:
            change(self._naming, group, key)
        for reference in pod.spec.resource_claims:
            claim = f"{pod.metadata.namespace}/{claims.claim_name(pod, reference)}"
            change(self._claiming, claim, key)
        if BIND_FAILURES in pod.metadata.annotations and add:
            self.failed_binds.add(key)
        else:
            self.failed_binds.discard(key)

    def _replace(self, key: str, old: _Entry | None, new: _Entry | None) -> None:
        """Put a new entry in the place of an old one, in all lookups."""
        if old is not None and not old.is_member:
            remove_from(self._outside_on, old.node, key)
        other = self.others.pop(key, None)
        self.refused.pop(key, None)
        self._restless.discard(key)
        if new is None:
            return
        self._entries[key] = new
        if not new.is_member:
            add_to(self._outside_on, new.node, key)
            if new.task is not None and ACTIVE_USED[new.task.status]:
                self.others[key] = self._other_pod(new.pod, new.task, other)
        if new.cause:
            if new.is_member:
                self.refused[key] = new.cause
            self._restless.add(key)
        if new.task is not None and new.pod.metadata.deletion_timestamp is not None:
            self._restless.add(key)

    def _convert(self, key: str, old: _Entry | None, now: float) -> _Entry | None:
        pod, around = self._pods.objects.get(key), self._around
        if pod is None:
            return None
        group, request = pod.pod_group_key, around.live.get(key)
        is_member = group in around.groups and pod.status.phase != "Failed"
        node = pod.spec.node_name or (request.spec.selected_node if request else "")
        entry = _Entry(pod, group, node, is_member)
        if not is_member and (node not in around.node_names or pod.is_finished):
            return entry
        try:
            task = self.tasks.task(pod, request, self._claims.objects, now)
        except UNREADABLE as error:
            self.aside.log_once("Pod", key, pod.metadata.resource_version, error)
            unclear_node = None if pod.is_finished else node
            return replace(entry, cause=shown_cause(error), unclear_node=unclear_node)
        is_held = key in around.held or group in around.held_groups
        if is_held and task.status is TaskStatus.PENDING:
            # For the core a pod that waits for its next attempt, or that a person holds back, is like one with
            # a scheduling gate.
            task = replace(task, status=TaskStatus.GATED)
        # An equal task stays the same object, so that whatever was made from it stays too.
        return replace(entry, task=old.task if old is not None and old.task == task else task)

    def _other_pod(self, pod: Pod, task: TaskInput, old: OtherPod | None) -> OtherPod:
        params = self.params
        new = OtherPod(
            task=task,
            is_foreign=pod.spec.scheduler_name != params.scheduler_name,
            is_reservation=pod.metadata.labels.get(APP_LABEL) == params.reservation_app_label,
        )
        return old if old is not None and old == new else new

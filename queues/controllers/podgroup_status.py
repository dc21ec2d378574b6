"""Write what the pods of a pod group request and hold to its `status.resourcesStatus`.

Amounts are counted by `queues.workloads.accounting`, as in the scheduler. The status is written only if an amount
differs by value; the patch removes obsolete resources.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from kube.errors import KubeError, NotFoundError
from kube.gateway import EventType, Gateway
from kube.keys import POD_GROUP
from kube.objects.cluster import PriorityClass
from kube.objects.devices import ResourceClaim
from kube.objects.meta import KubeObject
from kube.objects.node import Node
from kube.objects.pod import Pod
from kube.objects.podgroup import (
    NON_PREEMPTIBLE,
    SEMI_PREEMPTIBLE,
    PodGroup,
    ResourcesStatus,
)
from kube.process.progress import WAIT_S, track
from kube.process.set_aside import SetAside
from kube.process.workqueue import WorkQueue
from kube.resources import NODES, PODGROUPS, PODS, PRIORITY_CLASSES, RESOURCE_CLAIMS, Resource
from kube.store import Store
from queues.workloads import accounting
from queues.workloads.accounting import AccountingError, ResourceAmounts
from queues.workloads.minimums import minimum_pods

log = logging.getLogger(__name__)

BY_GROUP = "pod-group"
BY_CLAIM = "resource-claim"
LEASE = "o1x22tjj.kai.scheduler"
DEFAULT_PRIORITY = 50
NON_PREEMPTIBLE_FROM = 100
#: Where a pod is in hand while it is counted.
PLACE = "podgroup-status"
#: The pods of a gang change together; counting the gang at each change would take quadratic time.
SETTLE_S = 0.25
#: In a burst the pods of many groups change, each several times: the wait grows with the groups beyond so many.
SETTLE_GROUPS, SETTLE_PER_GROUP_S, MAX_SETTLE_S = 100, 0.001, 2.0
_ASIDE = SetAside("pod group status")


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """Sums over the pods of a group, or over the subtree of a queue."""

    requested: ResourceAmounts
    allocated: ResourceAmounts
    non_preemptible: ResourceAmounts

    def as_status(self) -> dict[str, dict[str, str]]:
        return {
            "requested": accounting.format_list(self.requested),
            "allocated": accounting.format_list(self.allocated),
            "allocatedNonPreemptible": accounting.format_list(self.non_preemptible),
        }


def pod_group_key(pod: Pod) -> str:
    """Return the key of the group a pod names, or "" if it names none."""
    name = pod.metadata.annotations.get(POD_GROUP)
    return f"{pod.metadata.namespace}/{name}" if name else ""


def counts_as_requested(pod: Pod) -> bool:
    return pod.status.phase in ("Pending", "Running", "")


def counts_as_allocated(pod: Pod) -> bool:
    """Return whether a pod holds its requests: from its binding until it ends, also while it is being deleted."""
    if pod.status.phase == "Running":
        return True
    condition = pod.condition("PodScheduled")
    return counts_as_requested(pod) and condition is not None and condition.status == "True"


def is_preemptible(group: PodGroup, classes: Mapping[str, PriorityClass]) -> bool:
    """Return the group's preemptibility, or whether its priority is below 100 if it states none."""
    if group.spec.preemptibility:
        return group.spec.preemptibility != NON_PREEMPTIBLE
    return priority_of(group, classes) < NON_PREEMPTIBLE_FROM


def priority_of(group: PodGroup, classes: Mapping[str, PriorityClass]) -> int:
    priority_class = classes.get(group.spec.priority_class_name)
    if priority_class is not None:
        return priority_class.value
    # Several defaults may exist for a while; the highest counts, as in the scheduler.
    return max((c.value for c in classes.values() if c.global_default), default=DEFAULT_PRIORITY)


def count_pods(pods: Iterable[Pod], store: Store, *, is_group_preemptible: bool) -> Holdings:
    """Return what the pods of one group request and hold; a claim that several of them use counts once.

    Raises
    ------
    AccountingError, ValueError : a pod, or the GPU memory of its node, cannot be counted
    """
    requested: ResourceAmounts = {}
    allocated: ResourceAmounts = {}
    claims: list[tuple[ResourceAmounts, ResourceClaim]] = []
    sign = track()
    for pod in pods:
        if not counts_as_requested(pod) or not sign.take(PODS.kind, pod, PLACE, WAIT_S):
            continue
        demand = _ASIDE.read(
            "Pod", pod, lambda pod: accounting.pod_demand(pod, _claims(pod, store))
        )
        if demand is None:
            continue
        accounting.add_amounts(requested, accounting.requested_resources(demand))
        claims += ((requested, claim) for claim in _claims(pod, store))
        if counts_as_allocated(pod):
            memory = _gpu_memory(pod, store) if demand.gpu_memory_mib else None
            accounting.add_amounts(allocated, accounting.allocated_resources(pod, demand, memory))
            claims += ((allocated, claim) for claim in _claims(pod, store))
    _count_claims_once(claims)
    non_preemptible = {} if is_group_preemptible else dict(allocated)
    return Holdings(requested=requested, allocated=allocated, non_preemptible=non_preemptible)


def status_patch(stored: ResourcesStatus, holdings: Holdings) -> dict[str, Any] | None:
    """Return the merge patch of the three lists, or None if all amounts are equal by value."""
    patch: dict[str, Any] = {}
    fields = {
        "requested": (stored.requested, holdings.requested),
        "allocated": (stored.allocated, holdings.allocated),
        "allocatedNonPreemptible": (stored.allocated_non_preemptible, holdings.non_preemptible),
    }
    for name, (old, new) in fields.items():
        lists = list_patch(old, new)
        if lists:
            patch[name] = lists
    return patch or None


def list_patch(old: Mapping[str, Any], new: ResourceAmounts) -> dict[str, str | None]:
    """Return the merge patch that turns a ResourceList into `new`; empty if they are equal."""
    before = accounting.parse_list(old)
    changed: dict[str, str | None] = {name: None for name in old if name not in new}
    differing = {name: amount for name, amount in new.items() if before.get(name) != amount}
    changed.update(accounting.format_list(differing))
    return changed


@dataclass(slots=True)
class PodGroupController:
    """Keeps `status.resourcesStatus` of every pod group up to date."""

    gateway: Gateway
    store: Store
    queue: WorkQueue = field(default_factory=WorkQueue)

    def follow(self) -> None:
        self.store.subscribe(self._on_event)
        self.recheck()

    def recheck(self) -> None:
        """Count every group again."""
        for key in self.store.view().of(PODGROUPS, PodGroup):
            self.queue.add(key)

    def work(self, key: str) -> None:
        """Count one group and write what differs."""
        group: PodGroup | None = self.store.get(PODGROUPS, key)
        if group is None:
            self.queue.forget(key)
            return
        try:
            self._write(group, self.count(group))
        except NotFoundError:
            self.queue.forget(key)
        except (KubeError, AccountingError) as error:
            log.warning("status of pod group %s: %s", key, error)
            self.queue.retry(key)
        else:
            self.queue.forget(key)

    def count(self, group: PodGroup) -> Holdings:
        pods: list[Pod] = self.store.by_index(PODS, BY_GROUP, group.key)
        classes = self.store.view().of(PRIORITY_CLASSES, PriorityClass)
        holdings = count_pods(pods, self.store, is_group_preemptible=is_preemptible(group, classes))
        if group.spec.preemptibility != SEMI_PREEMPTIBLE:
            return holdings
        minimum = minimum_pods(group, [pod for pod in pods if counts_as_allocated(pod)])
        protected = count_pods(minimum, self.store, is_group_preemptible=False)
        return replace(holdings, non_preemptible=protected.allocated)

    def _write(self, group: PodGroup, holdings: Holdings) -> None:
        patch = status_patch(group.status.resources_status, holdings)
        if patch is None:
            return
        # Not assumed into the store, because the queue controller needs the event of the watch.
        self.gateway.patch(
            PODGROUPS,
            group.metadata.name,
            {"status": {"resourcesStatus": patch}},
            namespace=group.metadata.namespace,
            sub="status",
        )

    def _on_event(self, resource: Resource, event: EventType, value: KubeObject) -> None:
        if resource == PODGROUPS and event is not EventType.DELETED:
            self.queue.add_after(value.key, self._settle_s())
        elif resource == PODS and isinstance(value, Pod):
            key = pod_group_key(value)
            if key:
                self.queue.add_after(key, self._settle_s())
        elif resource == PRIORITY_CLASSES:
            self.recheck()
        elif resource == RESOURCE_CLAIMS:
            # A claim may be created, or observed, after the pods that name it were counted.
            for pod in self.store.by_index(PODS, BY_CLAIM, value.key):
                self.queue.add_after(pod_group_key(pod), self._settle_s())

    def _settle_s(self) -> float:
        """Return for how long the changes of a pod group are collected."""
        crowd = max(0, len(self.queue) - SETTLE_GROUPS)
        return min(MAX_SETTLE_S, SETTLE_S + SETTLE_PER_GROUP_S * crowd)


def index_pods_by_group(store: Store) -> None:
    store.add_index(PODS, BY_GROUP, lambda pod: [pod_group_key(pod)])
    store.add_index(
        PODS,
        BY_CLAIM,
        lambda pod: [f"{pod.metadata.namespace}/{c}" for c in accounting.claim_names(pod)],
    )


def _claims(pod: Pod, store: Store) -> list[ResourceClaim]:
    if not pod.spec.resource_claims:
        return []
    claims = (
        store.get(RESOURCE_CLAIMS, f"{pod.metadata.namespace}/{name}")
        for name in accounting.claim_names(pod)
    )
    return [claim for claim in claims if claim is not None]


def _count_claims_once(claims: Iterable[tuple[ResourceAmounts, ResourceClaim]]) -> None:
    """Take from each total the claims that were added to it before."""
    counted: set[tuple[int, str]] = set()
    for total, claim in claims:
        key = (id(total), claim.key)
        if key in counted:
            devices = accounting.claimed_devices((claim,))
            accounting.take_amounts(
                total, {name: Fraction(count) for name, count in devices.items()}
            )
        counted.add(key)


def _gpu_memory(pod: Pod, store: Store) -> int | None:
    node: Node | None = store.get(NODES, pod.spec.node_name)
    return None if node is None else accounting.node_gpu_memory(node)

"""Check every status against a fresh count of the pods, at intervals and independent of events.

The controllers count the differing objects again. A metric counts the differences, because one that comes back is
a bug.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kube.objects.podgroup import PodGroup
from kube.objects.queue import Queue
from kube.resources import PODGROUPS, QUEUES
from kube.store import Store
from queues.controllers.podgroup_status import Holdings, PodGroupController, status_patch
from queues.controllers.queue_status import (
    BY_QUEUE,
    QueueController,
    children_by_parent,
    leaves_first,
)
from queues.controllers.sums import add_holdings, empty_holdings
from queues.workloads.accounting import AccountingError, ResourceAmounts, parse_list


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """An object whose status differs from a fresh count of its pods."""

    kind: str
    key: str
    message: str


def find_drift(store: Store, groups: PodGroupController) -> list[Drift]:
    """Return the pod groups and queues whose written status differs from a fresh count."""
    counted: dict[str, Holdings] = {}
    drifts = list(_group_drift(store, groups, counted))
    return drifts + list(_queue_drift(store, counted))


def correct(drifts: list[Drift], groups: PodGroupController, queues: QueueController) -> None:
    """Make the controllers count the differing objects again."""
    for drift in drifts:
        if drift.kind == "PodGroup":
            groups.queue.add(drift.key)
    if any(drift.kind == "Queue" for drift in drifts):
        queues.recheck()


def _group_drift(
    store: Store, groups: PodGroupController, counted: dict[str, Holdings]
) -> Iterator[Drift]:
    for key, group in store.view().of(PODGROUPS, PodGroup).items():
        try:
            counted[key] = groups.count(group)
        except AccountingError as error:
            yield Drift(kind="PodGroup", key=key, message=f"cannot be counted: {error}")
            continue
        patch = status_patch(group.status.resources_status, counted[key])
        if patch is not None:
            yield Drift(kind="PodGroup", key=key, message=f"status lacks {patch}")


def _queue_drift(store: Store, counted: Mapping[str, Holdings]) -> Iterator[Drift]:
    queues = store.view().of(QUEUES, Queue)
    children = children_by_parent(queues.values())
    totals: dict[str, Holdings] = {}
    for name in leaves_first(queues, queues):
        total = totals[name] = empty_holdings()
        for group in store.by_index(PODGROUPS, BY_QUEUE, name):
            add_holdings(total, counted.get(group.key, empty_holdings()))
        for child in children.get(name, []):
            add_holdings(total, totals.get(child, empty_holdings()))
        status = queues[name].status
        pairs = {
            "requested": (status.requested, total.requested),
            "allocated": (status.allocated, total.allocated),
            "allocatedNonPreemptible": (status.allocated_non_preemptible, total.non_preemptible),
        }
        wrong = [field for field, (old, new) in pairs.items() if _differ(parse_list(old), new)]
        if wrong:
            yield Drift(kind="Queue", key=name, message=f"status.{', status.'.join(wrong)} differ")


def _differ(old: ResourceAmounts, new: ResourceAmounts) -> bool:
    return any(old.get(name, 0) != new.get(name, 0) for name in {*old, *new})

"""Sums of what pod groups hold, per queue, exact and kept up to date group by group."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from kube.objects.podgroup import PodGroup
from kube.store import version_number
from queues.controllers.podgroup_status import Holdings
from queues.workloads import accounting
from queues.workloads.accounting import Amounts


def empty_holdings() -> Holdings:
    return Holdings(requested={}, allocated={}, non_preemptible={})


def add_holdings(total: Holdings, more: Holdings) -> None:
    for amounts, part in _pairs(total, more):
        accounting.add_amounts(amounts, part)


def stated_holdings(group: PodGroup) -> Holdings:
    """Return what a pod group's status says."""
    status = group.status.resources_status
    return Holdings(
        requested=accounting.parse_list(status.requested),
        allocated=accounting.parse_list(status.allocated),
        non_preemptible=accounting.parse_list(status.allocated_non_preemptible),
    )


@dataclass(slots=True)
class GroupSums:
    """What the pod groups of each queue hold together, kept up to date group by group. Exact, so nothing drifts."""

    _parts: dict[str, tuple[int, str, Holdings]] = field(default_factory=dict)
    _sums: dict[str, Holdings] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def put(self, group: PodGroup) -> set[str]:
        """Exchange a group's part; return the queues whose sum changed. An older version changes nothing."""
        part = stated_holdings(group)
        version = version_number(group.metadata.resource_version)
        with self._lock:
            known = self._parts.get(group.key)
            if known is not None and known[0] > version:
                return set()
            queue = group.spec.queue
            self._parts[group.key] = (version, queue, part)
            if known is not None and known[1:] == (queue, part):
                return set()
            self._take(known)
            add_holdings(self._sums.setdefault(queue, empty_holdings()), part)
        return {queue} if known is None else {queue, known[1]}

    def drop(self, key: str) -> set[str]:
        """Take a deleted group's part away; return its queue."""
        with self._lock:
            known = self._parts.pop(key, None)
            self._take(known)
        return set() if known is None else {known[1]}

    def of(self, queue: str) -> Holdings:
        """Return a copy of a queue's sum."""
        with self._lock:
            total = empty_holdings()
            add_holdings(total, self._sums.get(queue, empty_holdings()))
        return total

    def _take(self, known: tuple[int, str, Holdings] | None) -> None:
        if known is None:
            return
        total = self._sums[known[1]]
        for amounts, part in _pairs(total, known[2]):
            for name, value in part.items():
                amounts[name] -= value
                if not amounts[name]:
                    del amounts[name]


def _pairs(total: Holdings, part: Holdings) -> tuple[tuple[Amounts, Amounts], ...]:
    return (
        (total.requested, part.requested),
        (total.allocated, part.allocated),
        (total.non_preemptible, part.non_preemptible),
    )

"""Sums of what pod groups request and hold per queue, updated group by group."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from kube.objects.podgroup import PodGroup
from kube.store import version_of
from queues.controllers.podgroup_status import Holdings
from queues.workloads import accounting
from queues.workloads.accounting import ResourceAmounts


def empty_holdings() -> Holdings:
    return Holdings(requested={}, allocated={}, non_preemptible={})


def add_holdings(total: Holdings, more: Holdings) -> None:
    for amounts, part in _pairs(total, more):
        accounting.add_amounts(amounts, part)


def holdings_of_status(group: PodGroup) -> Holdings:
    """Return the amounts in the status of a pod group."""
    status = group.status.resources_status
    return Holdings(
        requested=accounting.parse_list(status.requested),
        allocated=accounting.parse_list(status.allocated),
        non_preemptible=accounting.parse_list(status.allocated_non_preemptible),
    )


@dataclass(slots=True)
class GroupSums:
    """The sums over the pod groups of each queue. ResourceAmounts are exact fractions, so updates add no error."""

    #: Pod group -> (version, queue, what it holds).
    _parts: dict[str, tuple[int, str, Holdings]] = field(default_factory=dict)
    _sums: dict[str, Holdings] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def put(self, group: PodGroup) -> set[str]:
        """Replace the amounts of a group; return the queues whose sums changed. An older version is ignored."""
        part = holdings_of_status(group)
        version = version_of(group)
        with self._lock:
            entry = self._parts.get(group.key)
            if entry is not None and entry[0] > version:
                return set()
            queue = group.spec.queue
            self._parts[group.key] = (version, queue, part)
            if entry is not None and entry[1:] == (queue, part):
                return set()
            self._subtract(entry)
            add_holdings(self._sums.setdefault(queue, empty_holdings()), part)
        return {queue} if entry is None else {queue, entry[1]}

    def drop(self, key: str) -> set[str]:
        """Subtract the amounts of a deleted group; return its queue."""
        with self._lock:
            entry = self._parts.pop(key, None)
            self._subtract(entry)
        return set() if entry is None else {entry[1]}

    def of(self, queue: str) -> Holdings:
        """Return a copy of a queue's sum."""
        with self._lock:
            total = empty_holdings()
            add_holdings(total, self._sums.get(queue, empty_holdings()))
        return total

    def _subtract(self, entry: tuple[int, str, Holdings] | None) -> None:
        if entry is None:
            return
        total = self._sums[entry[1]]
        for amounts, part in _pairs(total, entry[2]):
            for name, value in part.items():
                amounts[name] -= value
                if not amounts[name]:
                    del amounts[name]


def _pairs(total: Holdings, part: Holdings) -> tuple[tuple[ResourceAmounts, ResourceAmounts], ...]:
    return (
        (total.requested, part.requested),
        (total.allocated, part.allocated),
        (total.non_preemptible, part.non_preemptible),
    )

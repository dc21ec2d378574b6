"""Sums of what pod groups request and hold per queue, updated group by group."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import NamedTuple

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


class _Part(NamedTuple):
    """What one pod group adds to the sum of its queue, by this version of the group."""

    version: int
    queue: str
    holdings: Holdings


@dataclass(slots=True)
class GroupSums:
    """The sums over the pod groups of each queue. ResourceAmounts are exact fractions, so updates add no error."""

    #: Pod group -> what it adds.
    _parts: dict[str, _Part] = field(default_factory=dict)
    #: Queue -> the sum over its pod groups, without those of queues below it.
    _sums: dict[str, Holdings] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def put(self, group: PodGroup) -> set[str]:
        """Replace the amounts of a group; return the queues whose sums changed. An older version is ignored."""
        part = _Part(version_of(group), group.spec.queue, holdings_of_status(group))
        with self._lock:
            old = self._parts.get(group.key)
            if old is not None and old.version > part.version:
                return set()
            self._parts[group.key] = part
            if old is not None and (old.queue, old.holdings) == (part.queue, part.holdings):
                return set()
            self._subtract(old)
            add_holdings(self._sums.setdefault(part.queue, empty_holdings()), part.holdings)
        return {part.queue} if old is None else {part.queue, old.queue}

    def drop(self, key: str) -> set[str]:
        """Subtract the amounts of a deleted group; return its queue."""
        with self._lock:
            part = self._parts.pop(key, None)
            self._subtract(part)
        return set() if part is None else {part.queue}

    def of(self, queue: str) -> Holdings:
        """Return a copy of a queue's sum."""
        with self._lock:
            total = empty_holdings()
            add_holdings(total, self._sums.get(queue, empty_holdings()))
        return total

    def _subtract(self, part: _Part | None) -> None:
        if part is None:
            return
        total = self._sums[part.queue]
        for sums, amounts in _pairs(total, part.holdings):
            for name, amount in amounts.items():
                sums[name] -= amount
                if not sums[name]:
                    del sums[name]


def _pairs(total: Holdings, part: Holdings) -> tuple[tuple[ResourceAmounts, ResourceAmounts], ...]:
    """Return the amounts of both side by side, kind by kind."""
    return (
        (total.requested, part.requested),
        (total.allocated, part.allocated),
        (total.non_preemptible, part.non_preemptible),
    )

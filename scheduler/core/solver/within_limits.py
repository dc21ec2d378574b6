"""Reduce a set of victims to what the disruption limits allow, so that others are taken instead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from scheduler.core.session.disruptions import DisruptionLedger
from scheduler.core.solver.generators import Probe, VictimSet
from scheduler.core.solver.victims import Batch


def within_limits(
    ledger: DisruptionLedger, probe: Probe, victims: VictimSet
) -> Iterator[VictimSet]:
    """Yield the sets of victims to try instead of one that exceeds a limit.

    First two subsets that keep to the limits: one is filled in the order of eviction, one in the reverse
    order of pod groups. Then the whole set, because some of its tasks may get their own place back.
    """
    exceeded = ledger.exceeded((*probe.settled, *victims)) if ledger else None
    if not exceeded:
        yield victims
        return
    ledger.in_the_way |= exceeded
    by_group = _batches_of(probe, frozenset(victims))
    yielded: set[frozenset[int]] = set()
    for order in (list(by_group), list(reversed(by_group))):
        subset = _largest_subset(ledger, probe.settled, [by_group[group] for group in order])
        if subset and subset not in yielded:
            yielded.add(subset)
            yield tuple(task for task in victims if task in subset)
    yield victims


def _batches_of(probe: Probe, victims: frozenset[int]) -> dict[int, list[Batch]]:
    """Return the batches of a set of victims by pod group, in the order of eviction."""
    by_group: dict[int, list[Batch]] = {}
    for batch in probe.sequence.batches:
        if victims.issuperset(batch.tasks):
            by_group.setdefault(batch.pod_group, []).append(batch)
    return by_group


def _largest_subset(
    ledger: DisruptionLedger, settled: Sequence[int], groups: Iterable[Sequence[Batch]]
) -> frozenset[int]:
    """Return the tasks that can be evicted together within the limits, taken batch by batch.

    A pod group loses its batches only in their order, so a batch that exceeds a limit excludes the later ones.
    """
    subset: list[int] = []
    for batches in groups:
        for batch in batches:
            if ledger.exceeded((*settled, *subset, *batch.tasks)):
                break
            subset += batch.tasks
    return frozenset(subset)

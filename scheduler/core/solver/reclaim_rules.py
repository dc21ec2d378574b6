"""The rules of taking from other queues, applied to searches and trials.

The rules themselves are pure functions in `fairshare.reclaimable`. This module applies them to a
session: which leaf queues a search may take from, what the victims of a trial held chunk by chunk, and
how much a search could take at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf

from scheduler.core.arrays import (
    CPU_INDEX,
    GPU_INDEX,
    MEMORY_INDEX,
    NO_AMOUNTS,
    TOLERANCE,
    Amounts,
    is_above,
)
from scheduler.core.cluster.status import ACTIVE_ALLOCATED
from scheduler.core.fairshare.reclaimable import (
    Reclaimer,
    can_reclaim,
    diverging_pair,
    find_violation,
    may_hold_victims,
    may_take_in_quota,
    stays_within_quota,
)
from scheduler.core.fairshare.shares import Holdings, exceeds_somewhere, plus
from scheduler.core.session.session import Session
from scheduler.core.solver.victims import Batch


def may_start(session: Session, reclaimer: Reclaimer) -> bool:
    """Return whether the reclaimer may search for victims; without fair shares none may."""
    return session.policy.is_active and can_reclaim(session.policy.ledger, reclaimer)


def leaves_with_victims(session: Session, reclaimer: Reclaimer, leaves: Iterable[int]) -> list[int]:
    """Return the other leaf queues that may hold victims."""
    ledger = session.policy.ledger
    return [
        leaf
        for leaf in leaves
        if leaf != reclaimer.queue and may_hold_victims(ledger, reclaimer, leaf)
    ]


def holdings_before(session: Session, queues: Iterable[int]) -> Holdings:
    """Copy what some queues and their ancestors hold, before anything is tried."""
    ledger = session.policy.ledger
    allocated: dict[int, Amounts] = {}
    non_preemptible: dict[int, Amounts] = {}
    for queue in queues:
        for index in ledger.paths[queue]:
            if index in allocated:
                break
            allocated[index] = tuple(ledger.allocated[index])
            non_preemptible[index] = tuple(ledger.allocated_non_preemptible[index])
    return Holdings(allocated=allocated, allocated_non_preemptible=non_preemptible)


def are_losses_allowed(
    session: Session,
    before: Holdings,
    reclaimer: Reclaimer,
    victims: Mapping[int, Sequence[int]],
) -> bool:
    """Return whether the rules allow what a trial took.

    Parameters
    ----------
    before : what queues held before the trial
    victims : all evicted tasks by pod group; with consolidating reclaim those that have a place
        again are not counted
    """
    chunks: dict[int, list[Amounts]] = {}
    for group, tasks in victims.items():
        queue = session.state.pod_groups.queue[group]
        chunks.setdefault(queue, []).extend(_chunks_of(session, tasks))
    return (
        find_violation(
            session.policy.ledger,
            before,
            reclaimer,
            {queue: amounts for queue, amounts in chunks.items() if amounts},
            session.policy.saturation_multiplier,
        )
        is None
    )


def is_taken_in_quota(session: Session, before: Holdings, reclaimer: Reclaimer, leaf: int) -> bool:
    """Return whether only the priority of queues allows taking from a leaf queue.

    Parameters
    ----------
    before : what queues held before the search
    """
    ledger = session.policy.ledger
    own_queue, victim_queue = diverging_pair(ledger, reclaimer.queue, leaf)
    allocated = before.allocated[victim_queue]
    is_within_quota = stays_within_quota(
        ledger, own_queue, before.allocated[own_queue], reclaimer.required
    )
    return (
        may_take_in_quota(
            ledger, reclaimer, own_queue, victim_queue, is_within_quota=is_within_quota
        )
        and not exceeds_somewhere(allocated, ledger.allocatable[victim_queue])
        and not exceeds_somewhere(allocated, ledger.quotas[victim_queue])
    )


def _chunks_of(session: Session, tasks: Sequence[int]) -> list[Amounts]:
    """Split the victims of one pod group: each elastic task alone, then all core tasks together.

    The first victims of each pod set, as many as its minimum, are its core.
    """
    state = session.state
    status, accepted = state.tasks.status, state.tasks.accepted
    ignores_placed = session.config.allow_consolidating_reclaim
    if len(tasks) == 1:
        task = tasks[0]
        has_place = ignores_placed and ACTIVE_ALLOCATED[status[task]]
        return [] if has_place else [accepted[task]]
    elastic: list[Amounts] = []
    core: Amounts = NO_AMOUNTS
    core_size = 0
    lost_tasks: dict[int, int] = {}
    for task in tasks:
        if ignores_placed and ACTIVE_ALLOCATED[status[task]]:
            continue
        pod_set = state.tasks.pod_set[task]
        lost_tasks[pod_set] = lost_tasks.get(pod_set, 0) + 1
        if lost_tasks[pod_set] <= state.pod_groups.pod_sets.minimum[pod_set]:
            core = plus(core, accepted[task])
            core_size += 1
        else:
            elastic.append(accepted[task])
    return [*elastic, core] if core_size else elastic


def takeable_gpus(session: Session, reclaimer: Reclaimer, batches: Sequence[Batch]) -> float:
    """Return a number of GPUs that no allowed set of victims reaches.

    A queue loses chunks only while it holds more than one of its bounds in some resource. Where only
    GPUs can be above a bound, it loses less than the surplus plus the largest chunk.

    Returns
    -------
    an exclusive upper bound; inf where another resource or the priority of queues could justify taking more
    """
    ledger = session.policy.ledger
    largest: dict[int, float] = {}
    for batch in batches:
        leaf = session.state.pod_groups.queue[batch.pod_group]
        own_queue, victim_queue = diverging_pair(ledger, reclaimer.queue, leaf)
        if may_take_in_quota(ledger, reclaimer, own_queue, victim_queue, is_within_quota=True):
            return inf
        largest[victim_queue] = max(
            largest.get(victim_queue, 0.0), _gpus_of(session, batch.pod_group)
        )
    total = 0.0
    for victim_queue, chunk in largest.items():
        surplus = _surplus_gpus(session, victim_queue)
        if surplus == inf:
            return inf
        if surplus > TOLERANCE:
            total += surplus + chunk
    return total


def _gpus_of(session: Session, pod_group: int) -> float:
    return session.held_by(session.view(pod_group).all_active_tasks())[GPU_INDEX]


def _surplus_gpus(session: Session, queue: int) -> float:
    """Return the GPUs above the lowest bound of a queue; inf if another resource is above its bound."""
    ledger = session.policy.ledger
    allocated = ledger.allocated[queue]
    bound = list(ledger.allocatable[queue])
    quota = ledger.quotas[queue]
    for resource in (CPU_INDEX, MEMORY_INDEX, GPU_INDEX):
        bound[resource] = min(bound[resource], quota[resource])
    if any(is_above(allocated[other], bound[other]) for other in (CPU_INDEX, MEMORY_INDEX)):
        return inf
    return allocated[GPU_INDEX] - bound[GPU_INDEX]

"""Rules about capacity: of devices, of nodes, and of the core's own ledgers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from scheduler.core.cluster.status import TaskStatus
from scheduler.core.decisions import Bind
from scheduler.core.errors import InvariantError
from tests.scheduler.fuzz.cycles import CycleRun, Finding
from tests.scheduler.fuzz.exact import Holder, overdrawn


def no_bind_overdraws_a_node(cycle_run: CycleRun) -> Iterator[Finding]:
    """Where something is bound, it fits beside everything that is still there, also what is leaving."""
    holders = foreign_holders(cycle_run)
    for pod in cycle_run.pods.values():
        if pod.was_on_node:
            holders[pod.home].append((pod.request, pod.gpu_groups_before))
        elif pod.after == TaskStatus.BINDING:
            holders[pod.node].append((pod.request, pod.gpu_groups))
    targets = {
        decision.node for decision in cycle_run.session.decisions if isinstance(decision, Bind)
    }
    for node in cycle_run.cluster.nodes:
        if node.name in targets:
            for text in overdrawn(node, holders[node.name]):
                yield Finding("node overdrawn by a bind", text)


def no_promise_overdraws_a_node(cycle_run: CycleRun) -> Iterator[Finding]:
    """What stays, is bound and is nominated fits once everything that leaves has left."""
    holders = foreign_holders(cycle_run)
    for pod in cycle_run.pods.values():
        if pod.holds_after and pod.node:
            holders[pod.node].append((pod.request, pod.gpu_groups))
    for node in cycle_run.cluster.nodes:
        for text in overdrawn(node, holders[node.name]):
            yield Finding("node overdrawn by promises", text)


def state_is_valid(cycle_run: CycleRun) -> Iterator[Finding]:
    """The core's own counters agree with each other."""
    try:
        cycle_run.session.state.validate()
    except InvariantError as error:
        yield Finding("state invalid", str(error))


def foreign_holders(cycle_run: CycleRun) -> dict[str, list[Holder]]:
    """Return what pods of other schedulers hold, by node."""
    holders: dict[str, list[Holder]] = defaultdict(list)
    for other in cycle_run.cluster.other_pods:
        holders[other.task.node].append((other.task.request, other.task.gpu_groups))
    return holders

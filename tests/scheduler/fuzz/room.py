"""Rules about capacity: of devices, of nodes, and of the core's own ledgers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from scheduler.core.cluster.status import TaskStatus
from scheduler.core.decisions import Bind
from scheduler.core.errors import InvariantError
from tests.scheduler.fuzz.cycles import Finding, Played
from tests.scheduler.fuzz.exact import Holder, overdrawn


def no_bind_overdraws_a_node(played: Played) -> Iterator[Finding]:
    """Where something is bound, it fits beside everything that is still there, also what is leaving."""
    holders = foreign_holders(played)
    for pod in played.pods.values():
        if pod.was_on_node:
            holders[pod.home].append((pod.request, pod.gpu_groups_before))
        elif pod.after == TaskStatus.BINDING:
            holders[pod.node].append((pod.request, pod.gpu_groups))
    targets = {each.node for each in played.session.decisions if isinstance(each, Bind)}
    for node in played.cluster.nodes:
        if node.name in targets:
            for text in overdrawn(node, holders[node.name]):
                yield Finding("node overdrawn by a bind", text)


def no_promise_overdraws_a_node(played: Played) -> Iterator[Finding]:
    """What stays, is bound and is nominated fits once everything that leaves has left."""
    holders = foreign_holders(played)
    for pod in played.pods.values():
        if pod.holds_after and pod.node:
            holders[pod.node].append((pod.request, pod.gpu_groups))
    for node in played.cluster.nodes:
        for text in overdrawn(node, holders[node.name]):
            yield Finding("node overdrawn by promises", text)


def state_is_valid(played: Played) -> Iterator[Finding]:
    """The core's own counters agree with each other."""
    try:
        played.session.state.validate()
    except InvariantError as error:
        yield Finding("state invalid", str(error))


def foreign_holders(played: Played) -> dict[str, list[Holder]]:
    """Return what pods of other schedulers hold, by node."""
    holders: dict[str, list[Holder]] = defaultdict(list)
    for other in played.cluster.other_pods:
        holders[other.task.node].append((other.task.request, other.task.gpu_groups))
    return holders

"""Rules about queues: limits, quotas of non-preemptible work, and what reclaim may take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from scheduler.core.cluster.inputs import NodeInput, QueueInput
from scheduler.core.cluster.status import QUEUE_ALLOCATED
from scheduler.core.decisions import ActionName, Decision, Evict, Nominate
from tests.scheduler.fuzz.cycles import Finding, Played, Pod
from tests.scheduler.fuzz.exact import NOTHING, Sums, bounds, charged, exceeds, paths_of, plus


@dataclass(slots=True)
class Books:
    """What every queue holds, by exact sums, as decisions are followed one by one."""

    played: Played
    held: dict[str, Sums] = field(default_factory=lambda: defaultdict(lambda: NOTHING))
    paths: dict[str, list[str]] = field(default_factory=dict)
    queues: dict[str, QueueInput] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)

    @classmethod
    def opened(cls, played: Played) -> Books:
        """Return the books at the start of the cycle."""
        books = cls(played)
        books.paths = paths_of(played.cluster.queues)
        books.queues = {queue.name: queue for queue in played.cluster.queues}
        for pod in played.pods.values():
            if QUEUE_ALLOCATED[pod.before]:
                books.places[pod.name] = pod.home
                books.charge(pod, pod.home)
        return books

    def charge(self, pod: Pod, node: str, sign: int = 1) -> None:
        """Charge a pod to its queue and the ancestors of that."""
        for name in self.paths[pod.queue]:
            self.held[name] = plus(self.held[name], self.amounts(pod, node), sign)

    def amounts(self, pod: Pod, node: str) -> Sums:
        """Return what a pod counts on a node."""
        return charged(pod.request, _node(self.played, node))

    def follow(self, decision: Decision) -> None:
        """Apply one decision."""
        pod = self.played.pods[decision.task.name]
        # A pod that was nominated in this cycle may lose that place to a later evictor, or change it.
        node = self.places.pop(pod.name, "")
        if node:
            self.charge(pod, node, -1)
        if not isinstance(decision, Evict):
            self.places[pod.name] = decision.node
            self.charge(pod, decision.node)

    def close(self) -> None:
        """Charge what holds a place at the end of the cycle, and nothing else."""
        self.held.clear()
        for pod in self.played.pods.values():
            if pod.holds_after and pod.node:
                self.charge(pod, pod.node)

    def diverging(self, left: str, right: str) -> tuple[str, str]:
        """Return the ancestors of two queues where their paths from the root part."""
        pair = ("", "")
        for pair in zip(reversed(self.paths[left]), reversed(self.paths[right]), strict=False):
            if pair[0] != pair[1]:
                break
        return pair


def limits_hold(played: Played) -> Iterator[Finding]:
    """No queue ends above its limit, except by what it held before."""
    books = Books.opened(played)
    before = dict(books.held)
    books.close()
    for name, allocated in books.held.items():
        limit = bounds(books.queues[name], "limit")
        old = before.get(name, NOTHING)
        if exceeds(allocated, tuple(max(pair) for pair in zip(limit, old, strict=True))):
            yield Finding("limit passed", f"{name} holds {allocated}, before {old}, limit {limit}")


def non_preemptible_work_stays_within_quota(played: Played) -> Iterator[Finding]:
    """New non-preemptible work fits into the quota of every queue on its path."""
    books, new = Books.opened(played), []
    books.held.clear()
    for pod in played.pods.values():
        if pod.preemptible or not pod.holds_after:
            continue
        books.charge(pod, pod.node)
        if not pod.held_before:
            new.append(pod)
    for name in sorted({name for pod in new for name in books.paths[pod.queue]}):
        quota = bounds(books.queues[name], "quota")
        # Only the resources that the new work asks for are checked.
        uses = [
            any(books.amounts(pod, pod.node)[kind] for pod in new if name in books.paths[pod.queue])
            for kind in range(3)
        ]
        allocated = tuple(h if used else 0 for h, used in zip(books.held[name], uses, strict=True))
        if exceeds(allocated, quota):
            yield Finding(
                "quota passed by non-preemptible work", f"{name} holds {allocated}, quota {quota}"
            )


def reclaim_takes_only_what_is_above(played: Played) -> Iterator[Finding]:
    """A queue within its quota loses nothing; one within its share only to a queue within its quota."""
    books = Books.opened(played)
    for steps in _statements(played.session.decisions):
        first = steps[0]
        if isinstance(first, Evict) and first.reason.action == ActionName.RECLAIM:
            yield from _check_losses(books, steps)
        for decision in steps:
            books.follow(decision)


def _statements(decisions: list[Decision]) -> Iterator[list[Decision]]:
    """Split decisions into statements: one begins where an eviction follows something else."""
    steps: list[Decision] = []
    for decision in decisions:
        if isinstance(decision, Evict) and steps and not isinstance(steps[-1], Evict):
            yield steps
            steps = []
        steps.append(decision)
    if steps:
        yield steps


def _check_losses(books: Books, steps: list[Decision]) -> Iterator[Finding]:
    played = books.played
    lost = [step for step in steps if isinstance(step, Evict) and not step.moved_to]
    for leaf in sorted({played.pods[step.task.name].queue for step in lost}):
        evictor = lost[0].reason.evictor
        own, other = books.diverging(played.pods_of(evictor)[0].queue, leaf)
        allocated = books.held[other]
        ledger = played.session.policy.ledger
        share = ledger.allocatable[ledger.names.index(other)]
        if exceeds(allocated, (share[0], share[1], round(share[2] * 1000, 3))):
            continue
        text = f"{other} holds {allocated} and loses to {evictor} of {own}"
        if not exceeds(allocated, bounds(books.queues[other], "quota")):
            yield Finding("queue within its share loses", f"{text}; allocatable {share}")
        elif not _is_within_quota(books, own, steps):
            yield Finding("reclaim above quota from a queue within its share", text)


def _is_within_quota(books: Books, own: str, steps: list[Decision]) -> bool:
    """Return whether the queue of an evictor stays within quota with its first chunk, or may do so.

    A request by memory counts by the smallest device of the cluster, so it is not looked at.
    """
    nominated = [step for step in steps if isinstance(step, Nominate) and not step.is_moved_victim]
    pods = [books.played.pods[step.task.name] for step in nominated]
    if not pods or any(pod.request.gpu_memory_mib for pod in pods):
        return True
    quota, allocated = bounds(books.queues[own], "quota"), books.held[own]
    # The smallest chunk is one pod.
    amounts = (books.amounts(pod, step.node) for pod, step in zip(pods, nominated, strict=True))
    return any(not exceeds(plus(allocated, amount), quota) for amount in amounts)


def _node(played: Played, name: str) -> NodeInput:
    return next(node for node in played.cluster.nodes if node.name == name)

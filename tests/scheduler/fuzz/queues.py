"""Rules about queues: limits, quotas of non-preemptible work, and what reclaim may take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from scheduler.core.cluster.inputs import NodeInput, QueueInput
from scheduler.core.cluster.status import QUEUE_ALLOCATED
from scheduler.core.decisions import ActionName, Decision, Evict, Nominate
from tests.scheduler.fuzz.cycles import CycleRun, Finding, Pod
from tests.scheduler.fuzz.exact import NOTHING, Sums, add, bounds, charge_of, exceeds, paths_of


@dataclass(slots=True)
class QueueAccounts:
    """What every queue holds, by exact sums, as decisions are followed one by one."""

    cycle_run: CycleRun
    held: dict[str, Sums] = field(default_factory=lambda: defaultdict(lambda: NOTHING))
    paths: dict[str, list[str]] = field(default_factory=dict)
    queues: dict[str, QueueInput] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)

    @classmethod
    def before_cycle(cls, cycle_run: CycleRun) -> QueueAccounts:
        """Return what the queues hold at the start of the cycle."""
        accounts = cls(cycle_run)
        accounts.paths = paths_of(cycle_run.cluster.queues)
        accounts.queues = {queue.name: queue for queue in cycle_run.cluster.queues}
        for pod in cycle_run.pods.values():
            if QUEUE_ALLOCATED[pod.before]:
                accounts.places[pod.name] = pod.home
                accounts.charge(pod, pod.home)
        return accounts

    def charge(self, pod: Pod, node: str, sign: int = 1) -> None:
        """Charge a pod to its queue and the ancestors of that."""
        for name in self.paths[pod.queue]:
            self.held[name] = add(self.held[name], self.amounts(pod, node), sign)

    def amounts(self, pod: Pod, node: str) -> Sums:
        """Return what a pod counts on a node."""
        return charge_of(pod.request, _node(self.cycle_run, node))

    def apply(self, decision: Decision) -> None:
        """Apply one decision."""
        pod = self.cycle_run.pods[decision.task.name]
        # A pod that was nominated in this cycle may lose that place to a later evictor, or change it.
        node = self.places.pop(pod.name, "")
        if node:
            self.charge(pod, node, -1)
        if not isinstance(decision, Evict):
            self.places[pod.name] = decision.node
            self.charge(pod, decision.node)

    def recount_after_cycle(self) -> None:
        """Count anew: only the pods that hold a place at the end of the cycle are charged."""
        self.held.clear()
        for pod in self.cycle_run.pods.values():
            if pod.holds_after and pod.node:
                self.charge(pod, pod.node)

    def diverging_ancestors(self, left: str, right: str) -> tuple[str, str]:
        """Return the topmost ancestors of two queues (or these themselves) that differ."""
        pair = ("", "")
        for pair in zip(reversed(self.paths[left]), reversed(self.paths[right]), strict=False):
            if pair[0] != pair[1]:
                break
        return pair


def limits_hold(cycle_run: CycleRun) -> Iterator[Finding]:
    """No queue ends above its limit, except by what it held before."""
    accounts = QueueAccounts.before_cycle(cycle_run)
    before = dict(accounts.held)
    accounts.recount_after_cycle()
    for name, allocated in accounts.held.items():
        limit = bounds(accounts.queues[name], "limit")
        allocated_before = before.get(name, NOTHING)
        if exceeds(
            allocated, tuple(max(pair) for pair in zip(limit, allocated_before, strict=True))
        ):
            yield Finding(
                "limit passed",
                f"{name} holds {allocated}, before {allocated_before}, limit {limit}",
            )


def non_preemptible_work_stays_within_quota(cycle_run: CycleRun) -> Iterator[Finding]:
    """New non-preemptible work fits into the quota of every queue on its path."""
    accounts, new = QueueAccounts.before_cycle(cycle_run), []
    accounts.held.clear()
    for pod in cycle_run.pods.values():
        if pod.preemptible or not pod.holds_after:
            continue
        accounts.charge(pod, pod.node)
        if not pod.held_before:
            new.append(pod)
    for name in sorted({name for pod in new for name in accounts.paths[pod.queue]}):
        quota = bounds(accounts.queues[name], "quota")
        # Only the resources that the new work asks for are checked.
        is_requested = [
            any(
                accounts.amounts(pod, pod.node)[kind]
                for pod in new
                if name in accounts.paths[pod.queue]
            )
            for kind in range(3)
        ]
        allocated = tuple(
            amount if is_counted else 0
            for amount, is_counted in zip(accounts.held[name], is_requested, strict=True)
        )
        if exceeds(allocated, quota):
            yield Finding(
                "quota passed by non-preemptible work", f"{name} holds {allocated}, quota {quota}"
            )


def reclaim_takes_only_what_is_above(cycle_run: CycleRun) -> Iterator[Finding]:
    """A queue within its quota loses nothing; one within its share only to a queue within its quota."""
    accounts = QueueAccounts.before_cycle(cycle_run)
    for steps in _statements(cycle_run.session.decisions):
        first = steps[0]
        if isinstance(first, Evict) and first.reason.action == ActionName.RECLAIM:
            yield from _check_losses(accounts, steps)
        for decision in steps:
            accounts.apply(decision)


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


def _check_losses(accounts: QueueAccounts, steps: list[Decision]) -> Iterator[Finding]:
    cycle_run = accounts.cycle_run
    evictions = [step for step in steps if isinstance(step, Evict) and not step.moved_to]
    for leaf in sorted({cycle_run.pods[step.task.name].queue for step in evictions}):
        evictor = evictions[0].reason.evictor
        evictor_queue, victim_queue = accounts.diverging_ancestors(
            cycle_run.pods_of(evictor)[0].queue, leaf
        )
        allocated = accounts.held[victim_queue]
        ledger = cycle_run.session.policy.ledger
        share = ledger.allocatable[ledger.names.index(victim_queue)]
        if exceeds(allocated, (share[0], share[1], round(share[2] * 1000, 3))):
            continue
        text = f"{victim_queue} holds {allocated} and loses to {evictor} of {evictor_queue}"
        if not exceeds(allocated, bounds(accounts.queues[victim_queue], "quota")):
            yield Finding("queue within its share loses", f"{text}; allocatable {share}")
        elif not _is_within_quota(accounts, evictor_queue, steps):
            yield Finding("reclaim above quota from a queue within its share", text)


def _is_within_quota(accounts: QueueAccounts, queue: str, steps: list[Decision]) -> bool:
    """Return whether the queue of an evictor stays within quota with the first chunk; True where unsure.

    Unsure are requests for GPU memory: the core counts them by the smallest device of the cluster.
    """
    nominated = [step for step in steps if isinstance(step, Nominate) and not step.is_moved_victim]
    pods = [accounts.cycle_run.pods[step.task.name] for step in nominated]
    if not pods or any(pod.request.gpu_memory_mib for pod in pods):
        return True
    quota, allocated = bounds(accounts.queues[queue], "quota"), accounts.held[queue]
    # The smallest chunk is one pod.
    amounts = (accounts.amounts(pod, step.node) for pod, step in zip(pods, nominated, strict=True))
    return any(not exceeds(add(allocated, amount), quota) for amount in amounts)


def _node(cycle_run: CycleRun, name: str) -> NodeInput:
    return next(node for node in cycle_run.cluster.nodes if node.name == name)

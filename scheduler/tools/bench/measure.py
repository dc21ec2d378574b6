"""Run a workload several times, keep the best times, and count what was decided.

The collector of Python's garbage is switched off while actions run, as a scheduling worker does: a
cycle frees everything at its end, and a collection in the middle would measure something else.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from scheduler.core.cluster.status import TaskStatus
from scheduler.core.cycle import run_cycle
from scheduler.core.decisions import Bind, Evict, Nominate
from scheduler.core.session.session import Session
from scheduler.tools.bench.load import load_cluster, load_config


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchOutcome:
    """Counts of decisions.

    `moved`: running pods given a new node; `evicted`: pods that lose their place; the two exclude
    each other. `nodes_used_by_placed`: nodes that got a pod which was pending before.
    """

    bound_now: int
    waiting_for_room_being_freed: int
    moved: int
    evicted: int
    left_pending: int
    nodes_used_by_placed: int


@dataclass(slots=True, kw_only=True)
class Measurement:
    """Best times over all runs, in seconds."""

    name: str
    #: Kind of decision -> how many.
    summary: dict[str, int]
    runs: int
    open_s: float
    #: Action -> seconds.
    actions_s: dict[str, float] = field(default_factory=dict)
    best_total_s: float = 0.0
    outcome: BenchOutcome

    def as_dict(self) -> dict[str, Any]:
        """Return the measurement as JSON types."""
        return asdict(self)


def measure(
    document: dict[str, Any], runs: int, clock: Callable[[], float] = time.perf_counter
) -> Measurement:
    """Run a workload's actions `runs` times on fresh sessions and keep the best times, by a clock of seconds."""
    cluster, config = load_cluster(document), load_config(document)
    opened: list[float] = []
    totals: list[float] = []
    per_action: dict[str, list[float]] = {}
    outcome = None
    for _ in range(runs):
        gc.collect()
        gc.disable()
        try:
            started = clock()
            session = run_cycle(
                cluster,
                config,
                clock=clock,
                after_open=lambda _: opened.append(clock()),
            )
        finally:
            gc.enable()
        opened[-1] -= started
        for report in session.reports:
            per_action.setdefault(str(report.action), []).append(report.seconds)
        totals.append(sum(report.seconds for report in session.reports))
        counts = count_outcome(session)
        if outcome is not None and counts != outcome:
            raise RuntimeError(f"{document['name']}: two runs decided {outcome} and {counts}")
        outcome = counts
    if outcome is None:
        raise ValueError(f"{document['name']}: expected at least one run, got {runs}")
    return Measurement(
        name=document["name"],
        summary=document["summary"],
        runs=runs,
        open_s=min(opened),
        actions_s={name: min(times) for name, times in per_action.items()},
        best_total_s=min(totals),
        outcome=outcome,
    )


def count_outcome(session: Session) -> BenchOutcome:
    """Count the decisions of a session whose actions have run."""
    decisions = session.decisions
    binds = [decision for decision in decisions if isinstance(decision, Bind)]
    waits = [
        decision
        for decision in decisions
        if isinstance(decision, Nominate) and not decision.is_moved_victim
    ]
    evictions = [decision for decision in decisions if isinstance(decision, Evict)]
    return BenchOutcome(
        bound_now=len(binds),
        waiting_for_room_being_freed=len(waits),
        moved=sum(1 for decision in evictions if decision.moved_to),
        evicted=sum(1 for decision in evictions if not decision.moved_to),
        left_pending=session.state.tasks.status.count(TaskStatus.PENDING),
        nodes_used_by_placed=len(
            {decision.node for decision in binds} | {decision.node for decision in waits}
        ),
    )

"""Place all pods of a trace in one session, in the order of their arrival, and measure the result."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from kube.objects.config import PlacementStrategy, ShardSpec
from scheduler.core.config import SchedulerConfig
from scheduler.core.cycle import run_cycle
from scheduler.core.decisions import ActionName, Bind
from scheduler.core.session.session import Session
from scheduler.settings.shard import core_config
from scheduler.tools.traces.packing import Mark, packing_curve
from scheduler.tools.traces.trace import Trace, pod_name, snapshot_of

#: The state is reported each time the pods so far ask for this many percent of the cluster's GPUs.
MARKS = (50.0, 60.0, 70.0, 80.0, 90.0, 100.0, 110.0, 120.0, 130.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionResult:
    """One trace placed with one strategy; times in seconds, `sizes` is the number of distinct requests."""

    workload: str
    strategy: str
    seed: int
    nodes: int
    pods: int
    sizes: int
    placed: int
    open_s: float
    allocate_s: float
    curve: tuple[Mark, ...]

    def at(self, arrived: float) -> Mark:
        """Return the state at one of the marks, named by its percentage."""
        return next(mark for mark in self.curve if mark.arrived == arrived)

    def as_dict(self) -> dict[str, Any]:
        """Return the result as JSON types."""
        return asdict(self)


def strategy_config(strategy: str) -> SchedulerConfig:
    """Return the configuration of a shard with this placement strategy, reduced to the action allocate."""
    placement = PlacementStrategy(gpu=strategy, cpu=strategy)
    config = core_config(ShardSpec(placement_strategy=placement))
    return replace(config, actions=(ActionName.ALLOCATE,))


def place_trace(
    trace: Trace,
    strategy: str,
    *,
    seed: int = 0,
    marks: Sequence[float] = MARKS,
    clock: Callable[[], float] = time.perf_counter,
) -> SessionResult:
    """Run one session on a trace, timed by a clock of seconds.

    Python's garbage collector is off meanwhile, as in a scheduling worker.
    """
    cluster, config = snapshot_of(trace), strategy_config(strategy)
    opened_at = 0.0

    def note_opening(_: Session) -> None:
        nonlocal opened_at
        opened_at = clock()

    gc.collect()
    gc.disable()
    try:
        started = clock()
        session = run_cycle(cluster, config, clock=clock, after_open=note_opening)
    finally:
        gc.enable()
    by_name = {
        decision.task.name: decision for decision in session.decisions if isinstance(decision, Bind)
    }
    binds = [
        [
            bind
            for number in range(shape.pods)
            if (bind := by_name.get(pod_name(position, number))) is not None
        ]
        for position, shape in enumerate(trace.pods)
    ]
    return SessionResult(
        workload=trace.name,
        strategy=strategy,
        seed=seed,
        nodes=len(trace.nodes),
        pods=sum(shape.pods for shape in trace.pods),
        sizes=len(set(trace.pods)),
        placed=len(by_name),
        open_s=opened_at - started,
        allocate_s=sum(report.seconds for report in session.reports),
        curve=tuple(packing_curve(trace, binds, marks)),
    )

"""Whole sessions against their goals: openings after changes, pods of many sizes, and the packing of traces.

openb itself lies outside the project; where it is missing, only the generated workload of its shapes is measured.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from scheduler.tools.bench import opening
from scheduler.tools.bench.measure import measure
from scheduler.tools.bench.workloads import WORKLOADS
from scheduler.tools.traces.generated import generate
from scheduler.tools.traces.one_session import place_trace
from scheduler.tools.traces.openb import read_openb
from scheduler.tools.traces.trace import Trace
from tests.bench.goals import Figure

CHECKOUT = Path(__file__).resolve().parents[2]
OPENB = Path(os.environ.get("KAIWEB_SHARED", CHECKOUT.parent / "shared")) / "traces" / "openb"
#: What the pods of a trace ask for, as a multiple of the cluster's GPUs.
DEMAND = 1.3
LARGE, MEDIUM = 5000, 500
#: What is opened or divided -> milliseconds that it should take.
OPENING_GOALS_MS = {
    "nothing changed": 10.0,
    "100 pods changed": 30.0,
    "cycle with 1000 new pods": 300.0,
    "fair share of 11110 queues": 30.0,
}
OPENB_GOAL_S = 0.8
#: Seconds per pod of a thousand sizes, as a multiple of those of one size.
SIZES_GOAL = 3.0


def figures(runs: int) -> Iterator[Figure | str]:
    """Measure everything, the best of so many runs; yield figures, and lines about what cannot be measured."""
    for row in opening.measure(LARGE, runs):
        yield Figure(
            name=f"opening, {row.what}",
            measured=row.total_ms,
            unit="ms",
            goal=OPENING_GOALS_MS.get(row.what),
        )
    yield _sizes(runs)
    yield _trace("generated, in one session", generate(1213, demand=DEMAND), runs, None)
    if OPENB.is_dir():
        openb = read_openb(OPENB, "default", seed=0, demand=DEMAND)
        yield _trace("openb default list, in one session", openb, runs, OPENB_GOAL_S)
    else:
        yield f"openb default list: not measured, because there is no {OPENB} (KAIWEB_SHARED)"


def _sizes(runs: int) -> Figure:
    """Fill a cluster with pods of a thousand sizes, and with as many of one size."""
    seconds = [
        measure(WORKLOADS[name](nodes=MEDIUM), runs, clock=time.process_time).best_total_s
        for name in ("fill", "fill_sizes")
    ]
    return Figure(
        name=f"fill_sizes nodes={MEDIUM} sizes=1000, beside fill",
        measured=seconds[1] / seconds[0],
        unit="x",
        goal=SIZES_GOAL,
        note=f"{seconds[1]:.3f} s, one size {seconds[0]:.3f} s",
    )


def _trace(name: str, trace: Trace, runs: int, goal_s: float | None) -> Figure:
    results = [place_trace(trace, "binpack", clock=time.process_time) for _ in range(runs)]
    best = min(results, key=lambda result: result.open_s + result.allocate_s)
    return Figure(
        name=name,
        measured=best.open_s + best.allocate_s,
        unit="s",
        goal=goal_s,
        note=f"{best.pods} pods of {best.sizes} sizes, {best.placed} placed",
    )

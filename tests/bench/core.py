"""The scheduling core against its goals, and against the ratios of the last release: `python -m tests.bench.core [--record]`.

First the actions of workloads, then whole sessions (`sessions.py`).

A machine is faster today than tomorrow, so seconds cannot be compared with those of another run. What is kept in
`ratios.json` is how long a workload takes compared with a yardstick (plain Python and NumPy, like the core's own
work) that is measured in the same run, before and after it, both in seconds of CPU. A ratio that got worse by more
than `TOLERATED` ends the command with an error; `--record` keeps the new ones.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scheduler.tools.bench.many_sizes import REASONS
from scheduler.tools.bench.measure import measure
from scheduler.tools.bench.workloads import WORKLOADS
from tests.bench import sessions
from tests.bench.goals import HEAD, Figure

RATIOS = Path(__file__).with_name("ratios.json")
#: A ratio may be this many times the recorded one.
TOLERATED = 1.2
#: Workloads are timed so often, and the best counts.
RUNS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """One workload.

    Attributes
    ----------
    sizes : arguments of the workload
    goal_s : seconds that its actions should take on a quiet machine with two cores; None: no goal is set
    kai_s : what KAI's own core takes there; None: not measured
    """

    workload: str
    sizes: dict[str, Any]
    goal_s: float | None = None
    kai_s: float | None = None

    @property
    def name(self) -> str:
        """Return the name of the workload with its sizes."""
        return " ".join([self.workload, *(f"{key}={value}" for key, value in self.sizes.items())])


GOALS = (
    Goal(workload="fill", sizes={"nodes": 1000}, goal_s=0.08, kai_s=15.7),
    Goal(workload="fill_fractions", sizes={"nodes": 100}, goal_s=0.03),
    Goal(workload="gang_fill", sizes={"nodes": 512, "jobs": 8}),
    Goal(workload="reclaim_many_single", sizes={"nodes": 500}, goal_s=0.5, kai_s=221.0),
    Goal(workload="reclaim_many_single", sizes={"nodes": 1000}, goal_s=1.2),
    Goal(workload="reclaim_half", sizes={"nodes": 500}, goal_s=0.25, kai_s=62.0),
    Goal(workload="reclaim_large_job", sizes={"nodes": 1000}, goal_s=0.3, kai_s=143.0),
    Goal(workload="reclaim_unschedulable", sizes={"nodes": 100}, kai_s=31.0),
    Goal(workload="consolidate_nodes", sizes={"nodes": 100}, goal_s=0.1, kai_s=10.9),
    Goal(workload="consolidate_nodes", sizes={"nodes": 500}, goal_s=1.0),
    Goal(workload="steady", sizes={"nodes": 500}),
    *(
        Goal(workload="unsolvable_sizes", sizes={"nodes": 500, "askers": 5, "why": why}, goal_s=1.0)
        for why in REASONS
    ),
)


def main(arguments: Sequence[str]) -> int:
    """Print a table of all figures; return 1 if the ratio of a workload got worse by too much."""
    recorded: dict[str, float] = json.loads(RATIOS.read_text()) if RATIOS.is_file() else {}
    ratios: dict[str, float] = {}
    print(f"load of the machine: {os.getloadavg()[0]:.1f}; best of {RUNS}, seconds of CPU")
    print(f"{HEAD}     actions of a workload")
    for goal in GOALS:
        ratios[goal.name] = _measure(goal, recorded.get(goal.name))
    print(f"{HEAD}     sessions")
    for figure in sessions.figures(RUNS):
        print(figure if isinstance(figure, str) else figure.line(), flush=True)
    if "--record" in arguments:
        RATIOS.write_text(json.dumps(ratios, indent=2) + "\n")
        return 0
    worse = worse_than(recorded, ratios)
    for name in worse:
        print(
            f"{name}: ratio {ratios[name]:.2f}, recorded {recorded[name]:.2f}: slower by more than 20 %"
        )
    return 1 if worse else 0


def _measure(goal: Goal, recorded: float | None) -> float:
    """Run a workload and print its line; return its ratio to the yardstick."""
    document = WORKLOADS[goal.workload](**goal.sizes)
    before_s = yardstick_s()
    timing = measure(document, RUNS, clock=time.process_time)
    ratio = (timing.open_s + timing.best_total_s) / min(before_s, yardstick_s())
    notes = [f"ratio {ratio:.2f}", f"before {recorded or 'not recorded'}"]
    if goal.kai_s is not None:
        notes.append(f"KAI {goal.kai_s:g} s")
    figure = Figure(
        name=goal.name,
        measured=timing.best_total_s,
        unit="s",
        goal=goal.goal_s,
        note=", ".join(notes),
    )
    print(figure.line(), flush=True)
    return round(ratio, 2)


def worse_than(recorded: dict[str, float], ratios: dict[str, float]) -> list[str]:
    """Return the workloads whose ratio is worse than the recorded one by more than is tolerated."""
    return [
        name
        for name, ratio in ratios.items()
        if name in recorded and ratio > recorded[name] * TOLERATED
    ]


def yardstick_s() -> float:
    """Return the least seconds of CPU for a fixed amount of work like the core's: tuples, dictionaries, small arrays."""
    return min(_yardstick() for _ in range(5))


def _yardstick() -> float:
    started = time.process_time()
    amounts: dict[int, tuple[float, float, float]] = {}
    free = np.arange(512, dtype=np.float64)
    for number in range(6_000):
        amounts_held = amounts.get(number % 97, (0.0, 0.0, 0.0))
        amounts[number % 97] = (
            amounts_held[0] + 1.0,
            amounts_held[1] + number,
            max(amounts_held[2], number % 13),
        )
        if number % 8 == 0:
            free[number % 512] -= 1.0
            int(np.argmax(free >= 100.0))
    sorted(amounts.items(), key=lambda item: item[1])
    return time.process_time() - started


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The packing of openb's lists against the published figures of FGD: `python -m tests.bench.packing [LIST ...]`.

Strategy `fragmentation`, mean of five seeds, and its time beside that of `binpack`. Without openb, the generated workload
is packed instead, for which nothing is published.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from statistics import fmean

from scheduler.tools.traces.generated import generate
from scheduler.tools.traces.one_session import place_trace
from scheduler.tools.traces.openb import read_openb
from scheduler.tools.traces.trace import Trace
from tests.bench.goals import HEAD, Figure
from tests.bench.sessions import DEMAND, OPENB

SEEDS = 5
#: List of pods -> percent of the GPUs that FGD gives away once 100 % and 130 % of them have been asked for.
PUBLISHED = {
    "default": (95.2, 95.4),
    "gpuspec33": (87.8, 94.6),
    "multigpu50": (97.1, 97.2),
    "gpushare100": (86.6, 86.9),
    "cpu250": (93.2, 93.4),
}
MARKS = (100.0, 130.0)
#: The time of `fragmentation` as a multiple of that of `binpack`.
TIME_GOAL = 2.0


def main(arguments: Sequence[str]) -> None:
    """Print the figures of some lists, all five if none is named."""
    print(f"{HEAD}     packing with `fragmentation`, mean of {SEEDS} seeds")
    if not OPENB.is_dir():
        print(f"openb: not measured, because there is no {OPENB} (KAIWEB_SHARED)")
        _print_figures("generated", lambda seed: generate(1213, seed=seed, demand=DEMAND))
        return
    for pod_list in arguments or PUBLISHED:
        _print_figures(pod_list, _reader(pod_list))


def _reader(pod_list: str) -> Callable[[int], Trace]:
    return lambda seed: read_openb(OPENB, pod_list, seed=seed, demand=DEMAND)


def _print_figures(name: str, trace_of: Callable[[int], Trace]) -> None:
    runs = {
        strategy: [
            place_trace(trace_of(seed), strategy, seed=seed, marks=MARKS, clock=time.process_time)
            for seed in range(SEEDS)
        ]
        for strategy in ("binpack", "fragmentation")
    }
    goals: Sequence[float | None] = PUBLISHED.get(name, (None, None))
    for mark, goal in zip(MARKS, goals, strict=True):
        allocated = {
            strategy: fmean(result.at(mark).allocated for result in results)
            for strategy, results in runs.items()
        }
        figure = Figure(
            name=f"{name}, packed at {mark:.0f} %",
            measured=round(allocated["fragmentation"], 1),  # published with one decimal
            unit="%",
            goal=goal,
            more_is_better=True,
            note=f"binpack {allocated['binpack']:.1f} %",
        )
        print(figure.line(), flush=True)
    seconds = {
        strategy: min(result.open_s + result.allocate_s for result in results)
        for strategy, results in runs.items()
    }
    figure = Figure(
        name=f"{name}, time beside binpack",
        measured=seconds["fragmentation"] / seconds["binpack"],
        unit="x",
        goal=TIME_GOAL,
        note=f"{seconds['fragmentation']:.2f} s",
    )
    print(figure.line(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Runs in virtual time as tables of text and as one HTML file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from itertools import groupby

from scheduler.tools.traces.report import Line, html_page, html_table, lines_plot, text_table
from scheduler.tools.traces.timed.result import QueueResult, Sample, TimedResult

RUN_COLUMNS = (
    "workload",
    "strategy",
    "jobs",
    "unfinished",
    "days",
    "GPUs held %",
    "missing %",
    "pods evicted",
    "GPU hours lost",
    "cycles",
    "session ms",
    "longest ms",
)
QUEUE_COLUMNS = (
    "queue",
    "strategy",
    "jobs",
    "wait mean",
    "wait median",
    "wait 95 %",
    "pods evicted",
)
DAY_S = 86_400.0
#: Points of a plotted line at most, and marks below it.
MAX_POINTS, TICKS = 400, 8


def timed_tables(results: Sequence[TimedResult]) -> str:
    """Return two tables: the runs, and the queues of each."""
    return text_table(run_rows(results)) + "\n\n" + text_table(queue_rows(results))


def timed_page(results: Sequence[TimedResult]) -> str:
    """Return the runs as one HTML file with the tables and, for each workload, plots over time."""
    plots = []
    for workload, alike in groupby(results, key=lambda result: result.workload):
        runs = list(alike)
        plots.append(f"<h2>{escape(workload)}</h2>")
        plots.append(_plot(runs, "GPUs held, % (over days)", lambda sample: sample.allocated))
        plots.append(
            _plot(
                runs,
                "GPUs that queues miss of their fair share, % (over days)",
                lambda sample: sample.unfair,
            )
        )
    return html_page(
        "Jobs in virtual time",
        "<p>Jobs arrive and end as in the trace; an evicted job begins anew. The waiting time of a job is all the"
        " time it did not run. A queue misses GPUs while it holds less than its fair share.</p>"
        + html_table(run_rows(results))
        + html_table(queue_rows(results))
        + "".join(plots),
    )


def run_rows(results: Sequence[TimedResult]) -> list[tuple[str, ...]]:
    """Return the head and one row per run."""
    return [RUN_COLUMNS, *(_run_row(result) for result in results)]


def queue_rows(results: Sequence[TimedResult]) -> list[tuple[str, ...]]:
    """Return the head and one row per queue and run; the runs of a queue stand together."""
    rows = [
        (queue.name, number, _queue_row(queue, result.strategy))
        for number, result in enumerate(results)
        for queue in result.queues
    ]
    return [QUEUE_COLUMNS, *(row for _, _, row in sorted(rows, key=lambda each: each[:2]))]


def duration(seconds: float) -> str:
    """Return a time in the largest unit of which it has at least one."""
    for unit, size in (("d", DAY_S), ("h", 3600.0), ("min", 60.0)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def _run_row(result: TimedResult) -> tuple[str, ...]:
    return (
        result.workload,
        result.strategy,
        str(result.jobs),
        str(result.unfinished),
        f"{result.span_s / DAY_S:.1f}",
        f"{result.allocated:.1f}",
        f"{result.unfair:.2f}",
        ", ".join(f"{action} {count}" for action, count in result.evictions.items()) or "0",
        f"{result.lost_gpu_hours:.0f}",
        str(result.cycles),
        f"{1000 * result.session_mean_s:.0f}",
        f"{1000 * result.session_max_s:.0f}",
    )


def _queue_row(queue: QueueResult, strategy: str) -> tuple[str, ...]:
    return (
        queue.name,
        strategy,
        str(queue.jobs),
        duration(queue.mean_wait_s),
        duration(queue.median_wait_s),
        duration(queue.p95_wait_s),
        str(queue.evictions),
    )


def _plot(results: Sequence[TimedResult], title: str, value: Callable[[Sample], float]) -> str:
    lines: list[Line] = [
        (
            result.strategy,
            [(sample.time_s / DAY_S, value(sample)) for sample in _thinned(result.samples)],
        )
        for result in results
    ]
    last = max(x for _, points in lines for x, _ in points)
    return lines_plot(title, lines, [last * tick / TICKS for tick in range(TICKS + 1)])


def _thinned(samples: Sequence[Sample]) -> Sequence[Sample]:
    return samples[:: max(len(samples) // MAX_POINTS, 1)]

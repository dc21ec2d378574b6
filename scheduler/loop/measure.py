"""Measure a cycle: its parts with a stopwatch, its outcome in the metrics."""

from __future__ import annotations

import time
from collections.abc import Iterator

from scheduler.core.cluster.inputs import QueueInput
from scheduler.core.session.session import Session
from scheduler.metrics import METRICS, QueueRow


class StopWatch:
    """Milliseconds since the last lap, and since the start."""

    def __init__(self) -> None:
        self._started = self._last = time.perf_counter()

    def lap(self) -> float:
        """Return the time since the last lap, and begin the next one."""
        before, self._last = self._last, time.perf_counter()
        return (self._last - before) * 1000

    def total(self) -> float:
        """Return the time since the start."""
        return (time.perf_counter() - self._started) * 1000


def measure(session: Session, *, commit_ms: float, total_ms: float) -> None:
    """Set the metrics of a finished cycle."""
    METRICS.set_plugins(session.plugin_seconds)
    METRICS.close_session.set(commit_ms)
    METRICS.observe_actions(session.reports)
    METRICS.set_budgets(session.config.budgets)
    METRICS.set_queues(_rows(session))
    METRICS.e2e.set(total_ms)


def _rows(session: Session) -> Iterator[QueueRow]:
    fair_shares = session.policy.ledger.fair_shares
    for queue, share in zip(session.state.queues.inputs, fair_shares, strict=True):
        yield QueueRow(
            name=queue.name,
            display_name=_shown_name(queue),
            share=share,
            past_usage=(queue.cpu.usage, queue.memory.usage, queue.gpu.usage),
        )


def _shown_name(queue: QueueInput) -> str:
    return queue.display_name if queue.display_name != queue.name else ""

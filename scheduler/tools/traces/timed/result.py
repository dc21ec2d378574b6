"""The figures of one run in virtual time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any


@dataclass(frozen=True, slots=True)
class Sample:
    """The state after one cycle: percent of GPUs held, percent that queues miss of their fair share, jobs waiting."""

    time_s: float
    allocated: float
    unfair: float
    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueResult:
    """How the jobs of one queue fared; the waiting time of a job is all the time it did not run."""

    name: str
    jobs: int
    mean_wait_s: float
    median_wait_s: float
    p95_wait_s: float
    evictions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedResult:
    """One run.

    Attributes
    ----------
    unfinished : jobs that still waited when no event was left that could free resources for them
    span_s : virtual time between the first and the last cycle
    allocated : GPUs held, mean over virtual time, in percent of all GPUs
    unfair : GPUs that queues lacked up to their fair share, mean over virtual time, in percent of all GPUs
    evictions : action -> pods
    lost_gpu_hours : work that evicted jobs did and must repeat
    session_mean_s, session_max_s : measured duration of a cycle, not virtual time
    """

    workload: str
    strategy: str
    gpus: int
    jobs: int
    unfinished: int
    span_s: float
    allocated: float
    unfair: float
    evictions: dict[str, int]
    lost_gpu_hours: float
    cycles: int
    session_mean_s: float
    session_max_s: float
    queues: tuple[QueueResult, ...]
    samples: tuple[Sample, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the result as JSON types."""
        return asdict(self)


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return the smallest of ascending values such that at least `percent` of them are not above it."""
    return ordered[max(ceil(len(ordered) * percent / 100) - 1, 0)]

"""The outcome of a simulation as JSON: what changes, compared with a run without the edits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from kube.values.times import format_milli_time
from scheduler.core.arrays import Amounts
from scheduler.tools.simulate.what_if.run import Course, Move, Outcome, QueueState, Waiting

NO_EFFECT, SAFE, EVICTS, INVALID = "no-effect", "safe", "evicts", "invalid"
VERDICTS = (NO_EFFECT, SAFE, EVICTS, INVALID)
#: How many entries each list of an answer has at most; `totals` counts all.
MAX_ROWS = 1_000
ASSUMPTIONS = (
    "No workload arrives or ends by itself, and no node is added by an autoscaler.",
    "A pod that starts runs by the next cycle; an evicted pod is gone and pending again by then.",
    "Past usage is not taken into account.",
    "Maximum run times end no run.",
)

Json = dict[str, Any]


def answer_of(outcome: Outcome) -> Json:
    """Return the answer of `GET /api/v1/simulations/{id}`."""
    edited, unedited = outcome.edited or Course(), outcome.unedited or Course()
    evicted_unedited = {_identity(move) for move in unedited.evictions}
    evictions = [
        {**_eviction(move), "withoutEdits": _identity(move) in evicted_unedited}
        for move in edited.evictions
    ]
    started_unedited = {_identity(move) for move in unedited.starts}
    starts = [
        {**_start(move), "withoutEdits": _identity(move) in started_unedited}
        for move in edited.starts
    ]
    blocked = _blocked(unedited.waiting, edited.waiting)
    shares = _shares(unedited.last, edited.last)
    return {
        "snapshot": {
            "takenAt": format_milli_time(datetime.fromtimestamp(outcome.picture.taken_at, UTC)),
            "version": outcome.picture.version,
            **{
                name: unedited.counts.get(name, 0)
                for name in ("nodes", "queues", "workloads", "pods")
            },
        },
        "assumptions": list(ASSUMPTIONS),
        "cyclesRun": edited.cycles,
        "verdict": _verdict(outcome, evictions, starts, shares, blocked),
        "shares": shares,
        "evictions": evictions[:MAX_ROWS],
        "starts": starts[:MAX_ROWS],
        "blocked": blocked[:MAX_ROWS],
        "errors": [finding.as_dict() for finding in outcome.errors],
        "warnings": [finding.as_dict() for finding in outcome.warnings],
        "totals": {
            "evictedPods": len(evictions),
            "evictedWorkloads": len({row["workload"] for row in evictions}),
            "evictedGpu": _number(sum(row["gpu"] for row in evictions)),
            "evictedOnlyByEdits": sum(not row["withoutEdits"] for row in evictions),
            "startedPods": len(starts),
            "startedWorkloads": len({row["workload"] for row in starts}),
            "startedGpu": _number(sum(row["gpu"] for row in starts)),
            "blockedWorkloads": len(blocked),
        },
        "durationMs": round(outcome.seconds * 1000, 1),
    }


def _verdict(
    outcome: Outcome,
    evictions: Sequence[Json],
    starts: Sequence[Json],
    shares: Sequence[Json],
    blocked: Sequence[Json],
) -> str:
    if outcome.errors:
        return INVALID
    if any(not row["withoutEdits"] for row in evictions):
        return EVICTS
    assert outcome.edited is not None
    assert outcome.unedited is not None
    is_same = (
        all(row["withoutEdits"] for row in starts)
        and len(starts) == len(outcome.unedited.starts)
        and len(evictions) == len(outcome.unedited.evictions)
        and not any(row["changed"] for row in shares)
        and not any(row["before"] != row["after"] for row in blocked)
    )
    return NO_EFFECT if is_same else SAFE


def _identity(move: Move) -> tuple[int, str]:
    """Return the cycle and the pod, by which moves of the two runs are compared."""
    return (move.cycle, move.pod)


def _start(move: Move) -> Json:
    return {
        "cycle": move.cycle,
        "workload": move.workload,
        "pod": move.pod,
        "queue": move.queue,
        "node": move.node,
        "gpu": _number(move.gpu),
        "action": move.action,
    }


def _eviction(move: Move) -> Json:
    run_time_s = None if move.run_time_s is None else round(move.run_time_s)
    return {
        **_start(move),
        "evictor": move.evictor or None,
        "evictorQueue": move.evictor_queue or None,
        "rule": move.rule,
        "runTimeSeconds": run_time_s,
    }


def _blocked(before: Mapping[str, Waiting], after: Mapping[str, Waiting]) -> list[Json]:
    """Return the workloads that wait at the end; those whose reason changes come first."""
    rows = [
        {
            "workload": key,
            "queue": waiting.queue,
            "before": before[key].code if key in before else None,
            "after": waiting.code,
            "text": waiting.text,
        }
        for key, waiting in after.items()
    ]
    return sorted(rows, key=lambda row: (row["before"] == row["after"], row["workload"]))


def _shares(before: Mapping[str, QueueState], after: Mapping[str, QueueState]) -> list[Json]:
    names = [*before, *(name for name in after if name not in before)]
    return [
        {
            "queue": name,
            "before": _state(before.get(name)),
            "after": _state(after.get(name)),
            "changed": _state(before.get(name)) != _state(after.get(name)),
        }
        for name in sorted(names)
    ]


def _state(state: QueueState | None) -> Json | None:
    if state is None:
        return None
    return {"share": _amounts(state.share), "allocated": _amounts(state.allocated)}


def _amounts(amounts: Amounts) -> Json:
    cpu, memory, gpu = amounts
    return {"gpu": _number(gpu), "cpuMilli": _number(cpu), "memoryBytes": _number(memory)}


def _number(value: float) -> float | int | str:
    if not isfinite(value):
        return "unlimited"
    number = round(value, 3)
    return int(number) if number == int(number) else number

"""Run the core on a saved snapshot; report its decisions and why pod groups wait."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from scheduler.core.cycle import run_cycle
from scheduler.core.decisions import Bind, Decision, Evict
from scheduler.core.placement.chosen import PlacementLog
from scheduler.core.session.session import Session
from scheduler.explain.placements import placement_line, recorded_placements
from scheduler.explain.texts import evict_message
from scheduler.explain.verdicts import GroupVerdict, verdicts
from scheduler.load.archive import Archive
from scheduler.load.build import Snapshot, SnapshotBuilder

_SEED = UUID(int=1)
#: Enough for every workload somebody asks about; a cycle on a file is in no hurry.
_RECORDED_PLACEMENTS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """A cycle run from a file; times in milliseconds."""

    snapshot: Snapshot
    session: Session
    snapshot_ms: float
    total_ms: float

    @property
    def decisions(self) -> list[Decision]:
        return self.session.decisions


def replay(archive: Archive) -> Replay:
    """Run one cycle on a saved snapshot; nothing is written anywhere."""
    started = time.perf_counter()
    builder = SnapshotBuilder(archive.settings.params, origin=archive.now)
    snapshot = builder.build(archive.view, archive.now, past_requests=archive.past_requests)
    snapshot_ms = (time.perf_counter() - started) * 1000
    session = run_cycle(
        snapshot.cluster,
        archive.settings.core,
        clock=time.monotonic,
        gpu_group_seed=_SEED,
        after_open=_record_placements,
    )
    return Replay(
        snapshot=snapshot,
        session=session,
        snapshot_ms=snapshot_ms,
        total_ms=(time.perf_counter() - started) * 1000,
    )


def _record_placements(session: Session) -> None:
    session.attach(PlacementLog(_RECORDED_PLACEMENTS))


def timings(replayed: Replay) -> dict[str, Any]:
    """Return what KAI's snapshot tool prints."""
    return {
        "total_duration_ms": round(replayed.total_ms, 3),
        "action_durations_ms": {
            report.action.value: round(report.seconds * 1000, 3)
            for report in replayed.session.reports
        },
    }


def decision_lines(replayed: Replay) -> list[str]:
    """Return one line per decision."""
    return [_line(decision) for decision in replayed.decisions]


def explanation(replayed: Replay, workload: str = "") -> list[str]:
    """Return why pod groups wait, of one (`namespace/name`) or of all; of one also where its pods are placed, and why."""
    lines: list[str] = []
    for verdict in verdicts(replayed.session, replayed.snapshot.now):
        name = f"{verdict.namespace}/{verdict.name}"
        if verdict.is_waiting and workload in ("", name):
            lines.extend(_explain(name, verdict))
        elif workload == name:
            lines.append(f"{name}: nothing of it waits")
    if workload:
        lines += [
            f"  {placement_line(decision, reason)}"
            for decision, reason in recorded_placements(replayed.session)
            if f"{decision.pod_group_namespace}/{decision.pod_group}" == workload
        ]
    if not lines and workload:
        lines.append(f"{workload}: not in the snapshot")
    return lines


def _explain(name: str, verdict: GroupVerdict) -> list[str]:
    if verdict.not_ready:
        return [f"{name}: {verdict.not_ready}"]
    return [f"{name}: {verdict.message}"] + [
        f"  pod {pod.task.name}: {pod.message}" for pod in verdict.pods
    ]


def _line(decision: Decision) -> str:
    ref = decision.task
    pod = f"{ref.namespace}/{ref.name}"
    if isinstance(decision, Bind):
        return f"bind {pod} to {decision.node}"
    if isinstance(decision, Evict):
        return f"evict {pod} from {decision.node}: {evict_message(decision)}"
    return f"nominate {pod} to {decision.node}"

"""Rows about a finished cycle, and the live frames that follow them.

Reporting must not hold up scheduling, so one thread writes the rows. When it lags, the newest cycle is reported
and the ones in between are skipped, except a few that evicted pods: the record of evictions should have no gaps.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from django.db import DatabaseError, close_old_connections, transaction

from queues import live
from queues.workloads.reasons import Standing
from scheduler.load.bind_memory import BindMemory
from scheduler.loop.cycle import CycleSummary
from scheduler.loop.workload_decisions import EVICT, WorkloadDecision, decisions_of
from scheduler.models import (
    EvictionRecord,
    GroupStanding,
    QueueShare,
    RestingNode,
    SessionRecord,
    Shard,
)

log = logging.getLogger(__name__)

IDLE_EVERY_S = 10.0
UNLIMITED = -1.0
ROWS_PER_WRITE = 500
#: How many pods are named for a node that rests.
MAX_NAMED_PODS = 20
#: How many decisions a session lists. A burst of thousands of small jobs would make a row of megabytes.
LISTED_DECISIONS = 300
#: How many cycles that evicted pods wait at most; each holds a snapshot in memory.
MAX_WAITING = 8


def report_cycle(shard: str, summary: CycleSummary) -> SessionRecord:
    """Write the cycle's row and the shares that changed, and announce both.

    Raises
    ------
    django.db.DatabaseError : nothing was written
    """
    with transaction.atomic():
        row, _ = Shard.objects.select_for_update().get_or_create(
            name=shard, defaults={"partition_value": ""}
        )
        row.last_number += 1
        row.save(update_fields=["last_number"])
        decisions = decisions_of(summary)
        cycle = _cycle_row(shard, row.last_number, summary, decisions)
        cycle.save(force_insert=True)
        _write_evictions(cycle, decisions)
        changed = _write_shares(shard, row.last_number, summary)
        live.record("session", [str(cycle.pk)])
        live.record("queue", changed)
        live.record("standing", _write_standings(shard, summary.standings))
        live.record("node", _write_resting(shard, summary.snapshot.binds))
    return cycle


def is_idle(summary: CycleSummary) -> bool:
    """Return whether a cycle had nothing to do and did nothing."""
    commit = summary.commit
    return not (summary.pending_before or commit.bound or commit.evicted or commit.failures)


def _cycle_row(
    shard: str, number: int, summary: CycleSummary, decisions: Sequence[WorkloadDecision]
) -> SessionRecord:
    cluster, commit = summary.snapshot.cluster, summary.commit
    return SessionRecord(
        shard=shard,
        number=number,
        started_at=summary.started_at,
        duration_ms=summary.duration_ms,
        snapshot_ms=summary.snapshot_ms,
        commit_ms=summary.commit_ms,
        nodes=len(cluster.nodes),
        queues=len(cluster.queues),
        pod_groups=len(cluster.pod_groups),
        pods=sum(len(group.tasks) for group in cluster.pod_groups),
        pending_before=summary.pending_before,
        bound=len(commit.bound),
        evicted=len(commit.evicted),
        nominated=len(commit.nominated),
        unschedulable=summary.unschedulable,
        actions=[
            {
                "name": report.action.value,
                "ms": round(report.seconds * 1000, 3),
                "attempted": report.attempted,
                "succeeded": report.succeeded,
            }
            for report in summary.session.reports
        ],
        # Evictions first, because they are what people look for when a list had to be cut.
        decisions=[
            decision.as_json()
            for decision in sorted(decisions, key=lambda entry: entry.kind != EVICT)[
                :LISTED_DECISIONS
            ]
        ],
        decided=len(decisions),
        error="; ".join(f"{what}: {error}" for what, error in commit.failures[:5]),
    )


def _write_evictions(cycle: SessionRecord, decisions: Sequence[WorkloadDecision]) -> None:
    EvictionRecord.objects.bulk_create(
        [
            EvictionRecord(
                session=cycle.pk,
                at=cycle.started_at,
                shard=cycle.shard,
                rule=decision.action,
                workload=decision.workload,
                queue=decision.queue,
                evictor=decision.evictor,
                evictor_queue=decision.evictor_queue,
                pods=decision.pods,
                gpu=decision.gpu,
                text=decision.text,
            )
            for decision in decisions
            if decision.kind == EVICT and decision.pods
        ],
        batch_size=ROWS_PER_WRITE,
    )


def _write_shares(shard: str, number: int, summary: CycleSummary) -> list[str]:
    """Write the shares that changed; return the queues' names."""
    session = summary.session
    known = {
        row["queue"]: (row["cpu"], row["memory"], row["gpu"])
        for row in QueueShare.objects.filter(shard=shard).values("queue", "cpu", "memory", "gpu")
    }
    rows = []
    for index, name in enumerate(session.state.queues.names):
        share = tuple(_finite(value) for value in session.policy.ledger.fair_shares[index])
        if known.get(name) != share:
            cpu, memory, gpu = share
            rows.append(
                QueueShare(shard=shard, queue=name, cycle=number, cpu=cpu, memory=memory, gpu=gpu)
            )
    gone = set(known) - set(session.state.queues.names)
    if gone:
        QueueShare.objects.filter(shard=shard, queue__in=gone).delete()
    QueueShare.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["shard", "queue"],
        update_fields=["cycle", "cpu", "memory", "gpu"],
    )
    return [row.queue for row in rows]


def _write_standings(shard: str, standings: Mapping[str, Standing]) -> set[str]:
    """Write the standings that changed, delete old ones; return the pod groups."""
    rows = GroupStanding.objects.filter(shard=shard)
    known = {
        key: Standing(code=code, text=text, position=position)
        for key, code, text, position in rows.values_list("key", "code", "text", "position")
    }
    gone = sorted(known.keys() - standings.keys())
    fresh = {key: standing for key, standing in standings.items() if known.get(key) != standing}
    for first in range(0, len(gone), ROWS_PER_WRITE):
        rows.filter(key__in=gone[first : first + ROWS_PER_WRITE]).delete()
    GroupStanding.objects.bulk_create(
        [
            GroupStanding(
                key=key,
                shard=shard,
                code=standing.code,
                text=standing.text,
                position=standing.position,
            )
            for key, standing in fresh.items()
        ],
        update_conflicts=True,
        unique_fields=["key"],
        update_fields=["shard", "code", "text", "position"],
        batch_size=ROWS_PER_WRITE,
    )
    return fresh.keys() | gone


def _write_resting(shard: str, binds: BindMemory) -> set[str]:
    """Write the nodes that rest if they changed; return those that did."""
    rows = {
        name: RestingNode(
            name=name,
            shard=shard,
            until=datetime.fromtimestamp(round(until), UTC),
            pods=binds.pods_blaming(name)[:MAX_NAMED_PODS],
        )
        for name, until in binds.resting.items()
    }
    known = {row.name: row for row in RestingNode.objects.filter(shard=shard)}
    changed = {
        name
        for name, row in rows.items()
        if name not in known or (row.until, row.pods) != (known[name].until, known[name].pods)
    }
    gone = known.keys() - rows.keys()
    if gone:
        RestingNode.objects.filter(shard=shard, name__in=gone).delete()
    RestingNode.objects.bulk_create(
        [rows[name] for name in sorted(changed)],
        update_conflicts=True,
        unique_fields=["name"],
        update_fields=["shard", "until", "pods"],
    )
    return changed | gone


def _finite(value: float) -> float:
    return UNLIMITED if value == float("inf") else float(value)


@dataclass(slots=True)
class Reporter:
    """Reports cycles from a thread of its own.

    Parameters
    ----------
    write : writes one summary; `report_cycle` outside of tests
    """

    shard: str
    write: Callable[[str, CycleSummary], object] = report_cycle
    _next: CycleSummary | None = None
    #: Cycles before `_next` that evicted pods.
    _evicting: list[CycleSummary] = field(default_factory=list)
    _last_idle: float = -IDLE_EVERY_S
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _is_stopped: bool = False
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name=f"report-{self.shard}", daemon=True)
        self._thread.start()

    def stop(self, timeout_s: float = 5.0) -> None:
        """Write what is left and end the thread."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(timeout=timeout_s)

    def offer(self, summary: CycleSummary) -> None:
        """Queue a cycle for reporting; never waits. At most one idle cycle in ten seconds is reported."""
        moment = summary.started_at.timestamp()
        with self._changed:
            if is_idle(summary):
                # The clock may have been set back.
                if self._next is not None or abs(moment - self._last_idle) < IDLE_EVERY_S:
                    return
                self._last_idle = moment
            skipped = self._next
            if skipped is not None and skipped.commit.evicted and len(self._evicting) < MAX_WAITING:
                self._evicting.append(skipped)
            self._next = summary
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._next is not None or self._is_stopped)
                newest, self._next = self._next, None
                if newest is None:
                    return
                summaries = [*self._evicting, newest]
                self._evicting.clear()
            for summary in summaries:
                self._write(summary)

    def _write(self, summary: CycleSummary) -> None:
        try:
            close_old_connections()
            self.write(self.shard, summary)
        except DatabaseError as error:
            log.warning("shard %s: could not write the record of a cycle: %s", self.shard, error)
        finally:
            close_old_connections()

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
from functools import partial
from typing import Any

from django.db import DatabaseError, close_old_connections, models, transaction

from queues import live
from queues.workloads.reasons import Standing
from scheduler.load.bind_memory import BindMemory
from scheduler.loop.cycle import CycleSummary
from scheduler.loop.placements import Placement, write_placements
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
#: How many placements of skipped cycles wait at most.
MAX_WAITING_PLACEMENTS = 2_000


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
        write_placements(shard, summary.placements)
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
        error="; ".join(f"{operation}: {error}" for operation, error in commit.failures[:5]),
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
    fair_shares = session.policy.ledger.fair_shares
    shares = {
        name: tuple(_finite(value) for value in fair_shares[index])
        for index, name in enumerate(session.state.queues.names)
    }
    changed, _ = _write_changed(
        QueueShare.objects.filter(shard=shard),
        "queue",
        ("cpu", "memory", "gpu"),
        shares,
        same={"shard": shard, "cycle": number},
        unique=("shard", "queue"),
    )
    return changed


def _write_standings(shard: str, standings: Mapping[str, Standing]) -> list[str]:
    """Write the standings that changed, delete old ones; return the pod groups."""
    changed_keys, deleted_keys = _write_changed(
        GroupStanding.objects.filter(shard=shard),
        "key",
        ("code", "text", "position"),
        {
            key: (standing.code, standing.text, standing.position)
            for key, standing in standings.items()
        },
        same={"shard": shard},
    )
    return changed_keys + deleted_keys


def _write_resting(shard: str, binds: BindMemory) -> list[str]:
    """Write the nodes that rest if they changed; return those that did."""
    changed_keys, deleted_keys = _write_changed(
        RestingNode.objects.filter(shard=shard),
        "name",
        ("until", "pods"),
        {
            name: (
                datetime.fromtimestamp(round(until), UTC),
                binds.pods_blaming(name)[:MAX_NAMED_PODS],
            )
            for name, until in binds.resting.items()
        },
        same={"shard": shard},
    )
    return changed_keys + deleted_keys


def _write_changed(
    stored: models.QuerySet[Any],
    key: str,
    columns: tuple[str, ...],
    rows: Mapping[str, tuple[object, ...]],
    *,
    same: Mapping[str, object],
    unique: tuple[str, ...] = (),
) -> tuple[list[str], list[str]]:
    """Write the rows that differ from those stored, delete those that are gone; return the keys of both.

    Parameters
    ----------
    rows : values of the columns, by the value of `key`
    same : values of columns that are the same in all rows; a row that differs in nothing else is not written
    unique : the columns that identify a row; `key` alone if not stated
    """
    unique = unique or (key,)
    stored_values = {name: tuple(values) for name, *values in stored.values_list(key, *columns)}
    changed = [name for name, values in rows.items() if stored_values.get(name) != values]
    deleted_keys = sorted(stored_values.keys() - rows.keys())
    for first in range(0, len(deleted_keys), ROWS_PER_WRITE):
        stored.filter(**{f"{key}__in": deleted_keys[first : first + ROWS_PER_WRITE]}).delete()
    stored.model.objects.bulk_create(
        [
            stored.model(**{key: name}, **dict(zip(columns, rows[name], strict=True)), **same)
            for name in changed
        ],
        update_conflicts=True,
        unique_fields=unique,
        update_fields=[column for column in (*same, *columns) if column not in unique],
        batch_size=ROWS_PER_WRITE,
    )
    return changed, deleted_keys


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
    #: Placements of the other skipped cycles.
    _placements: list[Placement] = field(default_factory=list)
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
            if skipped is not None:
                self._skip(skipped)
            self._next = summary
            self._changed.notify()

    def _skip(self, summary: CycleSummary) -> None:
        """Keep of a cycle that is not reported in time what should have no gaps."""
        if summary.commit.evicted and len(self._evicting) < MAX_WAITING:
            self._evicting.append(summary)
        elif len(self._placements) < MAX_WAITING_PLACEMENTS:
            self._placements += summary.placements

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._next is not None or self._is_stopped)
                newest, self._next = self._next, None
                if newest is None:
                    return
                summaries = [*self._evicting, newest]
                self._evicting.clear()
                placements, self._placements = self._placements, []
            # The oldest first: a pod whose bind failed may have been placed again since.
            if placements:
                self._write(partial(write_placements, self.shard, placements))
            for summary in summaries:
                self._write(partial(self.write, self.shard, summary))

    def _write(self, write: Callable[[], object]) -> None:
        try:
            close_old_connections()
            write()
        except DatabaseError as error:
            log.warning("shard %s: could not write the record of a cycle: %s", self.shard, error)
        finally:
            close_old_connections()

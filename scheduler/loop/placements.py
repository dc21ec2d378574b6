"""The record of why pods were placed where they are; it is written beside the record of the cycle."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from scheduler.core.decisions import TaskRef
from scheduler.core.session.session import Session
from scheduler.explain.placements import placement_item, recorded_placements
from scheduler.models import PlacementRecord

ROWS_PER_WRITE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Why one cycle placed one pod; `workload` and `pod` are namespace/name."""

    pod: str
    workload: str
    node: str
    at: datetime
    reason: dict[str, Any]


def placements_of(session: Session, bound: Collection[TaskRef], at: datetime) -> list[Placement]:
    """Return the recorded placements of a cycle whose binds were written."""
    written = {ref.uid for ref in bound}
    return [
        Placement(
            pod=f"{decision.task.namespace}/{decision.task.name}",
            workload=f"{decision.pod_group_namespace}/{decision.pod_group}",
            node=decision.node,
            at=at,
            reason=placement_item(reason),
        )
        for decision, reason in recorded_placements(session)
        if decision.task.uid in written
    ]


def write_placements(shard: str, placements: Collection[Placement]) -> None:
    """Write placements; of several of one pod, and over one that is stored, the last holds."""
    newest = {placement.pod: placement for placement in placements}
    PlacementRecord.objects.bulk_create(
        [
            PlacementRecord(
                pod=placement.pod,
                workload=placement.workload,
                shard=shard,
                node=placement.node,
                at=placement.at,
                reason=placement.reason,
            )
            for placement in newest.values()
        ],
        update_conflicts=True,
        unique_fields=("pod",),
        update_fields=("workload", "shard", "node", "at", "reason"),
        batch_size=ROWS_PER_WRITE,
    )

"""What a shard's worker keeps of the cluster from cycle to cycle, and the check of it (ADR 32).

Every ten minutes, in a cycle that follows a quiet one, snapshot and state are also made anew and compared. What differs
is a defect: it is logged, counted in a metric and repaired, by going on with what was made anew. A busy scheduler is
checked after an hour, because the check takes as long as the first cycle did.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from kube.store import StoreView
from scheduler.core.cluster.build import build_state
from scheduler.core.cluster.compare import differences
from scheduler.core.cluster.inputs import ClusterInput, PlainRequest
from scheduler.core.cluster.kept import KeptState
from scheduler.load.build import Snapshot, SnapshotBuilder
from scheduler.load.disruptions import RefusedEviction
from scheduler.load.podgroups import FreshMarks
from scheduler.load.queues import UsageByQueue
from scheduler.metrics import METRICS
from scheduler.settings.params import ShardParams

log = logging.getLogger(__name__)

CHECK_EVERY_S = 600.0
CHECK_LATEST_S = 3600.0


@dataclass(slots=True)
class KeptCluster:
    """The snapshot builder and the state of one shard.

    Attributes
    ----------
    origin : Unix time that times count from
    state : given to each cycle of the core
    was_quiet : whether the last cycle had nothing to do
    """

    params: ShardParams
    origin: float
    full_hierarchy: bool = True
    state: KeptState = field(default_factory=KeptState)
    was_quiet: bool = False
    _builder: SnapshotBuilder = field(init=False)
    _checked_at: float = field(init=False)

    def __post_init__(self) -> None:
        """Begin with nothing kept; the first check is due after a while."""
        self._builder = self._new_builder()
        self._checked_at = self.origin

    def snapshot(
        self,
        view: StoreView,
        now: float,
        *,
        usage: UsageByQueue | None,
        marks: Mapping[str, FreshMarks],
        refused_evictions: Mapping[str, RefusedEviction],
        past_requests: Mapping[PlainRequest, float],
    ) -> Snapshot:
        """Return the snapshot of a cycle; the arguments are those of `SnapshotBuilder.build`."""

        def build(builder: SnapshotBuilder) -> Snapshot:
            return builder.build(
                view,
                now,
                usage=usage,
                marks=marks,
                refused_evictions=refused_evictions,
                past_requests=past_requests,
            )

        snapshot = build(self._builder)
        if not self._is_check_due(now):
            return snapshot
        self._checked_at = now
        builder = self._new_builder()
        rebuilt = build(builder)
        different = different_parts(snapshot.cluster, rebuilt.cluster)
        if different:
            _report("snapshot", different)
            self._builder, self.state = builder, KeptState()
            return rebuilt
        self._check_state(snapshot.cluster)
        return snapshot

    def _new_builder(self) -> SnapshotBuilder:
        return SnapshotBuilder(self.params, origin=self.origin)

    def _is_check_due(self, now: float) -> bool:
        age_s = abs(now - self._checked_at)  # the clock may have been set back
        return age_s >= (CHECK_EVERY_S if self.was_quiet else CHECK_LATEST_S)

    def _check_state(self, cluster: ClusterInput) -> None:
        state = self.state.open(cluster, full_hierarchy=self.full_hierarchy)
        different = differences(state, build_state(cluster, full_hierarchy=self.full_hierarchy))
        if different:
            _report("state", different)
            self.state = KeptState()


def different_parts(cluster: ClusterInput, rebuilt: ClusterInput) -> list[str]:
    """Return the names of the parts of two inputs that differ."""
    names = [part.name for part in fields(ClusterInput)]
    return [name for name in names if getattr(cluster, name) != getattr(rebuilt, name)]


def _report(part: str, different: list[str]) -> None:
    METRICS.repairs.labels(part).inc()
    log.error(
        "the kept %s differed from one made anew and was replaced; please report this defect: %s",
        part,
        ", ".join(different),
    )

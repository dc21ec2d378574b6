"""What a cycle did with one workload: what a reduced snapshot must still show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scheduler.core.decisions import Bind, Evict, Nominate
from scheduler.explain.standings import standings
from scheduler.explain.verdicts import verdicts
from scheduler.load.archive import archive_of
from scheduler.tools.replay import Replay, replay


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What happened to a workload in one cycle.

    Attributes
    ----------
    bound, nominated, evicted : how many of its pods
    victims : how many pods were evicted for it
    code : why it waits; empty if it does not
    """

    bound: int
    nominated: int
    evicted: int
    victims: int
    code: str

    def as_text(self) -> str:
        """Return one line."""
        parts = [
            f"{count} {word}"
            for count, word in (
                (self.bound, "bound"),
                (self.nominated, "promised a place"),
                (self.evicted, "evicted"),
                (self.victims, "evicted for it"),
            )
            if count
        ]
        if self.code:
            parts.append(f"waits: {self.code}")
        return ", ".join(parts) or "nothing happened to it"


def outcome_in(body: Mapping[str, Any], workload: str) -> Outcome | None:
    """Return what a replay of the file does with `namespace/name`; None if it is not in it."""
    return outcome_of(replay(archive_of(body)), workload)


def outcome_of(replayed: Replay, workload: str) -> Outcome | None:
    """Return what the cycle did with `namespace/name`; None if it knows no such pod group."""
    session = replayed.session
    groups = session.state.pod_groups.inputs
    if all(f"{group.namespace}/{group.name}" != workload for group in groups):
        return None
    group_decisions = [
        decision
        for decision in session.decisions
        if f"{decision.pod_group_namespace}/{decision.pod_group}" == workload
    ]
    victims = [
        decision
        for decision in session.decisions
        if isinstance(decision, Evict)
        and f"{decision.reason.evictor_namespace}/{decision.reason.evictor}" == workload
    ]
    standing = standings(session, verdicts(session, replayed.snapshot.now)).get(workload)
    return Outcome(
        bound=sum(isinstance(decision, Bind) for decision in group_decisions),
        nominated=sum(isinstance(decision, Nominate) for decision in group_decisions),
        evicted=sum(isinstance(decision, Evict) for decision in group_decisions),
        victims=len(victims),
        code=standing.code if standing is not None else "",
    )

"""Why a topology constraint cannot be met, in words: which domain lacks what, and how much."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.core.cluster.amount_text import human_amount, plain_amount
from scheduler.core.cluster.axis import (
    CPU_ROW,
    GPU_ROW,
    MEMORY_ROW,
    MIG_PREFIX,
)
from scheduler.core.cluster.inputs import DEFAULT_SUBGROUP, TopologyConstraint
from scheduler.core.cluster.podgroups import TreeMember
from scheduler.core.session.fit import GroupFit, GroupReason, TopologyRefusal
from scheduler.core.session.gang import GangView
from scheduler.core.session.session import Session

#: Row, resource, the amount requested and the amount free.
Shortage = tuple[int, str, float, float]

_WORDS = {CPU_ROW: "CPU cores", MEMORY_ROW: "memory", GPU_ROW: "GPUs"}


def by_interest(rows: Iterable[int]) -> list[int]:
    """Return resource rows in the order of messages: GPUs first."""
    return sorted(rows, key=lambda row: (row != GPU_ROW, row))


class Refusals:
    """Records the refusals of one topology constraint, in the words of KAI."""

    def __init__(
        self, session: Session, view: GangView, member: TreeMember, constraint: TopologyConstraint
    ) -> None:
        self._fit = session.fit
        self._pod_group = view.pod_group
        inputs = session.state.pod_groups.inputs[view.pod_group]
        self._owner = f"{inputs.namespace}/{inputs.name}"
        named = member.name not in ("", DEFAULT_SUBGROUP)
        self._subgroup = member.name if named else ""
        self._constraint = constraint

    def add(self, text: str) -> None:
        self._record(GroupReason.POD_SCHEDULING_ERRORS, TopologyRefusal(texts=(text,)))

    def unsatisfied(self, because: str) -> None:
        level = self._constraint.required_level or self._constraint.preferred_level
        subgroup = f", subgroup {self._subgroup}" if self._subgroup else ""
        self.add(
            f"topology {self._constraint.topology}, requirement {level} couldn't be satisfied for job "
            f"<{self._owner}>{subgroup}{because}"
        )

    def too_small(self, domain: str, possible: int, required: int) -> None:
        text = f"node-group {domain} can allocate only {possible} of {required} required pods"
        self._domain(domain, (text,))

    def lacking(self, domain: str, shortages: list[Shortage]) -> None:
        texts, details = [], []
        for row, name, requested, free in shortages:
            word = _WORDS.get(row, name)
            is_mig = name.startswith(MIG_PREFIX)
            resource_text = f"of mig profile: {name}" if is_mig else f"resources: {word}"
            texts.append(f"node-group(s) didn't have enough {resource_text}")
            noun = "resources" if row in (CPU_ROW, MEMORY_ROW) else "resource"
            details.append(
                f"{domain} didn't have enough {noun}: {word}, "
                f"requested: {_amount(row, name, requested)}, available: {_amount(row, name, free)}"
            )
        self._domain(domain, tuple(texts), tuple(details))

    def _domain(self, domain: str, texts: tuple[str, ...], details: tuple[str, ...] = ()) -> None:
        refusal = TopologyRefusal(
            texts=texts, details=details, domain=domain, subgroup=self._subgroup
        )
        self._record(GroupReason.NOT_ENOUGH_RESOURCES, refusal)

    def _record(self, reason: GroupReason, refusal: TopologyRefusal) -> None:
        self._fit.add_pod_group(self._pod_group, GroupFit(reason, refusal))


def _amount(row: int, resource: str, amount: float) -> str:
    if row == GPU_ROW:
        return f"{amount:.3g}"
    return human_amount(amount, row) if row in _WORDS else plain_amount(resource, amount)

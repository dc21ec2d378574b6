"""Why a topology wish cannot be met, in words: which domain lacks what, and how much."""

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

#: Row, resource, what is asked of it and what is free.
Shortage = tuple[int, str, float, float]

_WORDS = {CPU_ROW: "CPU cores", MEMORY_ROW: "memory", GPU_ROW: "GPUs"}


def by_interest(rows: Iterable[int]) -> list[int]:
    """Return resource rows as messages tell them: GPUs first."""
    return sorted(rows, key=lambda row: (row != GPU_ROW, row))


class Refusals:
    """Words the refusals of one wish, in KAI's sentences, and notes them."""

    def __init__(
        self, session: Session, view: GangView, member: TreeMember, wish: TopologyConstraint
    ) -> None:
        self._fit = session.fit
        self._group = view.pod_group
        given = session.state.pod_groups.inputs[view.pod_group]
        self._owner = f"{given.namespace}/{given.name}"
        named = member.name not in ("", DEFAULT_SUBGROUP)
        self._subgroup = member.name if named else ""
        self._wish = wish

    def add(self, text: str) -> None:
        self._note(GroupReason.POD_SCHEDULING_ERRORS, TopologyRefusal(texts=(text,)))

    def unsatisfied(self, because: str) -> None:
        level = self._wish.required_level or self._wish.preferred_level
        subgroup = f", subgroup {self._subgroup}" if self._subgroup else ""
        self.add(
            f"topology {self._wish.topology}, requirement {level} couldn't be satisfied for job "
            f"<{self._owner}>{subgroup}{because}"
        )

    def too_small(self, domain: str, possible: int, wanted: int) -> None:
        text = f"node-group {domain} can allocate only {possible} of {wanted} required pods"
        self._domain(domain, (text,))

    def lacking(self, domain: str, shortages: list[Shortage]) -> None:
        texts, details = [], []
        for row, name, asked, free in shortages:
            word = _WORDS.get(row, name)
            is_mig = name.startswith(MIG_PREFIX)
            what = f"of mig profile: {name}" if is_mig else f"resources: {word}"
            texts.append(f"node-group(s) didn't have enough {what}")
            noun = "resources" if row in (CPU_ROW, MEMORY_ROW) else "resource"
            details.append(
                f"{domain} didn't have enough {noun}: {word}, "
                f"requested: {_amount(row, name, asked)}, available: {_amount(row, name, free)}"
            )
        self._domain(domain, tuple(texts), tuple(details))

    def _domain(self, domain: str, texts: tuple[str, ...], details: tuple[str, ...] = ()) -> None:
        refusal = TopologyRefusal(
            texts=texts, details=details, domain=domain, subgroup=self._subgroup
        )
        self._note(GroupReason.NOT_ENOUGH_RESOURCES, refusal)

    def _note(self, reason: GroupReason, refusal: TopologyRefusal) -> None:
        self._fit.add_pod_group(self._group, GroupFit(reason, refusal))


def _amount(row: int, resource: str, amount: float) -> str:
    if row == GPU_ROW:
        return f"{amount:.3g}"
    return human_amount(amount, row) if row in _WORDS else plain_amount(resource, amount)

"""Which pods of a pod group are its minimum: those that a semi-preemptible workload keeps. Pure.

The scheduler decides the same on its own arrays (`scheduler/core/session/minimums.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kube.keys import SUB_GROUP
from kube.objects.pod import Pod
from kube.objects.podgroup import PodGroup, SubGroup


def minimum_pods(group: PodGroup, pods: Iterable[Pod]) -> list[Pod]:
    """Return those of the pods that belong to the minimum of their group, the oldest first."""
    ordered = sorted(pods, key=lambda pod: (pod.metadata.created, pod.metadata.name))
    spec = group.spec
    if not spec.sub_groups:
        return ordered[: 1 if spec.min_member is None else spec.min_member]
    children: dict[str, list[SubGroup]] = {}
    for sub_group in spec.sub_groups:
        children.setdefault(sub_group.parent.lower(), []).append(sub_group)
    of_leaf: dict[str, list[Pod]] = {}
    for pod in ordered:
        of_leaf.setdefault(pod.metadata.labels.get(SUB_GROUP, ""), []).append(pod)
    return _Tree(children, of_leaf).minimum("", spec.min_sub_group)


class _Tree:
    """The subgroups of one pod group, by parent, and the pods of each leaf."""

    def __init__(self, children: dict[str, list[SubGroup]], of_leaf: dict[str, list[Pod]]) -> None:
        self._children, self._of_leaf = children, of_leaf

    def minimum(self, name: str, required: int | None) -> list[Pod]:
        """Return the pods of the required members of a subgroup; the most complete members come first."""
        members = sorted(self._children.get(name, ()), key=self._key)
        needed: Sequence[SubGroup] = members if required is None else members[:required]
        return [pod for member in needed for pod in self._pods(member)]

    def _pods(self, member: SubGroup) -> list[Pod]:
        if member.name in self._children:
            return self.minimum(member.name, member.min_sub_group)
        return self._of_leaf.get(member.name, [])[: member.min_member or 0]

    def _key(self, member: SubGroup) -> tuple[bool, float, str]:
        """Return the sort key: satisfied members first, then those least above their minimum, as the scheduler keeps them."""
        count, threshold = self._count(member), self._threshold(member)
        return (count < threshold, count / threshold if threshold else count + 1e9, member.name)

    def _count(self, member: SubGroup) -> int:
        inner = self._children.get(member.name)
        if inner is None:
            return len(self._of_leaf.get(member.name, ()))
        return sum(self._count(child) >= self._threshold(child) for child in inner)

    def _threshold(self, member: SubGroup) -> int:
        inner = self._children.get(member.name)
        if inner is None:
            return member.min_member or 0
        return len(inner) if member.min_sub_group is None else member.min_sub_group

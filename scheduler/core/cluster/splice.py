"""Cut pod groups out of the columns of a state and put new ones in, renumbering everything behind.

Columns are lists in the order of pod groups. What stays is copied in long pieces, so the cost in Python depends on
how many places are cut; only what holds indices of tasks or pod sets is renumbered entry by entry.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from scheduler.core.arrays import NO_AMOUNTS
from scheduler.core.cluster.inputs import OtherPod, PodGroupInput
from scheduler.core.cluster.podgroups import COUNTERS, PodGroups
from scheduler.core.cluster.state import ClusterState
from scheduler.core.cluster.tasks import NOWHERE


@dataclass(frozen=True, slots=True)
class Piece:
    """Entries that stay, `start` up to `stop`, and how many new ones follow them."""

    start: int
    stop: int
    added: int


def group_pieces(count: int, removed: Sequence[int], places: Sequence[int]) -> list[Piece]:
    """Return the pieces of `count` pod groups.

    Parameters
    ----------
    removed : indices that are cut out
    places : for each new pod group the index that it is put before, sorted
    """
    removed_set, pieces, start = set(removed), [], 0
    for stop in sorted({*removed, *places, count}):
        pieces.append(Piece(start, stop, bisect_left(places, stop + 1) - bisect_left(places, stop)))
        start = stop + 1 if stop in removed_set else stop
    return pieces


def other_pieces(
    old: Sequence[OtherPod], new: Sequence[OtherPod]
) -> tuple[list[Piece], list[OtherPod]]:
    """Return the pieces of the pods outside of pod groups, and the new ones among them."""
    if old is new:
        return [Piece(0, len(old), 0)], []
    index_of = {id(pod): index for index, pod in enumerate(old)}
    pieces: list[Piece] = []
    fresh: list[OtherPod] = []
    start = stop = added = 0
    for pod in new:
        index = index_of.get(id(pod))
        if index is None:
            fresh.append(pod)
            added += 1
        elif index == stop and not added:
            stop += 1
        else:
            pieces.append(Piece(start, stop, added))
            start, stop, added = index, index + 1, 0
    pieces.append(Piece(start, stop, added))
    return pieces, fresh


def join(column: Any, pieces: Sequence[Piece], new: Sequence[Any]) -> Any:
    """Return a column made of the pieces, with the new entries put in where the pieces say."""
    joined, first = column[:0], 0
    for piece in pieces:
        joined += column[piece.start : piece.stop]
        joined += new[first : first + piece.added]
        first += piece.added
    return joined


@dataclass(slots=True)
class Splice:
    """New pod groups and other pods, and where they go.

    Attributes
    ----------
    groups : the new pod groups, oldest first
    others : the new pods outside of pod groups, in their order
    """

    state: ClusterState
    groups: Sequence[PodGroupInput]
    group_pieces: Sequence[Piece]
    others: Sequence[OtherPod]
    other_pieces: Sequence[Piece]

    def run(self) -> tuple[list[int], list[int]]:
        """Renumber the state; return the indices of the new pod groups, and of the new tasks.

        The new tasks have their class and status, but they are on no node and counted nowhere yet, and which of
        several pod sets they are in is left open.
        """
        groups = self.state.pod_groups
        fresh = PodGroups()
        fresh.fill(self.groups, self.state.queues.index_of)
        fresh.task_count[:] = [len(group.tasks) for group in self.groups]
        first_other = sum(groups.task_count)
        sets = self._stretched(groups.first_pod_set, len(groups.pod_sets.name), fresh.pod_set_count)
        members = self._stretched(groups.first_task, first_other, fresh.task_count)
        outside = [
            Piece(p.start + first_other, p.stop + first_other, p.added) for p in self.other_pieces
        ]
        within = self._place_in_group(fresh, [*members, *outside])
        self._join_pod_sets(fresh, sets, members)
        self._join_groups(fresh)
        self._join_tasks([*members, *outside])
        self._number_tasks(within)
        return _added(self.group_pieces), _added([*members, *outside])

    def _stretched(self, first: Sequence[int], total: int, new: Sequence[int]) -> list[Piece]:
        """Return the pieces of pod groups as pieces of a finer column, where each has several entries.

        Parameters
        ----------
        first : the first entry of each pod group
        new : how many entries each new pod group has
        """
        starts = [*first, total]
        sums = [0, *accumulate(new)]
        pieces, index = [], 0
        for piece in self.group_pieces:
            added = sums[index + piece.added] - sums[index]
            pieces.append(Piece(starts[piece.start], starts[piece.stop], added))
            index += piece.added
        return pieces

    def _place_in_group(self, fresh: PodGroups, pieces: Sequence[Piece]) -> list[int] | None:
        """Return for each task which pod set of its pod group it is in; None if every pod group has one.

        New tasks are put into the first one for now.
        """
        groups, tasks = self.state.pod_groups, self.state.tasks
        if {*groups.pod_set_count, *fresh.pod_set_count} <= {1}:
            return None
        firsts = [*groups.first_pod_set, NOWHERE]  # the last for tasks of no pod group
        old = [
            pod_set - firsts[g] for pod_set, g in zip(tasks.pod_set, tasks.pod_group, strict=True)
        ]
        new = sum(piece.added for piece in pieces)
        joined: list[int] = join(old, pieces, [0] * new)
        return joined

    def _join_pod_sets(
        self, fresh: PodGroups, pieces: Sequence[Piece], members: Sequence[Piece]
    ) -> None:
        sets, new = self.state.pod_groups.pod_sets, fresh.pod_sets
        listed: list[list[int]] = []
        first = moved_to = 0
        for groups, piece, tasks in zip(self.group_pieces, pieces, members, strict=True):
            shift = moved_to - tasks.start
            lists = sets.tasks[piece.start : piece.stop]
            if not shift:
                listed += lists
            elif self._are_single(groups):
                listed += [[task] for task in range(tasks.start + shift, tasks.stop + shift)]
            else:
                listed += [[task + shift for task in pod_set] for pod_set in lists]
            listed += new.tasks[first : first + piece.added]
            first += piece.added
            moved_to += tasks.stop - tasks.start + tasks.added
        sets.tasks = listed
        for column in ("name", "minimum", *COUNTERS):
            setattr(sets, column, join(getattr(sets, column), pieces, getattr(new, column)))

    def _are_single(self, piece: Piece) -> bool:
        """Return whether each pod group of a piece has one pod set with one task."""
        groups = self.state.pod_groups
        return all(
            column[piece.start : piece.stop].count(1) == piece.stop - piece.start
            for column in (groups.task_count, groups.pod_set_count)
        )

    def _join_groups(self, fresh: PodGroups) -> None:
        groups, pieces = self.state.pod_groups, self.group_pieces
        for column in (
            "inputs",
            "queue",
            "priority",
            "preemptible",
            "pod_set_count",
            "task_count",
            "pending",
            "active_allocated",
            "last_start",
            "last_eviction",
            "stale_since",
            "only_pod_set",
        ):
            setattr(groups, column, join(getattr(groups, column), pieces, getattr(fresh, column)))
        groups.version = [0] * len(groups.inputs)
        groups.first_task = _starts(groups.task_count)
        groups.first_pod_set = _starts(groups.pod_set_count)
        groups.only_pod_set = (
            [
                first if only >= 0 else NOWHERE
                for first, only in zip(groups.first_pod_set, groups.only_pod_set, strict=True)
            ]
            if NOWHERE in groups.only_pod_set
            else groups.first_pod_set[:]
        )
        groups.pod_sets.pod_group = _repeated(groups.pod_set_count)
        if groups.semi_preemptible or fresh.semi_preemptible:
            groups.note_semi_preemptible()

    def _join_tasks(self, pieces: Sequence[Piece]) -> None:
        tasks, class_of = self.state.tasks, self.state.classes.of
        new = [task for group in self.groups for task in group.tasks]
        new += [pod.task for pod in self.others]
        tasks.inputs = join(tasks.inputs, pieces, new)
        tasks.task_class = join(tasks.task_class, pieces, [class_of(task) for task in new])
        tasks.status = join(tasks.status, pieces, bytearray(task.status for task in new))
        tasks.node = join(tasks.node, pieces, [NOWHERE] * len(new))
        tasks.accepted = join(tasks.accepted, pieces, [NO_AMOUNTS] * len(new))
        tasks.gpu_groups = join(tasks.gpu_groups, pieces, [task.gpu_groups for task in new])
        tasks.left_node = [NOWHERE] * len(tasks.inputs)
        tasks.is_virtual = bytearray(len(tasks.inputs))

    def _number_tasks(self, within: Sequence[int] | None) -> None:
        """Write down the pod group and pod set of every task."""
        groups, tasks = self.state.pod_groups, self.state.tasks
        outside = len(tasks.inputs) - sum(groups.task_count)
        tasks.pod_group = _repeated(groups.task_count) + [NOWHERE] * outside
        if within is None:
            tasks.pod_set = tasks.pod_group[:]
            return
        firsts = [*groups.first_pod_set, NOWHERE]
        tasks.pod_set = [
            firsts[group] + place for group, place in zip(tasks.pod_group, within, strict=True)
        ]


def _added(pieces: Sequence[Piece]) -> list[int]:
    """Return the indices of the new entries in a joined column."""
    added: list[int] = []
    end = 0
    for piece in pieces:
        end += piece.stop - piece.start
        added += range(end, end + piece.added)
        end += piece.added
    return added


def _starts(counts: Sequence[int]) -> list[int]:
    """Return for each count the sum of those before it."""
    if counts.count(1) == len(counts):
        return list(range(len(counts)))
    return [0, *accumulate(counts)][:-1]


def _repeated(counts: Sequence[int]) -> list[int]:
    """Return every index as often as its count says."""
    if counts.count(1) == len(counts):
        return list(range(len(counts)))
    repeated: list[int] = np.repeat(np.arange(len(counts)), counts).tolist()
    return repeated

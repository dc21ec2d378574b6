"""Write changes of one kind to its table, a hundred rows at a time.

The lock of SQLite is not fair: a writer without pauses starves all others. So each chunk is a transaction of its
own, followed by a short pause. A row is written only if the object is newer than the row, so that duplicates are
harmless. Deleted uids are remembered for a while, so that a late event cannot restore a deleted object.

Of several workers each writes its part (ADR 42): the objects that belong to it, and the sums of its pod groups and
nodes. It deletes only rows whose content belongs to it, whatever the deleted object said last.
"""

from __future__ import annotations

import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from django.db import models, transaction

from kube.objects.meta import KubeObject
from kube.process.progress import WAIT_S, track
from kube.process.set_aside import SetAside
from kube.resources import Resource
from queues.live import Kind
from queues.mirror import bulk
from queues.mirror.handover import take_others
from queues.mirror.part import Part
from queues.mirror.rollup import ReasonSources, Touched, TreeView, groups_behind, roll_up
from queues.mirror.turns import lock_rows, turn
from queues.models import MirrorRow, Node, PodGroup

M = TypeVar("M", bound=MirrorRow)
T = TypeVar("T")

OBJECTS_PER_WRITE = 100
#: A turn locks the keys of all pods on its nodes, and the table of locks is bounded.
NODES_PER_WRITE = 20
PAUSE_S = 0.002
REMEMBERED_DELETIONS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MirroredKind:
    """How objects of a kind become rows.

    Attributes
    ----------
    to_row : object -> unsaved row
    derived : columns that roll-ups own and an upsert leaves alone
    touch : (row before or None, row after or None, touched) -> None; marks sums to compute again
    carry : (row before, row after) -> None; fills columns that depend on both
    field_selector : limits the mirrored objects
    only : limits the rows that a full list may delete
    skips_equal : an object that differs from its row in nothing but the version is not written; not for kinds
        whose versions clients send back with an edit
    divided_by : object -> the key by which objects are divided among workers; None: the first worker writes all
    row_divided_by : row -> that key, where it may change from one version to the next; else it is the primary key
    """

    resource: Resource
    as_type: type[Any]
    model: type[Any]
    to_row: Callable[[Any], Any]
    touch: Callable[[Any, Any, Touched], None]
    derived: frozenset[str] = frozenset()
    carry: Callable[[Any, Any], None] | None = None
    is_optional: bool = False
    field_selector: str = ""
    only: Mapping[str, Any] = field(default_factory=dict)
    skips_equal: bool = False
    divided_by: Callable[[Any], str] | None = None
    row_divided_by: Callable[[Any], str] | None = None

    @property
    def update_fields(self) -> tuple[str, ...]:
        """Return the columns that an event sets."""
        columns = [
            column.name for column in self.model._meta.concrete_fields if not column.primary_key
        ]
        return tuple(name for name in columns if name not in self.derived)

    def is_of(self, part: Part, value: KubeObject) -> bool:
        """Return whether an object belongs to a part."""
        return self.divided_by is None or part.has(self.divided_by(value))

    def is_row_of(self, part: Part, row: Any) -> bool:
        """Return whether the content of a row belongs to a part."""
        if self.divided_by is None:
            return part.is_first
        return part.has(self.row_divided_by(row) if self.row_divided_by else row.pk)


@dataclass(frozen=True, slots=True)
class Deletion:
    """The deletion of an object at a version."""

    key: str
    uid: str
    version: int


@dataclass(slots=True)
class Writer:
    """Writes chunks of rows and rolls up the sums they touch."""

    sources: ReasonSources = field(default_factory=ReasonSources)
    sleep: Callable[[float], None] = time.sleep
    part: Part = field(default_factory=Part)
    written: int = 0
    aside: SetAside = field(default_factory=lambda: SetAside("mirror"))
    _tree: TreeView | None = None
    #: Uids of deleted objects, oldest first; an ordered set.
    _deleted: OrderedDict[str, None] = field(default_factory=OrderedDict)

    def upsert(
        self, kind: MirroredKind, objects: Iterable[KubeObject], *, listed_at: int = 0
    ) -> None:
        """Write the objects that are newer than their rows; of several of one key, the newest is written.

        listed_at : resourceVersion of the full list. Newer rows at or below it are stale (the server was
            restored from a backup) and are overwritten.
        """
        newest: dict[str, Any] = {}
        for value in objects:
            if value.metadata.uid in self._deleted or not kind.is_of(self.part, value):
                continue
            row = self.aside.read(kind.resource.kind, value, kind.to_row)
            if row is None:
                continue
            newer_row = newest.get(row.pk)
            if newer_row is None or row.version >= newer_row.version:
                newest[row.pk] = row
        for chunk in _chunks(newest.values(), OBJECTS_PER_WRITE):
            track().beat(f"writing rows of {kind.resource.plural}", WAIT_S)
            with self._turn(kind, [row.pk for row in chunk]):
                count = self._upsert_chunk(kind, chunk, listed_at)
            self._rest_after(count)

    def delete(self, kind: MirroredKind, deletions: Iterable[Deletion]) -> None:
        """Delete the rows of these objects, unless the row is of a newer object with the same name."""
        for chunk in _chunks(deletions, OBJECTS_PER_WRITE):
            for deletion in chunk:
                self.remember_deletion(deletion.uid)
            self._drop(kind, {deletion.key for deletion in chunk}, _deleted_by(chunk))

    def reconcile(self, kind: MirroredKind, objects: Sequence[Any], version: int) -> None:
        """Make the table equal to a full list read at `version`, as after every gap in a watch."""
        for value in objects:
            self._deleted.pop(
                value.metadata.uid, None
            )  # restored from a backup: the server lost the deletion
        self.upsert(kind, objects, listed_at=version)
        present = {value.key for value in objects}
        rows = kind.model.objects.filter(**kind.only, version__lte=version)
        table = rows.values_list("pk", flat=True)
        vanished = [key for key in table.iterator() if key not in present]
        for chunk in _chunks(vanished, OBJECTS_PER_WRITE):
            self._drop(kind, chunk, lambda row: row.version <= version)

    def refresh_groups(self, groups: Iterable[str]) -> None:
        """Compute these pod groups again after a change of their `ReasonSources`."""
        self.refresh(Touched(groups=set(groups)))

    def refresh(self, touched: Touched) -> None:
        """Compute the sums of the part that depend on what others changed."""
        groups = touched.groups | groups_behind(touched, self._tree_with(touched.moved_queues))
        own_groups = sorted(filter(self.part.has, groups))
        for chunk in _chunks(own_groups, OBJECTS_PER_WRITE):
            self._refresh_chunk("pod groups", Touched(groups=set(chunk)))
        own_nodes = sorted(filter(self.part.has, touched.nodes))
        for chunk in _chunks(own_nodes, NODES_PER_WRITE):
            self._refresh_chunk("nodes", Touched(nodes=set(chunk)))

    def refresh_all(self) -> None:
        """Compute all sums of the part."""
        groups = PodGroup.objects.filter(is_lone_pod=False).order_by()
        self.refresh(
            Touched(
                groups=set(groups.values_list("pk", flat=True)),
                nodes=set(Node.objects.order_by().values_list("pk", flat=True)),
            )
        )

    def _refresh_chunk(self, what: str, touched: Touched) -> None:
        track().beat(f"summing up {what}", WAIT_S)
        with turn(self.part), self._atomic():
            self._roll_up(touched)
        self.sleep(PAUSE_S)

    @contextmanager
    def _turn(self, kind: MirroredKind, keys: Collection[str]) -> Iterator[None]:
        """Keep other workers from these rows, from the look at their versions to the commit."""
        with turn(self.part):
            if kind.row_divided_by is not None:
                lock_rows(self.part, keys)
            yield

    def _atomic(self) -> transaction.Atomic:
        """Return the transaction of a chunk, which is that of the turn if there are several workers."""
        return transaction.atomic(savepoint=self.part.is_alone)

    def _upsert_chunk(self, kind: MirroredKind, rows: list[Any], listed_at: int) -> int:
        """Write the rows that are new; return how many."""
        before = kind.model.objects.in_bulk([row.pk for row in rows])
        fresh = [row for row in rows if _is_newer(row, before.get(row.pk), listed_at)]
        if kind.skips_equal:
            columns = [name for name in kind.update_fields if name != "version"]
            fresh = [row for row in fresh if _differs(columns, before.get(row.pk), row)]
        if not fresh:
            return 0
        touched = Touched()
        for row in fresh:
            old = before.get(row.pk)
            if old is not None:
                if old.uid != row.uid:
                    self.remember_deletion(old.uid)
                _copy_derived(kind, old, row)
                if kind.carry:
                    kind.carry(old, row)
            kind.touch(old, row, touched)
        with self._atomic():
            bulk.upsert(kind.model, fresh, update=kind.update_fields)
            self._roll_up_chunk(touched)
        return len(fresh)

    def _drop(
        self, kind: MirroredKind, keys: Collection[str], is_gone: Callable[[Any], bool]
    ) -> None:
        """Delete the rows of these keys of which `is_gone(row)` holds."""
        track().beat(f"dropping rows of {kind.resource.plural}", WAIT_S)
        with self._turn(kind, keys):
            rows = [
                row
                for row in kind.model.objects.in_bulk(list(keys)).values()
                if kind.is_row_of(self.part, row) and is_gone(row)
            ]
            if rows:
                self._drop_rows(kind, rows)
        self._rest_after(len(rows))

    def _drop_rows(self, kind: MirroredKind, rows: list[Any]) -> None:
        touched = Touched()
        for row in rows:
            self.remember_deletion(row.uid)
            kind.touch(row, None, touched)
        with self._atomic():
            kind.model.objects.filter(pk__in=[row.pk for row in rows]).delete()
            self._roll_up_chunk(touched)

    def _rest_after(self, count: int) -> None:
        """Let other writers of the database in after `count` rows were written."""
        if count:
            self.written += count
            self.sleep(PAUSE_S)

    def _roll_up_chunk(self, touched: Touched) -> None:
        """Compute the sums of the part that a chunk touched, and hand over the others."""
        moved_queues = set(touched.moved_queues)
        others = take_others(touched, self.part)
        self._roll_up(touched, moved_queues, others)

    def _roll_up(
        self,
        touched: Touched,
        moved_queues: Collection[str] = (),
        others: Mapping[Kind, Iterable[str]] | None = None,
    ) -> None:
        """Compute the touched sums, with a cached queue tree, which is read anew after a failed transaction."""
        tree, self._tree = self._tree_with(moved_queues), None
        lock_pods = partial(lock_rows, self.part)
        roll_up(touched, tree, self.sources, others=others, lock_pods=lock_pods)
        self._tree = tree

    def _tree_with(self, moved_queues: Collection[str]) -> TreeView:
        """Return the queue tree.

        The worker that writes queues knows which were created, deleted or moved, and others read it in the live
        log; only the rows of these are read again.
        """
        if self._tree is None:
            self._tree = TreeView.load()
        elif moved_queues:
            self._tree.read_again(moved_queues)
        return self._tree

    def remember_deletion(self, uid: str) -> None:
        """Remember the uid of a deleted object; uids are never reused."""
        self._deleted[uid] = None
        while len(self._deleted) > REMEMBERED_DELETIONS:
            self._deleted.popitem(last=False)


def _is_newer(row: Any, old: Any | None, listed_at: int) -> bool:
    return old is None or row.version > old.version or row.version < old.version <= listed_at


def _differs(columns: Sequence[str], old: Any | None, new: Any) -> bool:
    """Return whether a row is new, or differs in one of these columns."""
    return old is None or any(getattr(old, name) != getattr(new, name) for name in columns)


def _deleted_by(deletions: Iterable[Deletion]) -> Callable[[Any], bool]:
    """Return whether a row is covered by one of these: the same object, or an older one of the same name."""
    by_key: defaultdict[str, list[Deletion]] = defaultdict(list)
    for deletion in deletions:
        by_key[deletion.key].append(deletion)

    def is_deleted(row: Any) -> bool:
        return any(row.uid == last.uid or row.version <= last.version for last in by_key[row.pk])

    return is_deleted


def _copy_derived(kind: MirroredKind, old: models.Model, new: models.Model) -> None:
    for name in kind.derived:
        setattr(new, name, getattr(old, name))


def _chunks(items: Iterable[T], size: int) -> Iterable[list[T]]:
    source = iter(items)
    while chunk := list(islice(source, size)):
        yield chunk

"""Write changes of one kind to its table, a hundred rows at a time.

The lock of SQLite is not fair: a writer without pauses starves all others. So each chunk is a transaction of its
own, followed by a short pause. A row is written only if the object is newer than the row, so that duplicates are
harmless. Deleted uids are remembered for a while, so that a late event cannot restore a deleted object.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

from django.db import models, transaction

from kube.objects.meta import KubeObject
from kube.process.progress import WAIT_S, track
from kube.process.set_aside import SetAside
from kube.resources import Resource
from queues.mirror import bulk
from queues.mirror.rollup import ReasonSources, Touched, TreeView, roll_up
from queues.models import MirrorRow

M = TypeVar("M", bound=MirrorRow)
T = TypeVar("T")

OBJECTS_PER_WRITE = 100
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

    @property
    def update_fields(self) -> tuple[str, ...]:
        """Return the columns that an event sets."""
        columns = [
            column.name for column in self.model._meta.concrete_fields if not column.primary_key
        ]
        return tuple(name for name in columns if name not in self.derived)


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
            if value.metadata.uid in self._deleted:
                continue
            row = self.aside.read(kind.resource.kind, value, kind.to_row)
            if row is None:
                continue
            newer_row = newest.get(row.pk)
            if newer_row is None or row.version >= newer_row.version:
                newest[row.pk] = row
        for chunk in _chunks(newest.values(), OBJECTS_PER_WRITE):
            self._upsert_chunk(kind, chunk, listed_at)

    def delete(self, kind: MirroredKind, deletions: Iterable[Deletion]) -> None:
        """Delete the rows of these objects, unless the row is of a newer object with the same name."""
        for chunk in _chunks(deletions, OBJECTS_PER_WRITE):
            for deletion in chunk:
                self.remember_deletion(deletion.uid)
            rows = kind.model.objects.in_bulk([deletion.key for deletion in chunk])
            deleted = [
                rows[deletion.key]
                for deletion in chunk
                if _is_deleted_by(rows.get(deletion.key), deletion)
            ]
            self._drop(kind, deleted)

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
            self._drop(kind, list(kind.model.objects.in_bulk(chunk).values()))

    def refresh_groups(self, groups: Iterable[str]) -> None:
        """Compute these pod groups again after a change of their `ReasonSources`."""
        for chunk in _chunks(groups, OBJECTS_PER_WRITE):
            track().beat("summing up pod groups", WAIT_S)
            with transaction.atomic():
                self._roll_up(Touched(groups=set(chunk)))
            self.sleep(PAUSE_S)

    def _upsert_chunk(self, kind: MirroredKind, rows: list[Any], listed_at: int) -> None:
        track().beat(f"writing rows of {kind.resource.plural}", WAIT_S)
        before = kind.model.objects.in_bulk([row.pk for row in rows])
        fresh = [row for row in rows if _is_newer(row, before.get(row.pk), listed_at)]
        if kind.skips_equal:
            columns = [name for name in kind.update_fields if name != "version"]
            fresh = [row for row in fresh if _differs(columns, before.get(row.pk), row)]
        if not fresh:
            return
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
        with transaction.atomic():
            bulk.upsert(kind.model, fresh, update=kind.update_fields)
            self._roll_up(touched)
        self.written += len(fresh)
        self.sleep(PAUSE_S)

    def _drop(self, kind: MirroredKind, rows: list[Any]) -> None:
        if not rows:
            return
        track().beat(f"dropping rows of {kind.resource.plural}", WAIT_S)
        touched = Touched()
        for row in rows:
            self.remember_deletion(row.uid)
            kind.touch(row, None, touched)
        with transaction.atomic():
            kind.model.objects.filter(pk__in=[row.pk for row in rows]).delete()
            self._roll_up(touched)
        self.written += len(rows)
        self.sleep(PAUSE_S)

    def _roll_up(self, touched: Touched) -> None:
        """Compute the touched sums, with a cached queue tree.

        Only this writer writes queues, so the cache is valid until a transaction fails; of queues that were
        created, deleted or moved, only their own rows are read again.
        """
        tree, self._tree = self._tree, None
        if tree is None:
            tree = TreeView.load()
        elif touched.moved_queues:
            tree.read_again(touched.moved_queues)
        roll_up(touched, tree, self.sources)
        self._tree = tree

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


def _is_deleted_by(row: Any | None, deletion: Deletion) -> bool:
    """Return whether a deletion covers this row: the same object, or an older one of the same name."""
    return row is not None and (row.uid == deletion.uid or row.version <= deletion.version)


def _copy_derived(kind: MirroredKind, old: models.Model, new: models.Model) -> None:
    for name in kind.derived:
        setattr(new, name, getattr(old, name))


def _chunks(items: Iterable[T], size: int) -> Iterable[list[T]]:
    source = iter(items)
    while chunk := list(islice(source, size)):
        yield chunk

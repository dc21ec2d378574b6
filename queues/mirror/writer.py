"""Apply changes of one kind to its table: only what is newer, a hundred rows at a time.

SQLite has no fair lock: a writer that goes on without a break starves all others. So each chunk is a
transaction of its own with a short pause after it. A row is written only if the object is newer than the
row, which makes duplicates free; a deleted uid is remembered for a while, so a late event cannot bring a
dead object back.
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
from kube.progress import WAIT_S, track
from kube.resources import Resource
from kube.set_aside import SetAside
from queues.mirror import bulk
from queues.mirror.rollup import Touched, TreeView, Witnesses, roll_up
from queues.models import MirrorRow

M = TypeVar("M", bound=MirrorRow)
T = TypeVar("T")

CHUNK = 100
PAUSE_S = 0.002
REMEMBERED_DEATHS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MirroredKind:
    """How one kind becomes rows.

    Attributes
    ----------
    to_row : object -> unsaved row
    derived : columns that roll-ups own and an upsert leaves alone
    touch : (row before or None, row after or None, touched) -> None; notes what must be summed up again
    carry : (row before, row after) -> None; fills columns that depend on both
    field_selector : which objects are mirrored at all
    only : which rows of the table are of this kind; a full list says nothing about others
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

    @property
    def update_fields(self) -> tuple[str, ...]:
        """The columns that an object's event sets."""
        columns = [one.name for one in self.model._meta.concrete_fields if not one.primary_key]
        return tuple(name for name in columns if name not in self.derived)


@dataclass(frozen=True, slots=True)
class Deletion:
    """An object is gone, as of this version."""

    key: str
    uid: str
    version: int


@dataclass(slots=True)
class Writer:
    """Writes chunks; `sleep` and `witnesses` come from outside."""

    witnesses: Witnesses = field(default_factory=Witnesses)
    sleep: Callable[[float], None] = time.sleep
    written: int = 0
    aside: SetAside = field(default_factory=lambda: SetAside("mirror"))
    _tree: TreeView | None = None
    _dead: OrderedDict[str, None] = field(default_factory=OrderedDict)

    def upsert(
        self, kind: MirroredKind, objects: Iterable[KubeObject], *, listed_at: int = 0
    ) -> None:
        """Write the objects that are newer than their rows; the newest living one of a key counts.

        listed_at : the objects are all there was at this version: rows up to it that know better come
            from a server that lost its last moments, and give way
        """
        newest: dict[str, Any] = {}
        for item in objects:
            if item.metadata.uid in self._dead:
                continue
            row = self.aside.read(kind.resource.kind, item, kind.to_row)
            if row is None:
                continue
            known = newest.get(row.pk)
            if known is None or row.version >= known.version:
                newest[row.pk] = row
        for chunk in _chunks(newest.values(), CHUNK):
            self._upsert_chunk(kind, chunk, listed_at)

    def delete(self, kind: MirroredKind, deletions: Iterable[Deletion]) -> None:
        """Drop the rows of these objects, unless a newer namesake took their place."""
        for chunk in _chunks(deletions, CHUNK):
            for one in chunk:
                self.bury(one.uid)
            rows = kind.model.objects.in_bulk([one.key for one in chunk])
            gone = [rows[one.key] for one in chunk if _is_gone(rows.get(one.key), one)]
            self._drop(kind, gone)

    def reconcile(self, kind: MirroredKind, objects: Sequence[Any], version: int) -> None:
        """Make the table equal to a full list read at `version`: the way back after any gap."""
        for item in objects:
            self._dead.pop(item.metadata.uid, None)  # a deletion that the server lost
        self.upsert(kind, objects, listed_at=version)
        present = {item.key for item in objects}
        rows = kind.model.objects.filter(**kind.only, version__lte=version)
        table = rows.values_list("pk", flat=True)
        vanished = [key for key in table.iterator() if key not in present]
        for chunk in _chunks(vanished, CHUNK):
            self._drop(kind, list(kind.model.objects.in_bulk(chunk).values()))

    def judge_again(self, groups: Iterable[str]) -> None:
        """Sum up these pod groups anew: somebody else has said something about them."""
        for chunk in _chunks(groups, CHUNK):
            track().beat("summing up pod groups", WAIT_S)
            with transaction.atomic():
                self._roll_up(Touched(groups=set(chunk)))
            self.sleep(PAUSE_S)

    def _upsert_chunk(self, kind: MirroredKind, rows: list[Any], listed_at: int) -> None:
        track().beat(f"writing rows of {kind.resource.plural}", WAIT_S)
        before = kind.model.objects.in_bulk([row.pk for row in rows])
        fresh = [row for row in rows if _is_news(row, before.get(row.pk), listed_at)]
        if not fresh:
            return
        touched = Touched()
        for row in fresh:
            old = before.get(row.pk)
            if old is not None:
                if old.uid != row.uid:
                    self.bury(old.uid)
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
            self.bury(row.uid)
            kind.touch(row, None, touched)
        with transaction.atomic():
            kind.model.objects.filter(pk__in=[row.pk for row in rows]).delete()
            self._roll_up(touched)
        self.written += len(rows)
        self.sleep(PAUSE_S)

    def _roll_up(self, touched: Touched) -> None:
        """Sum up what was touched, with the queue tree kept in mind while nobody moves in it.

        Only this writer writes queues, so the tree cannot change behind its back; a failed transaction
        may have, so after one it is read anew.
        """
        tree = None if touched.moved_queues else self._tree
        self._tree = None
        if tree is None:
            tree = TreeView.load()
        roll_up(touched, tree, self.witnesses)
        self._tree = tree

    def bury(self, uid: str) -> None:
        """Remember that this object is dead; a uid never lives twice."""
        self._dead[uid] = None
        while len(self._dead) > REMEMBERED_DEATHS:
            self._dead.popitem(last=False)


def _is_news(row: Any, old: Any | None, listed_at: int) -> bool:
    return old is None or row.version > old.version or row.version < old.version <= listed_at


def _is_gone(row: Any | None, deletion: Deletion) -> bool:
    """Tell whether the deletion is about this row: the same object, or an older namesake of it."""
    return row is not None and (row.uid == deletion.uid or row.version <= deletion.version)


def _copy_derived(kind: MirroredKind, old: models.Model, new: models.Model) -> None:
    for name in kind.derived:
        setattr(new, name, getattr(old, name))


def _chunks(items: Iterable[T], size: int) -> Iterable[list[T]]:
    source = iter(items)
    while chunk := list(islice(source, size)):
        yield chunk

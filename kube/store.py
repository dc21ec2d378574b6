"""A worker's copy of the cluster, fed by watches and read at one moment as a whole.

A `KindStore` holds the objects of one kind; a `Store` holds one per kind under one lock, so that a
snapshot sees all kinds at one moment. Views are copies of dictionaries, not of objects (those are
frozen), taken only where something changed since the last view.

Read your own writes: an object that a worker has just created or changed is `assume`d at once, because the
watch needs some milliseconds to deliver it and the next cycle must not decide the same thing twice.
The resourceVersion decides between the two: an older object never replaces a newer one, and an assumed
object older than the last watch event is dropped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, TypeVar, cast

from kube.gateway import EventType, Listing, WatchEvent
from kube.objects.meta import KubeObject
from kube.process.progress import track
from kube.resources import Resource
from kube.values.numbers import int_or_none

O = TypeVar("O", bound=KubeObject)  # noqa: E741 - the object kind of a store
IndexKeys = Callable[[Any], Iterable[str]]
Listener = Callable[[Resource, EventType, Any], None]
_EMPTY: Mapping[str, Any] = MappingProxyType({})
#: The place that signs of life name while indexes and listeners process an object.
PLACE = "store"


#: So many views of a kind can pass before a reader of its history must compare all objects.
MAX_STEPS = 16


@dataclass(frozen=True, slots=True)
class KindHistory:
    """Which objects of a kind changed between its latest views.

    Attributes
    ----------
    source : the store of the kind; numbers of views of different stores have nothing in common
    number : of the view
    steps : the keys that changed between one view and the next; the last step led to this view
    """

    source: object = None
    number: int = 0
    steps: tuple[frozenset[str], ...] = ()

    def since(self, earlier: KindHistory) -> set[str] | None:
        """Return the keys that changed after an earlier view; None if that is no longer known."""
        behind = self.number - earlier.number
        if self.source is None or earlier.source is not self.source or behind > len(self.steps):
            return None
        return set().union(*self.steps[len(self.steps) - behind :]) if behind > 0 else set()


@dataclass(slots=True)
class KindStore(Generic[O]):
    """All objects of one kind, by `namespace/name`, with indexes kept as they change.

    Not safe by itself: the owning `Store` calls it under its lock.
    """

    resource: Resource
    objects: dict[str, O] = field(default_factory=dict)
    synced: bool = False
    is_served: bool = True
    seen_version: int = 0
    _indexes: dict[str, _Index] = field(default_factory=dict)
    #: A copy of `objects`, until the next change.
    _view: Mapping[str, O] | None = None
    #: Keys that changed since the last view.
    _changed: set[str] = field(default_factory=set)
    _source: object = field(default_factory=object)
    _history: KindHistory = field(default_factory=KindHistory)

    def add_index(self, name: str, keys: IndexKeys) -> None:
        """Maintain a lookup from `keys(object)` to the objects, for example pods by node."""
        index = _Index(keys)
        for key, value in self.objects.items():
            index.add(key, value)
        self._indexes[name] = index

    def by_index(self, name: str, key: str) -> list[O]:
        """Return the objects that an index holds under `key`, in order of their own keys."""
        return [self.objects[item] for item in sorted(self._indexes[name].members.get(key, ()))]

    def view(self) -> Mapping[str, O]:
        """Return all objects as they are now; later changes do not affect the result."""
        if self._view is None:
            self._view = MappingProxyType(dict(self.objects))
            last = self._history
            steps = (*last.steps[1 - MAX_STEPS :], frozenset(self._changed))
            self._history = KindHistory(self._source, last.number + 1, steps)
            self._changed.clear()
        return self._view

    @property
    def history(self) -> KindHistory:
        """Return what changed before the last view."""
        return self._history

    def put(self, value: O, version: int) -> bool:
        """Store an object unless a newer one is stored; return whether it was stored."""
        key = value.key
        stored = self.objects.get(key)
        if stored is value:
            return True
        if stored is not None and version_number(stored.metadata.resource_version) > version:
            return False
        self._forget(key)
        self.objects[key] = value
        for index in self._indexes.values():
            index.add(key, value)
        self._note(key)
        return True

    def remove(self, value: O, version: int) -> bool:
        """Remove an object unless a newer one has its name; return whether it was removed."""
        stored = self.objects.get(value.key)
        if stored is None:
            return False
        is_namesake = stored.metadata.uid != value.metadata.uid
        if is_namesake and version_number(stored.metadata.resource_version) > version:
            return False
        self._forget(value.key)
        del self.objects[value.key]
        self._note(value.key)
        return True

    def forget_all(self) -> list[O]:
        """Remove all objects and forget the versions seen; return the removed objects."""
        dropped = list(self.objects.values())
        for value in dropped:
            self._forget(value.key)
            self._note(value.key)
        self.objects.clear()
        self.seen_version = 0
        return dropped

    def _note(self, key: str) -> None:
        self._changed.add(key)
        self._view = None

    def _forget(self, key: str) -> None:
        stored = self.objects.get(key)
        if stored is not None:
            for index in self._indexes.values():
                index.discard(key, stored)


@dataclass(slots=True)
class _Index:
    """A lookup: `keys` returns the entries of an object, `members` holds the keys of the objects of each entry."""

    keys: IndexKeys
    members: dict[str, set[str]] = field(default_factory=dict)

    def add(self, key: str, value: Any) -> None:
        for entry in self.keys(value):
            self.members.setdefault(entry, set()).add(key)

    def discard(self, key: str, value: Any) -> None:
        for entry in self.keys(value):
            object_keys = self.members.get(entry)
            if object_keys is not None:
                object_keys.discard(key)
                if not object_keys:
                    del self.members[entry]


_NO_HISTORY = KindHistory()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreView:
    """All kinds at one moment; `generation` grows with every change.

    `absent` holds the watched kinds that the cluster does not serve, `histories` what changed between views.
    """

    generation: int
    kinds: Mapping[Resource, Mapping[str, Any]]
    absent: frozenset[Resource] = frozenset()
    histories: Mapping[Resource, KindHistory] = field(default_factory=dict)

    def of(self, resource: Resource, as_type: type[O]) -> Mapping[str, O]:
        """Return the objects of one kind by key; empty when the kind is not watched."""
        del as_type  # names the type for the checker; the watch decoded into it
        return cast("Mapping[str, O]", self.kinds.get(resource, _EMPTY))

    def history(self, resource: Resource) -> KindHistory:
        """Return what changed before this view; for kinds of a saved view nothing is known."""
        return self.histories.get(resource, _NO_HISTORY)


class Store:
    """Kind stores under one lock, a counter of changes, and listeners called after each change."""

    def __init__(self, resources: Sequence[Resource] = ()) -> None:
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._kinds: dict[Resource, KindStore[Any]] = {}
        self._listeners: list[Listener] = []
        self._generation = 0
        for resource in resources:
            self.kind(resource)

    @property
    def generation(self) -> int:
        """Return the number of changes so far."""
        return self._generation

    def kind(self, resource: Resource) -> KindStore[Any]:
        """Return the store of one kind, made on first use."""
        with self._lock:
            if resource not in self._kinds:
                self._kinds[resource] = KindStore(resource)
            return self._kinds[resource]

    def add_index(self, resource: Resource, name: str, keys: IndexKeys) -> None:
        """Keep the objects of a kind findable by the keys that `keys` returns for each."""
        with self._lock:
            self.kind(resource).add_index(name, keys)

    def subscribe(self, listener: Listener) -> None:
        """Call `listener(resource, event type, object)` after each change, outside of the lock."""
        self._listeners.append(listener)

    def get(self, resource: Resource, key: str) -> Any | None:
        """Return one object by `namespace/name` (or name), or None."""
        with self._lock:
            return self.kind(resource).objects.get(key)

    def by_index(self, resource: Resource, name: str, key: str) -> list[Any]:
        """Return the objects that an index holds under a key."""
        with self._lock:
            return self.kind(resource).by_index(name, key)

    def is_synced(self) -> bool:
        """Return whether every kind has been listed at least once."""
        with self._lock:
            return all(kind.synced for kind in self._kinds.values())

    def is_served(self, resource: Resource) -> bool:
        """Return whether the cluster serves a kind, as far as its last list showed."""
        with self._lock:
            return self.kind(resource).is_served

    def view(self) -> StoreView:
        """Return all kinds at one moment."""
        with self._lock:
            kinds = {resource: kind.view() for resource, kind in self._kinds.items()}
            histories = {resource: kind.history for resource, kind in self._kinds.items()}
            absent = frozenset(item for item, kind in self._kinds.items() if not kind.is_served)
            return StoreView(
                generation=self._generation, kinds=kinds, absent=absent, histories=histories
            )

    def wait_until_synced(self, timeout_s: float) -> bool:
        """Wait until every kind has been listed once; return whether that came about in time."""
        with self._changed:
            return self._changed.wait_for(self.is_synced, timeout=timeout_s)

    def replace(self, resource: Resource, listing: Listing[Any]) -> None:
        """Replace a kind by a full list; objects that were assumed after the list was made stay.

        A list older than a version already seen means that the server was restored to an earlier state; then
        everything newer is removed. A list without a version stands for a kind that the cluster does not
        serve. Listeners are called for every object of the list, changed or not: they may have to repeat a
        write that the server answered and then lost.
        """
        listed_at = version_number(listing.resource_version)
        changes: list[tuple[EventType, Any]] = []
        with self._changed:
            kind = self.kind(resource)
            if listed_at < kind.seen_version:
                changes += [(EventType.DELETED, value) for value in kind.forget_all()]
            unlisted = dict(kind.objects)
            sign = track()
            for value in listing.items:
                unlisted.pop(value.key, None)
                if not sign.take(resource.kind, value, PLACE):
                    continue
                # The list wins over everything that is not newer than the whole list. If it shows an object
                # at an older version, the server lost our last write of it in a crash.
                if kind.put(value, listed_at):
                    changes.append((EventType.MODIFIED, value))
            for value in unlisted.values():
                if version_of(value) <= listed_at and kind.remove(value, listed_at):
                    changes.append((EventType.DELETED, value))
            kind.seen_version = max(kind.seen_version, listed_at)
            kind.synced = True
            kind.is_served = bool(listing.resource_version)
            self._signal(bool(changes))
        self._notify(resource, changes)

    def apply(self, resource: Resource, event: WatchEvent[Any]) -> None:
        """Apply one watch event; duplicates and stale events change nothing."""
        version = version_number(event.resource_version)
        with self._changed:
            kind = self.kind(resource)
            kind.seen_version = max(kind.seen_version, version)
            if event.type is EventType.BOOKMARK or not track().take(
                resource.kind, event.object, PLACE
            ):
                return
            if event.type is EventType.DELETED:
                is_new = kind.remove(event.object, version)
            else:
                stored = kind.objects.get(event.object.key)
                is_new = stored != event.object and kind.put(event.object, version)
            self._signal(is_new)
        if is_new:
            self._notify(resource, [(event.type, event.object)])

    def assume(self, resource: Resource, value: KubeObject) -> None:
        """Store the answer to our own write at once, unless the watch has already passed its version."""
        with self._changed:
            kind = self.kind(resource)
            if version_of(value) > kind.seen_version:
                self._signal(kind.put(value, version_of(value)))

    def amend(self, resource: Resource, value: KubeObject) -> None:
        """Store a change that we requested, under the old version, so that the next event replaces it."""
        with self._changed:
            kind = self.kind(resource)
            stored = kind.objects.get(value.key)
            if stored is not None and version_of(stored) == version_of(value):
                self._signal(kind.put(value, version_of(value)))

    def discard(self, resource: Resource, value: KubeObject) -> None:
        """Remove an object that we have just deleted."""
        with self._changed:
            self._signal(self.kind(resource).remove(value, version_of(value)))

    def _signal(self, is_changed: bool) -> None:
        if is_changed:
            self._generation += 1
        self._changed.notify_all()

    def _notify(self, resource: Resource, changes: list[tuple[EventType, Any]]) -> None:
        sign = track()
        for listener in self._listeners:
            for kind, value in changes:
                if sign.take(resource.kind, value, PLACE):
                    listener(resource, kind, value)


def version_number(resource_version: str) -> int:
    """Return a resourceVersion as a number; API servers order a kind's versions so (KEP-5504)."""
    return int_or_none(resource_version, smallest=0) or 0


def version_of(value: KubeObject) -> int:
    """Return the resourceVersion of an object as a number."""
    return version_number(value.metadata.resource_version)

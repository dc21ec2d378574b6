"""One worker's view of the cluster, fed by watches and read as a whole.

A `KindStore` holds the objects of one kind; a `Store` holds one per kind under one lock, so that a
snapshot sees all kinds at one moment. Views are copies of dictionaries, not of objects (those are
frozen), taken only where something changed since the last view.

Read your own writes: what a worker just created or changed is `assume`d at once, because the watch
needs some milliseconds to bring it back and the next cycle must not decide the same thing twice.
Versions decide between the two: an older object never replaces a newer one, and an assumption older
than what the watch has already told is dropped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, TypeVar, cast

from kube.gateway import EventType, Listing, WatchEvent
from kube.numbers import int_or_none
from kube.objects.meta import KubeObject
from kube.progress import track
from kube.resources import Resource

O = TypeVar("O", bound=KubeObject)  # noqa: E741 - the object kind of a store
IndexKeys = Callable[[Any], Iterable[str]]
Listener = Callable[[Resource, EventType, Any], None]
_EMPTY: Mapping[str, Any] = MappingProxyType({})
#: Where an object is in hand while indexes and listeners take it in.
PLACE = "store"


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
    _view: Mapping[str, O] | None = None

    def add_index(self, name: str, keys: IndexKeys) -> None:
        """Keep a lookup from `keys(object)` to the objects, e.g. pods by node."""
        index = _Index(keys)
        for key, value in self.objects.items():
            index.add(key, value)
        self._indexes[name] = index

    def by_index(self, name: str, key: str) -> list[O]:
        """Return the objects filed under `key`, in order of their own keys."""
        return [self.objects[item] for item in sorted(self._indexes[name].files.get(key, ()))]

    def view(self) -> Mapping[str, O]:
        """Return all objects as they are now; later changes do not show."""
        if self._view is None:
            self._view = MappingProxyType(dict(self.objects))
        return self._view

    def put(self, value: O, version: int) -> bool:
        """Store an object unless a newer one is here; say whether it was stored."""
        key = value.key
        known = self.objects.get(key)
        if known is not None and version_number(known.metadata.resource_version) > version:
            return False
        self._forget(key)
        self.objects[key] = value
        for index in self._indexes.values():
            index.add(key, value)
        self._view = None
        return True

    def remove(self, value: O, version: int) -> bool:
        """Drop an object, unless the one here is a newer namesake."""
        known = self.objects.get(value.key)
        if known is None:
            return False
        is_namesake = known.metadata.uid != value.metadata.uid
        if is_namesake and version_number(known.metadata.resource_version) > version:
            return False
        self._forget(value.key)
        del self.objects[value.key]
        self._view = None
        return True

    def forget_all(self) -> list[O]:
        """Drop everything, versions seen included; return what was there."""
        dropped = list(self.objects.values())
        for value in dropped:
            self._forget(value.key)
        self.objects.clear()
        self.seen_version = 0
        self._view = None
        return dropped

    def _forget(self, key: str) -> None:
        known = self.objects.get(key)
        if known is not None:
            for index in self._indexes.values():
                index.discard(key, known)


@dataclass(slots=True)
class _Index:
    keys: IndexKeys
    files: dict[str, set[str]] = field(default_factory=dict)

    def add(self, key: str, value: Any) -> None:
        for file in self.keys(value):
            self.files.setdefault(file, set()).add(key)

    def discard(self, key: str, value: Any) -> None:
        for file in self.keys(value):
            members = self.files.get(file)
            if members is not None:
                members.discard(key)
                if not members:
                    del self.files[file]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreView:
    """All kinds at one moment; `generation` grows with every change.

    `absent` are kinds that were asked for and that the cluster does not serve.
    """

    generation: int
    kinds: Mapping[Resource, Mapping[str, Any]]
    absent: frozenset[Resource] = frozenset()

    def of(self, resource: Resource, as_type: type[O]) -> Mapping[str, O]:
        """Return the objects of one kind by key; empty when the kind is not watched."""
        del as_type  # names the type for the checker; the watch decoded into it
        return cast("Mapping[str, O]", self.kinds.get(resource, _EMPTY))


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
        return self._generation

    def kind(self, resource: Resource) -> KindStore[Any]:
        """Return the store of one kind, made on first use."""
        with self._lock:
            if resource not in self._kinds:
                self._kinds[resource] = KindStore(resource)
            return self._kinds[resource]

    def add_index(self, resource: Resource, name: str, keys: IndexKeys) -> None:
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
        with self._lock:
            return self.kind(resource).by_index(name, key)

    def is_synced(self) -> bool:
        """Tell whether every kind has been listed at least once."""
        with self._lock:
            return all(kind.synced for kind in self._kinds.values())

    def view(self) -> StoreView:
        """Return all kinds at one moment."""
        with self._lock:
            kinds = {resource: kind.view() for resource, kind in self._kinds.items()}
            absent = frozenset(item for item, kind in self._kinds.items() if not kind.is_served)
            return StoreView(generation=self._generation, kinds=kinds, absent=absent)

    def wait_for_change(self, generation: int, timeout_s: float) -> int:
        """Block until something changed after `generation`, or time is up; return the generation."""
        with self._changed:
            self._changed.wait_for(lambda: self._generation > generation, timeout=timeout_s)
            return self._generation

    def wait_until_synced(self, timeout_s: float) -> bool:
        with self._changed:
            return self._changed.wait_for(self.is_synced, timeout=timeout_s)

    def replace(self, resource: Resource, listing: Listing[Any]) -> None:
        """Take over a full list: what it lacks is gone, unless assumed after the list was made.

        A list older than what was seen means that the server lost its last moments; then the list is
        the truth and everything newer is forgotten. One without a version stands for a kind that the
        cluster does not serve. Listeners hear of every object of the list, changed or not: a write of
        theirs that was answered and then lost shows in nothing but its absence.
        """
        listed_at = version_number(listing.resource_version)
        told: list[tuple[EventType, Any]] = []
        with self._changed:
            kind = self.kind(resource)
            if listed_at < kind.seen_version:
                told += [(EventType.DELETED, value) for value in kind.forget_all()]
            gone = dict(kind.objects)
            sign = track()
            for value in listing.items:
                gone.pop(value.key, None)
                if not sign.take(resource.kind, value, PLACE):
                    continue
                # Only what is newer than the whole list outlives it: an object that the list shows at an
                # older version was ours alone, acknowledged by a server that lost it in a crash.
                if kind.put(value, listed_at):
                    told.append((EventType.MODIFIED, value))
            for value in gone.values():
                if _version(value) <= listed_at and kind.remove(value, listed_at):
                    told.append((EventType.DELETED, value))
            kind.seen_version = max(kind.seen_version, listed_at)
            kind.synced = True
            kind.is_served = bool(listing.resource_version)
            self._signal(bool(told))
        self._tell(resource, told)

    def apply(self, resource: Resource, event: WatchEvent[Any]) -> None:
        """Take over one watch event; duplicates and stale ones change nothing."""
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
                known = kind.objects.get(event.object.key)
                is_new = known != event.object and kind.put(event.object, version)
            self._signal(is_new)
        if is_new:
            self._tell(resource, [(event.type, event.object)])

    def assume(self, resource: Resource, value: KubeObject) -> None:
        """Show the answer to our own write at once, unless the watch is already past it."""
        with self._changed:
            kind = self.kind(resource)
            if _version(value) > kind.seen_version:
                self._signal(kind.put(value, _version(value)))

    def amend(self, resource: Resource, value: KubeObject) -> None:
        """Show a change we asked for, under the old version: the next event overrules it."""
        with self._changed:
            kind = self.kind(resource)
            known = kind.objects.get(value.key)
            if known is not None and _version(known) == _version(value):
                self._signal(kind.put(value, _version(value)))

    def discard(self, resource: Resource, value: KubeObject) -> None:
        """Hide an object that we just deleted."""
        with self._changed:
            self._signal(self.kind(resource).remove(value, _version(value)))

    def _signal(self, is_changed: bool) -> None:
        if is_changed:
            self._generation += 1
        self._changed.notify_all()

    def _tell(self, resource: Resource, changes: list[tuple[EventType, Any]]) -> None:
        sign = track()
        for listener in self._listeners:
            for kind, value in changes:
                if sign.take(resource.kind, value, PLACE):
                    listener(resource, kind, value)


def version_number(resource_version: str) -> int:
    """Return a resourceVersion as a number; API servers order a kind's versions so (KEP-5504)."""
    return int_or_none(resource_version, smallest=0) or 0


def _version(value: KubeObject) -> int:
    return version_number(value.metadata.resource_version)

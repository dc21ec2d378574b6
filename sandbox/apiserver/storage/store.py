"""The objects, in memory, each as the bytes that clients receive.

Why bytes: an object is read, listed and watched far more often than it is written. It is serialised
once, when it is written, and the store, every list, every watcher and the journal share those bytes. No
code can change a stored object by accident, and Python's garbage collector has little to traverse. An
`Entry` holds, beside the bytes, the fields that the server reads often (labels, owners, selectable
fields).

All calls happen on the event loop's thread and none awaits, so each is atomic.
"""

from __future__ import annotations

from collections.abc import Callable

from sandbox.apiserver.model.entry import Entry, Key, Obj
from sandbox.apiserver.model.resources import ServedResource
from sandbox.apiserver.storage.watchlog import WatchLog


class Collection:
    """All objects of one storage key, and the history of their changes."""

    __slots__ = ("_sorted", "entries", "log")

    def __init__(self, oldest: int) -> None:
        self.entries: dict[Key, Entry] = {}
        self.log = WatchLog(oldest)
        self._sorted: list[Key] | None = None

    def put(self, entry: Entry) -> None:
        if entry.key not in self.entries:
            self._sorted = None
        self.entries[entry.key] = entry

    def drop(self, key: Key) -> None:
        del self.entries[key]
        self._sorted = None

    def listing(self, namespace: str) -> list[Entry]:
        """Return the entries of one namespace, or all, sorted by key."""
        if self._sorted is None:
            self._sorted = sorted(self.entries)
        entries = self.entries
        if not namespace:
            return [entries[key] for key in self._sorted]
        return [entries[key] for key in self._sorted if key[0] == namespace]


Journal = Callable[[str, Key, Entry | None], None]
Listener = Callable[[str, Entry | None, Entry | None], None]


class Store:
    """Every collection under one resourceVersion counter.

    Each change is passed to `journal(storage, key, entry)`, which saves it, and to every listener as
    (storage, before, after): garbage collection, the custom kinds, the authorizer's cache.
    """

    def __init__(self, version: int = 1) -> None:
        self.version = version
        self._start = version
        self._collections: dict[str, Collection] = {}
        self.journal: Journal | None = None
        self.listeners: list[Listener] = []

    def collection(self, storage: str) -> Collection:
        collection = self._collections.get(storage)
        if collection is None:
            collection = self._collections[storage] = Collection(self._start)
        return collection

    def get(self, storage: str, namespace: str, name: str) -> Entry | None:
        return self.collection(storage).entries.get((namespace, name))

    def collections(self) -> list[Collection]:
        """Return the collections of all kinds that were used so far."""
        return list(self._collections.values())

    def load(self, entry: Entry) -> None:
        """Add an object that was read from disk, without an event or a new version."""
        self.collection(entry.resource.storage).put(entry)
        self._notify(entry.resource.storage, None, entry)

    def create(self, resource: ServedResource, obj: Obj) -> Entry:
        return self._write(resource, obj, None)

    def update(self, before: Entry, obj: Obj) -> Entry:
        return self._write(before.resource, obj, before)

    def remove(self, before: Entry, obj: Obj | None = None) -> Entry:
        """Delete an object; watchers receive its last state with a new resourceVersion."""
        self.version += 1
        storage = before.resource.storage
        last = Entry(before.resource, obj or before.load(), self.version)
        collection = self.collection(storage)
        collection.drop(before.key)
        collection.log.append(last, before, deleted=True)
        if self.journal:
            self.journal(storage, before.key, None)
        self._notify(storage, before, None)
        return last

    def _write(self, resource: ServedResource, obj: Obj, before: Entry | None) -> Entry:
        self.version += 1
        entry = Entry(resource, obj, self.version)
        collection = self.collection(resource.storage)
        collection.put(entry)
        collection.log.append(entry, before, deleted=False)
        if self.journal:
            self.journal(resource.storage, entry.key, entry)
        self._notify(resource.storage, before, entry)
        return entry

    def _notify(self, storage: str, before: Entry | None, after: Entry | None) -> None:
        for listener in self.listeners:
            listener(storage, before, after)

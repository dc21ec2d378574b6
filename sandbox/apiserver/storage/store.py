"""The objects, in memory, each kept as the bytes that clients receive.

Why bytes: an object is read, listed and watched far more often than it is written. It is serialised
once, when written, and those bytes are shared by the store, every list, every watcher and the
journal. Nothing can change an object by accident, and the garbage collector of Python has nothing
to walk. What the server itself asks for often (labels, owners, selectable fields) sits beside the
bytes in an `Entry`.

All calls happen on the event loop's thread and none awaits, so each is atomic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sandbox.apiserver.model.entry import Entry, Key, Obj
from sandbox.apiserver.model.resources import Resource
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
        """Entries in the order of their keys, all or of one namespace."""
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

    `journal(storage, key, entry)` hears of each change for the disk, `listeners` (storage, before,
    after) inside the process: garbage collection, the registry of CRDs, the authoriser's cache.
    """

    def __init__(self, version: int = 1) -> None:
        self.version = version
        self._start = version
        self._collections: dict[str, Collection] = {}
        self.journal: Journal | None = None
        self.listeners: list[Listener] = []

    def collection(self, storage: str) -> Collection:
        found = self._collections.get(storage)
        if found is None:
            found = self._collections[storage] = Collection(self._start)
        return found

    def get(self, storage: str, namespace: str, name: str) -> Entry | None:
        return self.collection(storage).entries.get((namespace, name))

    def items(self) -> Iterable[tuple[str, Collection]]:
        return list(self._collections.items())

    def load(self, entry: Entry) -> None:
        """Put back an object that was read from disk: no event, no new version."""
        self.collection(entry.resource.storage).put(entry)
        self._tell(entry.resource.storage, None, entry)

    def create(self, resource: Resource, obj: Obj) -> Entry:
        return self._write(resource, obj, None)

    def update(self, before: Entry, obj: Obj) -> Entry:
        return self._write(before.resource, obj, before)

    def remove(self, before: Entry, obj: Obj | None = None) -> Entry:
        """Delete; watchers receive the last state under a new resourceVersion."""
        self.version += 1
        storage = before.resource.storage
        last = Entry(before.resource, obj or before.load(), self.version)
        collection = self.collection(storage)
        collection.drop(before.key)
        collection.log.append(last, before, deleted=True)
        if self.journal:
            self.journal(storage, before.key, None)
        self._tell(storage, before, None)
        return last

    def _write(self, resource: Resource, obj: Obj, before: Entry | None) -> Entry:
        self.version += 1
        entry = Entry(resource, obj, self.version)
        collection = self.collection(resource.storage)
        collection.put(entry)
        collection.log.append(entry, before, deleted=False)
        if self.journal:
            self.journal(resource.storage, entry.key, entry)
        self._tell(resource.storage, before, entry)
        return entry

    def _tell(self, storage: str, before: Entry | None, after: Entry | None) -> None:
        for listener in self.listeners:
            listener(storage, before, after)

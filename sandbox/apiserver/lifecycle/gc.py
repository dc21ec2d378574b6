"""Garbage collection of objects whose owners are gone, as in kube-controller-manager.

Background: when an owner is gone, the objects that had no other owner are deleted. Foreground: the owner
has the finalizer `foregroundDeletion` until its dependents are gone. Orphan: the owner references are
removed from the dependents first. An object that is created with an owner that does not exist is deleted,
too. One task does the work; it yields to the event loop often, so that thousands of dependents do not
delay requests.
"""

from __future__ import annotations

import asyncio
from collections import deque

from sandbox.apiserver.lifecycle.deletion import FOREGROUND, ORPHAN, Deleter
from sandbox.apiserver.model import errors
from sandbox.apiserver.model.entry import Entry, Key, Obj
from sandbox.apiserver.model.resources import Registry
from sandbox.apiserver.model.user import MASTERS, User
from sandbox.apiserver.storage.store import Store
from sandbox.apiserver.wire.request import Target

GC_USER = User("system:serviceaccount:kube-system:generic-garbage-collector", frozenset({MASTERS}))
_STEPS_PER_TURN = 20
_ABSENT_OWNER_GRACE_S = 2.0

Place = tuple[str, Key]


class GarbageCollector:
    """Records who owns whom from the changes of the store, and deletes what lost its owners."""

    def __init__(self, store: Store, registry: Registry, deleter: Deleter) -> None:
        self._store = store
        self._registry = registry
        self._deleter = deleter
        #: Uid -> where the object is stored.
        self._alive: dict[str, Place] = {}
        #: Uid of an owner -> where its dependents are stored.
        self._dependents: dict[str, set[Place]] = {}
        self._queue: deque[Place] = deque()
        self._queued: set[Place] = set()
        self._wake = asyncio.Event()
        store.listeners.append(self._on_change)

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            steps = 0
            while self._queue:
                place = self._queue.popleft()
                self._queued.discard(place)
                await self._process(place)
                steps += 1
                if steps % _STEPS_PER_TURN == 0:
                    await asyncio.sleep(0)

    def _on_change(self, storage: str, before: Entry | None, after: Entry | None) -> None:
        entry = after or before
        if entry is None:
            return
        place = (storage, entry.key)
        if before is not None:
            self._forget_owners(before, place)
        if after is None:
            self._alive.pop(entry.uid, None)
            for dependent in self._dependents.get(entry.uid, ()):
                self._enqueue(dependent)
            # The foreground deletion of an owner may be waiting for this one.
            for owner in entry.owners:
                if owner in self._alive:
                    self._enqueue(self._alive[owner])
            return
        self._alive[after.uid] = place
        for owner in after.owners:
            self._dependents.setdefault(owner, set()).add(place)
        if after.terminating:
            self._enqueue(place)
        elif before is None and any(owner not in self._alive for owner in after.owners):
            self._enqueue_later(place)

    def _forget_owners(self, entry: Entry, place: Place) -> None:
        for owner in entry.owners:
            dependents = self._dependents.get(owner)
            if dependents is not None:
                dependents.discard(place)
                if not dependents:
                    del self._dependents[owner]

    def _enqueue(self, place: Place) -> None:
        if place not in self._queued:
            self._queued.add(place)
            self._queue.append(place)
            self._wake.set()

    def _enqueue_later(self, place: Place) -> None:
        """Look at an object after a delay, because its owner may be created right after it."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # no event loop yet: saved objects are being loaded
            self._enqueue(place)
        else:
            loop.call_later(_ABSENT_OWNER_GRACE_S, self._enqueue, place)

    async def _process(self, place: Place) -> None:
        storage, key = place
        entry = self._store.get(storage, *key)
        if entry is None:
            return
        if entry.terminating:
            self._process_terminating(entry)
        elif entry.owners:
            await self._process_dependent(entry)

    async def _process_dependent(self, entry: Entry) -> None:
        present_owners = [uid for uid in entry.owners if uid in self._alive]
        foreground_owners = [uid for uid in present_owners if self._is_foreground(uid)]
        if present_owners and len(foreground_owners) < len(present_owners):
            if len(present_owners) < len(entry.owners):
                self._drop_references(entry, keep=set(present_owners))
            return
        policy = "Foreground" if foreground_owners else "Background"
        resource = self._registry.stored(entry.resource.storage) or entry.resource
        target = Target(resource=resource, namespace=entry.namespace, name=entry.name)
        options: Obj = {"propagationPolicy": policy, "preconditions": {"uid": entry.uid}}
        try:
            await self._deleter.delete(target, entry, options, GC_USER)
        except errors.ApiError as error:
            if error.code == 409:  # it changed while a webhook was called
                self._enqueue((entry.resource.storage, entry.key))
            elif error.code != 404:
                self._enqueue_later((entry.resource.storage, entry.key))

    def _is_foreground(self, uid: str) -> bool:
        storage, key = self._alive[uid]
        owner = self._store.get(storage, *key)
        return owner is not None and owner.terminating and _has_finalizer(owner, FOREGROUND)

    def _process_terminating(self, entry: Entry) -> None:
        dependents = list(self._dependents.get(entry.uid, ()))
        if _has_finalizer(entry, ORPHAN):
            for storage, key in dependents:
                dependent = self._store.get(storage, *key)
                if dependent is not None:
                    self._drop_references(dependent, keep=set(dependent.owners) - {entry.uid})
            self._finish(entry, ORPHAN)
        elif _has_finalizer(entry, FOREGROUND):
            if not any(self._blocks(place, entry.uid) for place in dependents):
                self._finish(entry, FOREGROUND)
            for place in dependents:
                self._enqueue_unless_terminating(place)

    def _enqueue_unless_terminating(self, place: Place) -> None:
        dependent = self._store.get(place[0], *place[1])
        if dependent is not None and not dependent.terminating:
            self._enqueue(place)

    def _blocks(self, place: Place, owner_uid: str) -> bool:
        dependent = self._store.get(place[0], *place[1])
        if dependent is None:
            return False
        references = dependent.load()["metadata"].get("ownerReferences") or ()
        return any(r["uid"] == owner_uid and r.get("blockOwnerDeletion") for r in references)

    def _drop_references(self, entry: Entry, keep: set[str]) -> None:
        obj = entry.load()
        meta = obj["metadata"]
        references = [r for r in meta.get("ownerReferences") or () if r["uid"] in keep]
        if references:
            meta["ownerReferences"] = references
        else:
            meta.pop("ownerReferences", None)
        self._store.update(entry, obj)

    def _finish(self, entry: Entry, finalizer: str) -> None:
        obj = entry.load()
        meta = obj["metadata"]
        meta["finalizers"] = [name for name in meta["finalizers"] if name != finalizer]
        if meta["finalizers"]:
            self._store.update(entry, obj)
            return
        del meta["finalizers"]
        if meta.get("deletionGracePeriodSeconds", 0) > 0:
            self._store.update(entry, obj)
        else:
            self._store.remove(entry, obj)


def _has_finalizer(entry: Entry, finalizer: str) -> bool:
    # Most objects have no finalizer, and this check is cheaper than parsing.
    if finalizer.encode() not in entry.raw:
        return False
    return finalizer in (entry.load()["metadata"].get("finalizers") or ())

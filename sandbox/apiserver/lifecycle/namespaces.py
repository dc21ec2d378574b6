"""The namespace controllers of kube-controller-manager: service accounts, and emptying on deletion."""

from __future__ import annotations

import asyncio

from sandbox.apiserver.lifecycle import metadata
from sandbox.apiserver.lifecycle.deletion import Deleter
from sandbox.apiserver.lifecycle.gc import GC_USER
from sandbox.apiserver.model import errors
from sandbox.apiserver.model.entry import Entry, Obj
from sandbox.apiserver.model.resources import Registry, ServedResource
from sandbox.apiserver.storage.store import Store
from sandbox.apiserver.wire.request import Target

_NAMESPACES = "namespaces"
_DELETES_PER_TURN = 20
_RETRY_S = 0.2


class NamespaceController:
    """Creates the default service account of new namespaces, and empties terminating ones."""

    def __init__(self, store: Store, registry: Registry, deleter: Deleter) -> None:
        self._store = store
        self._registry = registry
        self._deleter = deleter
        self._pending: set[str] = set()
        self._wake = asyncio.Event()
        store.listeners.append(self._on_change)

    async def run(self) -> None:
        """Work until cancelled; a namespace that is not empty yet is tried again."""
        while True:
            if self._pending:
                await asyncio.sleep(_RETRY_S)
            else:
                await self._wake.wait()
            self._wake.clear()
            for name in sorted(self._pending):
                if await self._empty(name):
                    self._pending.discard(name)

    def _on_change(self, storage: str, before: Entry | None, after: Entry | None) -> None:
        if storage != _NAMESPACES or after is None:
            return
        if after.terminating:
            self._pending.add(after.name)
            self._wake.set()
        elif self._store.get("serviceaccounts", after.name, "default") is None:
            self._create_account(after.name)

    def _create_account(self, namespace: str) -> None:
        resource = self._registry.find("", "v1", "serviceaccounts")
        if resource is None:
            return
        target = Target(resource=resource, namespace=namespace)
        obj: Obj = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        metadata.begin(target, obj)
        self._store.create(resource, obj)

    async def _empty(self, name: str) -> bool:
        """Delete the objects of a namespace; return whether the namespace itself is gone."""
        namespace = self._store.get(_NAMESPACES, "", name)
        if namespace is None:
            return True
        remaining = 0
        for resource in self._registry.persistent():
            if resource.namespaced:
                remaining += await self._empty_kind(resource, name)
        if remaining:
            return False
        namespace = self._store.get(_NAMESPACES, "", name)
        if namespace is not None:
            finalize(self._store, namespace)
        return True

    async def _empty_kind(self, resource: ServedResource, name: str) -> int:
        entries = self._store.collection(resource.storage).listing(name)
        for index, entry in enumerate(entries):
            if entry.terminating:
                continue
            target = Target(resource=resource, namespace=name, name=entry.name)
            try:
                await self._deleter.delete(target, entry, {}, GC_USER)
            except errors.ApiError:
                continue  # refused by a webhook, or changed meanwhile: the next pass tries again
            if index % _DELETES_PER_TURN == 0:
                await asyncio.sleep(0)
        return len(self._store.collection(resource.storage).listing(name))


def finalize(store: Store, namespace: Entry) -> None:
    """Remove the namespace's own finalizer, and the namespace unless it has other finalizers."""
    obj = namespace.load()
    obj["spec"] = {}
    if obj["metadata"].get("finalizers"):
        store.update(namespace, obj)
    else:
        store.remove(namespace, obj)

"""The loop that all simulated controllers share: watch some kinds, then work on keys until stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from kube.errors import KubeError
from kube.gateway import Gateway
from kube.objects.meta import KubeObject
from kube.process.workqueue import WorkQueue, start_workers
from kube.resources import Resource
from kube.store import Store
from kube.watch import Reflector

POLL_S = 0.5


def run_loop(
    name: str,
    types: Mapping[Resource, type[KubeObject]],
    *,
    gateway: Gateway,
    store: Store,
    queue: WorkQueue,
    reconcile: Callable[[str], None],
    workers: int,
    stop: threading.Event,
    on_fatal: Callable[[KubeError], None],
) -> None:
    """Keep `store` up to date and call `reconcile` for the keys of `queue` until `stop` is set.

    Parameters
    ----------
    name : of the controller, for its threads
    types : the kinds to watch, and how their objects are read; one that the server does not serve counts as empty
    on_fatal : called when the API server refuses our credentials
    """
    for resource, as_type in types.items():
        watch = Reflector(gateway, resource, as_type, store, is_optional=True)
        watch.start(stop, on_fatal=on_fatal, name=f"{name}-{resource.plural}")
    while not store.wait_until_synced(POLL_S):
        if stop.is_set():
            return
    start_workers(queue, reconcile, workers, name)
    stop.wait()
    queue.close()

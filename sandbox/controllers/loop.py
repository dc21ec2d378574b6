"""What all simulated controllers share: watch some kinds, then work on keys until stopped."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from kube.errors import KubeError
from kube.gateway import Gateway
from kube.objects.meta import KubeObject
from kube.process.workqueue import WorkQueue, start_workers
from kube.resources import Resource
from kube.store import Store
from kube.watch import Reflector

POLL_S = 0.5


@dataclass(slots=True)
class Controller(ABC):
    """Keeps `store` up to date and reconciles the keys of `queue` until `stop` is set.

    Attributes
    ----------
    NAME : for its threads
    TYPES : the kinds to watch, and how their objects are read; one that the server does not serve counts as empty
    WORKERS, MAX_PAUSE_S : threads that reconcile, and the longest pause before a failed key is tried again
    on_fatal : called when the API server refuses our credentials
    """

    NAME: ClassVar[str]
    TYPES: ClassVar[Mapping[Resource, type[KubeObject]]]
    WORKERS: ClassVar[int] = 1
    MAX_PAUSE_S: ClassVar[float] = 10.0

    gateway: Gateway
    stop: threading.Event
    on_fatal: Callable[[KubeError], None]
    store: Store = field(init=False)
    queue: WorkQueue = field(init=False)

    def __post_init__(self) -> None:
        """Create the store of the watched kinds, with its lookups, and the queue."""
        self.store = Store(list(self.TYPES))
        self.queue = WorkQueue(first_s=0.2, max_s=self.MAX_PAUSE_S)
        self.follow()

    @abstractmethod
    def follow(self) -> None:
        """Add the lookups that the controller needs to the store, and subscribe to its changes."""

    @abstractmethod
    def reconcile(self, key: str) -> None:
        """Bring what the key names up to date."""

    def run(self) -> None:
        """Run until stopped."""
        for resource, as_type in self.TYPES.items():
            watch = Reflector(self.gateway, resource, as_type, self.store, is_optional=True)
            watch.start(self.stop, on_fatal=self.on_fatal, name=f"{self.NAME}-{resource.plural}")
        while not self.store.wait_until_synced(POLL_S):
            if self.stop.is_set():
                return
        start_workers(self.queue, self.reconcile, self.WORKERS, self.NAME)
        self.stop.wait()
        self.queue.close()

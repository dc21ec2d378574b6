"""The queue tree of the webhook, kept by a watch, so that a review costs the same for any number of queues.

A watch is some milliseconds behind, which two things make up for. The ancestors of a queue that is created or moved are
read from the API server, because they decide whether the edit makes a circle. And an edit that was just allowed counts
as stored for a moment, so that sums over siblings contain it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kube.errors import KubeError, NotFoundError
from kube.gateway import EventType, Gateway, Listing, WatchEvent
from kube.resources import QUEUES, Resource
from kube.watch import Reflector
from queues.tree.hierarchy import Tree
from queues.tree.shape import QueueShape, read_queue, shapes_of

log = logging.getLogger(__name__)

#: How long an allowed edit counts as stored, unless the watch shows another version before.
ASSUMED_S = 2.0


@dataclass(slots=True)
class WatchedTree:
    """Follows the queues; until they are listed once, each reading lists them.

    Attributes
    ----------
    gateway : reads single queues
    """

    gateway: Gateway
    clock: Callable[[], float] = time.monotonic
    _shapes: dict[str, QueueShape] = field(default_factory=dict)
    _is_listed: bool = False
    #: Queue -> its shape after an allowed edit, with the version before, and until when it counts.
    _assumed: dict[str, tuple[QueueShape, float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, stop: threading.Event) -> None:
        """Follow the queues in a thread until `stop` is set."""
        reflector: Reflector[Any] = Reflector(self.gateway, QUEUES, dict, self)
        reflector.start(stop, on_fatal=self._end, name="admission-queues")

    def replace(self, resource: Resource, listing: Listing[Any]) -> None:
        """Take a full list in place of everything known."""
        shapes = shapes_of(listing.items)
        with self._lock:
            self._shapes, self._is_listed = shapes, True

    def apply(self, resource: Resource, event: WatchEvent[Any]) -> None:
        """Take one change."""
        if event.type is EventType.BOOKMARK:
            return
        shape, _ = read_queue(event.object)
        with self._lock:
            if event.type is EventType.DELETED:
                self._shapes.pop(shape.name, None)
            else:
                self._shapes[shape.name] = shape

    def __call__(self) -> Tree:
        """Return the tree as far as the watch has shown it, with the edits just allowed."""
        if not self._is_listed:
            return shapes_of(self.gateway.list(QUEUES, as_type=dict).items)
        now = self.clock()
        with self._lock:
            shapes = dict(self._shapes)
            self._assumed = {
                name: (shape, until)
                for name, (shape, until) in self._assumed.items()
                if until > now and _version(shapes.get(name)) == shape.version
            }
            return shapes | {name: shape for name, (shape, _until) in self._assumed.items()}

    def with_ancestors(self, tree: Tree, parent: str) -> Tree:
        """Return a tree in which a queue and its ancestors are as the API server has them now."""
        current = dict(tree)
        read: set[str] = set()
        while parent and parent not in read:
            read.add(parent)
            shape = self._read(parent)
            if shape is None:
                current.pop(parent, None)
                break
            current[parent] = shape
            parent = shape.parent
        return current

    def assume(self, shape: QueueShape) -> None:
        """Count an allowed edit as stored; its shape has the version before the edit, "" for a creation."""
        with self._lock:
            self._assumed[shape.name] = (shape, self.clock() + ASSUMED_S)

    def _read(self, name: str) -> QueueShape | None:
        try:
            return read_queue(self.gateway.get(QUEUES, name, as_type=dict))[0]
        except NotFoundError:
            return None

    def _end(self, error: KubeError) -> None:
        """List the queues at each review from now on, because the watch has ended for good."""
        log.warning("the webhook cannot follow the queues: %s", error)
        self._is_listed = False


def _version(stored: QueueShape | None) -> str:
    return "" if stored is None else stored.version

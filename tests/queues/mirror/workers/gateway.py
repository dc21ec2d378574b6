"""An API server that shows a history up to a version, which another process moves on in a file."""

from __future__ import annotations

import random
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from kube.errors import NotFoundError
from kube.gateway import EVERYTHING, EventType, Listing, Selectors, WatchEvent
from kube.objects.meta import convert
from kube.resources import NAMESPACES, Resource
from tests.queues.mirror.workers.history import FIRST_VERSION, Change

T = TypeVar("T")
POLL_S = 0.02
#: How often, and up to how long, a watch falls behind.
LAG_CHANCE, LAG_S = 0.02, 0.4


@dataclass(slots=True)
class HistoryGateway:
    """Lists and watches of a history; `visible` holds how many events have happened."""

    changes: Sequence[Change]
    visible: Path
    lags: random.Random = field(default_factory=random.Random)
    lag_chance: float = LAG_CHANCE

    def get(self, resource: Resource, name: str, *, as_type: type[T], namespace: str = "") -> T:
        """Return a namespace; nothing else exists by name."""
        del namespace
        if resource != NAMESPACES:
            raise NotFoundError(f"{resource.plural} {name}", status=404)
        return convert({"metadata": {"name": name, "uid": "the-cluster"}}, as_type)

    def list(
        self,
        resource: Resource,
        *,
        as_type: type[T],
        namespace: str = "",
        selectors: Selectors = EVERYTHING,
    ) -> Listing[T]:
        """Return the objects as they are now."""
        del namespace, selectors
        count = self._count()
        objects: dict[str, dict[str, Any]] = {}
        for change in self.changes[:count]:
            if change.resource == resource:
                name = change.body["metadata"]["name"]
                objects.pop(name, None)
                if change.type != EventType.DELETED:
                    objects[name] = change.body
        items = tuple(convert(body, as_type) for body in objects.values())
        return Listing(items=items, resource_version=str(FIRST_VERSION + count - 1))

    def watch(
        self,
        resource: Resource,
        *,
        as_type: type[T],
        resource_version: str,
        namespace: str = "",
        selectors: Selectors = EVERYTHING,
        timeout_s: int = 300,
    ) -> Iterator[WatchEvent[T]]:
        """Yield the events as they happen, now and then late."""
        del namespace, selectors
        versions = [change.version for change in self.changes]
        position = bisect_right(versions, int(resource_version))
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            count = self._count()
            for change in self.changes[position:count]:
                if change.resource == resource:
                    if self.lags.random() < self.lag_chance:
                        time.sleep(self.lags.random() * LAG_S)
                    item = convert(change.body, as_type)
                    yield WatchEvent(
                        type=change.type, object=item, resource_version=str(change.version)
                    )
            position = max(position, count)
            time.sleep(POLL_S)

    def _count(self) -> int:
        return int(self.visible.read_text() or 0)

"""Parents of queues in edits that the webhook allowed and the API server may not have stored yet.

The API server calls the webhook before it stores an edit. Two concurrent moves (A below B, B below A) are both valid
in the stored tree, so each is also checked against recently allowed ones. An allowed edit can only be stored while
the stored object has the resourceVersion of the review. Once that has changed, the edit is either stored or
rejected, and its entry is dropped.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from queues.tree.hierarchy import Tree

# The longest time between our response and the write; requests to an API server end after half a minute.
CACHE_S = 35.0


@dataclass(frozen=True, slots=True)
class _Place:
    queue: str
    parent: str
    version: str
    until: float


@dataclass(slots=True)
class PendingPlaces:
    """The edits that a webhook server allowed recently. Not thread-safe: the owner holds a lock."""

    clock: Callable[[], float] = time.monotonic
    _places: list[_Place] = field(default_factory=list)

    def add(self, queue: str, parent: str, version: str) -> None:
        """Remember an allowed edit; `version` is that of the stored object, empty for a creation."""
        self._places.append(_Place(queue, parent, version, self.clock() + CACHE_S))

    def circle(self, tree: Tree, queue: str, parent: str) -> list[str]:
        """Return the path from `parent` up to `queue` by stored and pending parents; empty if there is none."""
        now = self.clock()
        self._places = [p for p in self._places if p.until > now and _is_open(p, tree)]
        parents: dict[str, set[str]] = {}
        for place in self._places:
            parents.setdefault(place.queue, set()).add(place.parent)
        paths: list[list[str]] = [[parent]] if parent else []
        visited = {""}
        while paths:
            path = paths.pop()
            if path[-1] == queue:
                return path
            if path[-1] in visited:
                continue
            visited.add(path[-1])
            stored = {tree[path[-1]].parent} if path[-1] in tree else set()
            above = stored | parents.get(path[-1], set())
            paths += [[*path, name] for name in sorted(above) if name]
        return []


def _is_open(place: _Place, tree: Tree) -> bool:
    """Return whether an edit may still be stored; a queue without a version is not stored yet."""
    stored = tree.get(place.queue)
    return (stored.version if stored is not None else "") == place.version

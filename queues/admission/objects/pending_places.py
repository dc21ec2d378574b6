"""Places of queues that were let through and are not stored yet.

The API server asks us before it stores an edit. Two moves at once (A below B, B below A) are both right by the
stored tree, so each is also judged against the other one that was just let through. An admitted edit is stored
only while the stored object is the one it was made from: as soon as its resourceVersion has moved on, the edit
is either in the tree or lost, and its entry means nothing any more.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from queues.tree.hierarchy import Tree

# How long an API server may take from our answer to the store; its requests end after half a minute.
KEPT_S = 35.0


@dataclass(frozen=True, slots=True)
class _Place:
    queue: str
    parent: str
    version: str
    until: float


@dataclass(slots=True)
class PendingPlaces:
    """What one webhook server has let through lately. Its owner guards it against several threads."""

    clock: Callable[[], float] = time.monotonic
    _places: list[_Place] = field(default_factory=list)

    def note(self, queue: str, parent: str, version: str) -> None:
        """Remember a place; `version` is that of the stored object, empty for a creation."""
        self._places.append(_Place(queue, parent, version, self.clock() + KEPT_S))

    def circle(self, tree: Tree, queue: str, parent: str) -> list[str]:
        """Return the way from `parent` up to `queue` by stored and pending places; empty if there is none."""
        now = self.clock()
        self._places = [p for p in self._places if p.until > now and _is_open(p, tree)]
        parents: dict[str, set[str]] = {}
        for place in self._places:
            parents.setdefault(place.queue, set()).add(place.parent)
        waiting: list[list[str]] = [[parent]] if parent else []
        seen = {""}
        while waiting:
            path = waiting.pop()
            if path[-1] == queue:
                return path
            if path[-1] in seen:
                continue
            seen.add(path[-1])
            stored = {tree[path[-1]].parent} if path[-1] in tree else set()
            above = stored | parents.get(path[-1], set())
            waiting += [[*path, name] for name in sorted(above) if name]
        return []


def _is_open(place: _Place, tree: Tree) -> bool:
    stored = tree.get(place.queue)
    if stored is None or not place.version:
        return stored is None and not place.version
    return stored.version == place.version

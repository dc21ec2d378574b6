"""Lists in pages: `limit` and `continue`.

Entries never change, so a list of references is a consistent snapshot. The first page saves such a
snapshot, and its token holds the number of it; later pages read from the same snapshot, whatever was
written in between. Snapshots expire, and then the client gets 410 and lists again.
"""

from __future__ import annotations

import itertools
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import OrderedDict
from dataclasses import dataclass

import orjson

from sandbox.apiserver.model import errors
from sandbox.apiserver.model.entry import Entry

MAX_SNAPSHOTS = 64
LIFETIME_S = 300.0
_GONE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a "
    "new list without the continue parameter."
)


@dataclass(frozen=True, slots=True)
class Page:
    """One page, the token of the next one (empty at the end) and the number of objects after it."""

    entries: list[Entry]
    version: int
    token: str = ""
    remaining: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The entries of a list at one time; `scope` is its kind, namespace and selectors."""

    taken_at: float
    version: int
    scope: str
    entries: list[Entry]


class Snapshots:
    """The snapshots of lists that clients have not read to the end."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._snapshots: OrderedDict[int, Snapshot] = OrderedDict()

    def first(self, entries: list[Entry], version: int, scope: str, limit: int) -> Page:
        if not limit or len(entries) <= limit:
            return Page(entries, version)
        number = next(self._numbers)
        snapshot = Snapshot(time.monotonic(), version, scope, entries)
        self._snapshots[number] = snapshot
        while len(self._snapshots) > MAX_SNAPSHOTS:
            self._snapshots.popitem(last=False)
        return self._page(number, snapshot, 0, limit)

    def following(self, token: str, scope: str, limit: int) -> Page:
        """Return the page of a token; `scope` must be that of the first page."""
        try:
            number, start = orjson.loads(urlsafe_b64decode(token))
        except (ValueError, TypeError) as error:
            raise errors.bad_request(
                f"invalid continue token: continue key is not valid: {token}"
            ) from error
        snapshot = self._snapshots.get(number)
        if snapshot is None or time.monotonic() - snapshot.taken_at > LIFETIME_S:
            raise errors.expired(_GONE)
        if scope != snapshot.scope:
            raise errors.bad_request("continue key is not valid: it belongs to another list")
        return self._page(number, snapshot, start, limit or len(snapshot.entries))

    def _page(self, number: int, snapshot: Snapshot, start: int, limit: int) -> Page:
        end = start + limit
        remaining = max(0, len(snapshot.entries) - end)
        token = urlsafe_b64encode(orjson.dumps([number, end])).decode() if remaining else ""
        return Page(snapshot.entries[start:end], snapshot.version, token, remaining)

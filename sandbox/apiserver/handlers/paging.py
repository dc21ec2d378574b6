"""Lists in pages: `limit` and `continue`.

Entries never change, so a list of references is a consistent picture of a moment. The first page
keeps such a picture and hands out its number; later pages read on in it, whatever was written in
between. Pictures are dropped after a while, and then the client gets 410 and starts again.
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

KEPT_SNAPSHOTS = 64
LIFETIME_S = 300.0
_GONE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a "
    "new list without the continue parameter."
)


@dataclass(frozen=True, slots=True)
class Page:
    """One page, the token of the next (empty at the end) and how many objects come after it."""

    entries: list[Entry]
    version: int
    token: str = ""
    remaining: int = 0


class Snapshots:
    """The pictures that unfinished lists read from."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._kept: OrderedDict[int, tuple[float, int, str, list[Entry]]] = OrderedDict()

    def first(self, entries: list[Entry], version: int, scope: str, limit: int) -> Page:
        if not limit or len(entries) <= limit:
            return Page(entries, version)
        number = next(self._numbers)
        self._kept[number] = (time.monotonic(), version, scope, entries)
        while len(self._kept) > KEPT_SNAPSHOTS:
            self._kept.popitem(last=False)
        return self._page(number, entries, version, 0, limit)

    def following(self, token: str, scope: str, limit: int) -> Page:
        """Read on; `scope` (kind, namespace, selectors) must be that of the first page."""
        try:
            number, start = orjson.loads(urlsafe_b64decode(token))
        except (ValueError, TypeError) as error:
            raise errors.bad_request(
                f"invalid continue token: continue key is not valid: {token}"
            ) from error
        kept = self._kept.get(number)
        if kept is None or time.monotonic() - kept[0] > LIFETIME_S:
            raise errors.expired(_GONE)
        _, version, first_scope, entries = kept
        if scope != first_scope:
            raise errors.bad_request("continue key is not valid: it belongs to another list")
        return self._page(number, entries, version, start, limit or len(entries))

    def _page(
        self, number: int, entries: list[Entry], version: int, start: int, limit: int
    ) -> Page:
        end = start + limit
        remaining = max(0, len(entries) - end)
        token = urlsafe_b64encode(orjson.dumps([number, end])).decode() if remaining else ""
        return Page(entries[start:end], version, token, remaining)

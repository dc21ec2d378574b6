"""Set aside objects that cannot be read, so that one bad object does not stop the reading of the others.

A reader passes each object through `SetAside.read`. An object that cannot be read is left out and logged
once for each of its versions instead of once per cycle. The same holds for an object on which an earlier run
of this process hung: `kube.process.progress` records which object is being read.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from kube.errors import UNREADABLE
from kube.objects.meta import KubeObject
from kube.process.progress import track

log = logging.getLogger(__name__)
T = TypeVar("T", bound=KubeObject)
R = TypeVar("R")

MAX_REMEMBERED = 10_000
MAX_CAUSE_LENGTH = 300


class HungError(ValueError):
    """An earlier run of this process hung on the object."""

    def __init__(self) -> None:
        super().__init__("this process hung on it and was ended; see set-aside.json")


@dataclass(slots=True)
class SetAside:
    """The objects that one reader could not read; `reader` names it in the log."""

    reader: str
    #: (Kind, key, version), oldest first; an ordered set.
    _logged: OrderedDict[tuple[str, str, str], None] = field(default_factory=OrderedDict)

    def read(self, kind: str, item: T, convert: Callable[[T], R]) -> R | None:
        """Return the converted object, or None if a value in it cannot be read."""
        sign = track()
        was_at_rest = sign.is_at_rest
        if not sign.take(kind, item, self.reader):
            self.log_once(kind, item.key, item.metadata.resource_version, HungError())
            return None
        try:
            return convert(item)
        except UNREADABLE as error:
            self.log_once(kind, item.key, item.metadata.resource_version, error)
            return None
        finally:
            if was_at_rest:
                sign.rest()

    def each(self, kind: str, items: Iterable[T], convert: Callable[[T], R]) -> list[R]:
        """Return the converted objects without those that cannot be read."""
        converted = (self.read(kind, item, convert) for item in items)
        return [value for value in converted if value is not None]

    def log_once(self, kind: str, key: str, version: str, error: Exception) -> None:
        """Log why an object is left out, once for each of its versions."""
        identity = (kind, key, version)
        if identity in self._logged:
            return
        self._logged[identity] = None
        if len(self._logged) > MAX_REMEMBERED:
            self._logged.popitem(last=False)
        log.warning("%s: %s %s is left out: %s", self.reader, kind, key, shown_cause(error))


def shown_cause(error: Exception) -> str:
    """Return an error's text, short enough for a log or a condition."""
    text = str(error) or type(error).__name__
    return text if len(text) <= MAX_CAUSE_LENGTH else f"{text[:MAX_CAUSE_LENGTH]}..."

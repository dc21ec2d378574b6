"""What changed between two cycles: an object that is still the same Python object has not changed.

The store replaces an object whenever it changes, and hands out the same mapping as long as none did. So a
comparison by identity finds what changed, and needs nobody to keep a list of events (ADR 32).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import is_not
from typing import Any, Generic, TypeVar, cast

from kube.objects.meta import KubeObject
from kube.resources import Resource
from kube.store import KindHistory, StoreView

T = TypeVar("T")
R = TypeVar("R")

#: So many changes of sorted values are made one by one; sorting all costs less beyond.
SINGLE_CHANGES = 500


@dataclass(slots=True)
class Following(Generic[T]):
    """The objects of a kind as the last cycle saw them.

    The store knows which keys changed since. If it does not (`KindHistory`), all objects are compared.
    """

    resource: Resource
    objects: Mapping[str, T] = field(default_factory=dict)
    _history: KindHistory = field(default_factory=KindHistory)

    def follow(self, view: StoreView) -> set[str]:
        """Take the objects of a view; return the keys whose object is new, gone or another one."""
        old, new = self.objects, cast("Mapping[str, T]", view.of(self.resource, KubeObject))
        history = view.history(self.resource)
        touched = history.since(self._history)
        self.objects, self._history = new, history
        if touched is None:
            return changed_keys(old, new)
        return {key for key in touched if old.get(key) is not new.get(key)}


def changed_keys(old: Mapping[str, Any], new: Mapping[str, Any]) -> set[str]:
    """Return the keys whose object is new, gone or another one."""
    if old is new:
        return set()
    get = old.get
    changed = {key for key, value in new.items() if get(key) is not value}
    added = sum(key not in old for key in changed)
    if len(old) + added != len(new):
        changed |= old.keys() - new.keys()
    return changed


def add_to(index: dict[str, set[str]], entry: str, key: str) -> None:
    """Add a key to the set of an entry."""
    index.setdefault(entry, set()).add(key)


def remove_from(index: dict[str, set[str]], entry: str, key: str) -> None:
    """Remove a key from the set of an entry, and the entry with its last key."""
    keys = index[entry]
    keys.discard(key)
    if not keys:
        del index[entry]


def same_or_new(old: tuple[R, ...], new: Sequence[R]) -> tuple[R, ...]:
    """Return the old tuple if it has the same objects, else the new ones as a tuple."""
    is_same = len(old) == len(new) and not any(map(is_not, old, new))
    return old if is_same else tuple(new)


@dataclass(slots=True)
class Memo(Generic[R]):
    """The last result of a conversion, kept as long as everything it was made from is the same object.

    A new result that equals the last one is dropped for it, because others ask whether it is the same object.
    """

    _kept: tuple[tuple[object, ...], R] | None = None

    def get(self, make: Callable[[], R], *sources: object) -> R:
        """Return the kept result, or a new one if a source is another object."""
        if self._kept is None or any(
            old is not new for old, new in zip(self._kept[0], sources, strict=True)
        ):
            result = make()
            if self._kept is not None and self._kept[1] == result:
                result = self._kept[1]
            self._kept = (sources, result)
        return self._kept[1]


@dataclass(slots=True)
class SortedValues(Generic[R]):
    """Values by key, and a tuple of them in the order of the keys."""

    _by_key: dict[str, R] = field(default_factory=dict)
    _keys: list[str] = field(default_factory=list)
    _values: list[R] = field(default_factory=list)
    #: How many more changes are made one by one.
    _budget: int = 0
    _tuple: tuple[R, ...] | None = ()

    def __getitem__(self, key: str) -> R:
        return self._by_key[key]

    def put(self, key: str, value: R) -> None:
        """Set the value of a key."""
        is_known, self._by_key[key] = key in self._by_key, value
        self._tuple = None
        self._budget -= 1
        if self._budget < 0:
            return
        index = bisect_left(self._keys, key)
        if is_known:
            self._values[index] = value
        else:
            self._keys.insert(index, key)
            self._values.insert(index, value)

    def remove(self, key: str) -> None:
        """Remove a key if it is there."""
        if key not in self._by_key:
            return
        del self._by_key[key]
        self._tuple = None
        self._budget -= 1
        if self._budget >= 0:
            index = bisect_left(self._keys, key)
            del self._keys[index], self._values[index]

    def values(self) -> tuple[R, ...]:
        """Return the values in the order of their keys; the same tuple as before if none changed."""
        if self._tuple is None:
            if self._budget < 0:
                self._keys = sorted(self._by_key)
                self._values = [self._by_key[key] for key in self._keys]
            self._tuple = tuple(self._values)
        self._budget = SINGLE_CHANGES
        return self._tuple

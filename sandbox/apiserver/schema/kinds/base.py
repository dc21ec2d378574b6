"""The strategy of one kind: the few functions in which kinds differ when they are written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sandbox.apiserver.model.errors import Cause

Obj = dict[str, Any]
Change = Callable[[Obj], None]
Check = Callable[[Obj], list[Cause]]
Compare = Callable[[Obj, Obj], list[Cause]]


def _nothing(obj: Obj) -> None:
    return None


def _fine(obj: Obj) -> list[Cause]:
    return []


def _any_change(old: Obj, new: Obj) -> list[Cause]:
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """How one kind is defaulted, prepared and checked.

    `status` is what a new object's status starts as: None keeps what the client sent (nodes).
    `meta_by_status` says that a write to /status may also change labels and annotations.
    """

    defaults: Change = _nothing
    prepare: Change = _nothing
    validate: Check = _fine
    validate_update: Compare = _any_change
    validate_status: Compare = _any_change
    status: Obj | None = None
    has_generation: bool = False
    meta_by_status: bool = False
    name_rule: str = "subdomain"


def setdefaults(holder: Obj, **values: Any) -> None:
    for key, value in values.items():
        if key not in holder:
            holder[key] = value

"""The strategy of one kind: the functions in which kinds differ when an object is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sandbox.apiserver.model.errors import Cause

Obj = dict[str, Any]
Modify = Callable[[Obj], None]
Check = Callable[[Obj], list[Cause]]
Compare = Callable[[Obj, Obj], list[Cause]]


def _leave_unchanged(obj: Obj) -> None:
    return None


def _accept(obj: Obj) -> list[Cause]:
    return []


def _accept_change(old: Obj, new: Obj) -> list[Cause]:
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """How one kind is defaulted, prepared and checked.

    `status` is the status of a new object; None keeps the one that the client sent (nodes).
    With `meta_by_status`, a write to /status may also change labels and annotations.
    With `creates_on_update`, a PUT creates an object that does not exist.
    """

    defaults: Modify = _leave_unchanged
    prepare: Modify = _leave_unchanged
    validate: Check = _accept
    validate_update: Compare = _accept_change
    validate_status: Compare = _accept_change
    status: Obj | None = None
    has_generation: bool = False
    meta_by_status: bool = False
    creates_on_update: bool = False
    name_rule: str = "subdomain"


def setdefaults(holder: Obj, **values: Any) -> None:
    for key, value in values.items():
        if key not in holder:
            holder[key] = value

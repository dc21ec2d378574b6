"""The fields that an object sets, as the paths of `FieldsV1`.

A path is a tuple of the segments that managedFields uses: `f:<name>` for a field, `k:{...}` for an
item of a keyed list, `v:<json>` for an item of a set. With sets of such tuples, union, difference and
conflicts are plain set operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from sandbox.apiserver.model.shapes import UNSET, Shape

Path = tuple[str, ...]
FieldSet = set[Path]
Obj = dict[str, Any]

_SELF = "."


def fields_of(value: Any, shape: Shape | None) -> FieldSet:
    """Return the paths that `value` sets; atomic values count as one path."""
    paths: FieldSet = set()
    _collect(value, shape, (), paths)
    return paths


def _collect(value: Any, shape: Shape | None, path: Path, paths: FieldSet) -> None:
    if isinstance(value, dict) and not (shape is not None and shape.atomic_map):
        for key, field in value.items():
            child = shape.child(key) if shape is not None else None
            below = (*path, f"f:{key}")
            _collect(field, child, below, paths)
            is_declared = shape is not None and key in shape.properties
            if field is None or field == {} or not is_declared:
                paths.add(below)
    elif isinstance(value, list) and is_associative(shape):
        assert shape is not None
        for item in value:
            below = (*path, segment_of(item, shape))
            _collect(item, shape.items, below, paths)
            paths.add(below)
    else:
        paths.add(path)


def is_associative(shape: Shape | None) -> bool:
    return shape is not None and shape.list_type in ("map", "set")


def segment_of(item: Any, shape: Shape) -> str:
    """Return the segment of a list item: its keys (with their defaults) or its value."""
    if shape.list_type == "set" or not isinstance(item, dict):
        return "v:" + orjson.dumps(item, option=orjson.OPT_SORT_KEYS).decode()
    keys = {}
    for key in sorted(shape.list_keys):
        if key in item:
            keys[key] = item[key]
        else:
            default = _key_default(shape, key)
            if default is not UNSET:
                keys[key] = default
    return "k:" + orjson.dumps(keys).decode()


def _key_default(shape: Shape, key: str) -> Any:
    child = shape.items.properties.get(key) if shape.items is not None else None
    return child.default if child is not None else UNSET


def to_fields_v1(fields: Iterable[Path]) -> Obj:
    """Return a set of paths as the nested object of managedFields."""
    root: Obj = {}
    ordered = sorted(fields)
    prefixes = {path[:depth] for path in ordered for depth in range(1, len(path))}
    for path in ordered:
        node = root
        for segment in path:
            node = node.setdefault(segment, {})
        if path in prefixes:
            node[_SELF] = {}
    return root


def from_fields_v1(fields: Obj) -> FieldSet:
    """Return the paths in the nested object of managedFields."""
    return set(_leaves(fields, ()))


def _leaves(node: Obj, path: Path) -> Iterator[Path]:
    if not node and path:
        yield path
    for segment, below in node.items():
        if segment == _SELF:
            yield path
        else:
            yield from _leaves(below, (*path, segment))


def value_at(value: Any, path: Path, shape: Shape | None) -> Any:
    """Return the value that a path leads to; UNSET if it leads nowhere."""
    for segment in path:
        value, shape = _descend(value, segment, shape)
        if value is UNSET:
            return UNSET
    return value


def _descend(value: Any, segment: str, shape: Shape | None) -> tuple[Any, Shape | None]:
    kind, _, name = segment.partition(":")
    if kind == "f":
        if not isinstance(value, dict) or name not in value:
            return UNSET, None
        return value[name], shape.child(name) if shape is not None else None
    if isinstance(value, list) and shape is not None:
        for item in value:
            if segment_of(item, shape) == segment:
                return item, shape.items
    return UNSET, None


def remove_at(value: Any, path: Path, shape: Shape | None, keep: FieldSet) -> None:
    """Remove the value that a path leads to, and the containers around it that become empty.

    Containers whose own path is in `keep` are not removed.
    """
    holders: list[tuple[Any, Shape | None]] = []
    for segment in path:
        holders.append((value, shape))
        value, shape = _descend(value, segment, shape)
        if value is UNSET:
            return
    for depth in range(len(path) - 1, -1, -1):
        holder, holder_shape = holders[depth]
        _drop(holder, path[depth], holder_shape)
        if holder or path[:depth] in keep:
            return


def _drop(holder: Any, segment: str, shape: Shape | None) -> None:
    kind, _, name = segment.partition(":")
    if kind == "f" and isinstance(holder, dict):
        holder.pop(name, None)
    elif isinstance(holder, list) and shape is not None:
        holder[:] = [item for item in holder if segment_of(item, shape) != segment]


def changed_fields(old: Any, new: Any, shape: Shape | None) -> tuple[FieldSet, FieldSet]:
    """Return the paths that `new` adds or modifies, and the paths that it no longer has."""
    before, after = fields_of(old, shape), fields_of(new, shape)
    removed = before - after
    changed = after - before
    for path in before & after:
        left, right = value_at(old, path, shape), value_at(new, path, shape)
        if left is not right and left != right and not _is_container(right, path, after):
            changed.add(path)
    return changed, removed


def _is_container(value: Any, path: Path, fields: FieldSet) -> bool:
    """Return whether a path means only the container, because its content has paths of its own."""
    if not isinstance(value, (dict, list)) or not value:
        return False
    depth = len(path)
    return any(len(other) > depth and other[:depth] == path for other in fields)

"""Strategic merge patch: a merge patch that merges lists as the schema says, as sets or by key.

The schema names a list's merge key and strategy. Directives: `$patch: delete|replace`,
`$deleteFromPrimitiveList/<field>`, `$setElementOrder/<field>`, `$retainKeys`.
"""

from __future__ import annotations

from typing import Any

from sandbox.apiserver.model import errors
from sandbox.apiserver.model.shapes import Shape

Obj = dict[str, Any]

_DIRECTIVE = "$patch"
_RETAIN = "$retainKeys"
_DELETE_ITEMS = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"


def apply_strategic(value: Obj, patch: Obj, shape: Shape | None) -> Obj:
    """Return the patched object; neither argument is changed, parts may be shared."""
    if patch.get(_DIRECTIVE) == "replace":
        return {key: value for key, value in patch.items() if key != _DIRECTIVE}
    if patch.get(_DIRECTIVE) == "delete":
        return {}
    result = dict(value)
    if _RETAIN in patch:
        result = {key: result[key] for key in result if key in patch[_RETAIN]}
    for key, change in patch.items():
        if key in (_DIRECTIVE, _RETAIN) or key.startswith((_DELETE_ITEMS, _ORDER)):
            continue
        if change is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), change, shape.child(key) if shape else None)
    for key, items in patch.items():
        if key.startswith(_DELETE_ITEMS):
            field = key.removeprefix(_DELETE_ITEMS)
            result[field] = [item for item in result.get(field) or () if item not in items]
    for key, order in patch.items():
        if key.startswith(_ORDER):
            field = key.removeprefix(_ORDER)
            item_shape = shape.child(field) if shape else None
            if isinstance(result.get(field), list):
                result[field] = _ordered(result[field], order, value.get(field) or [], item_shape)
    return result


def _merged(value: Any, patch: Any, shape: Shape | None) -> Any:
    if isinstance(patch, dict):
        return apply_strategic(value if isinstance(value, dict) else {}, patch, shape)
    if isinstance(patch, list) and shape is not None and "merge" in shape.patch_strategy:
        current = value if isinstance(value, list) else []
        if shape.merge_key:
            merged = _merge_by_key(current, patch, shape)
            return _ordered(merged, patch, current, shape)
        return current + [item for item in patch if item not in current]
    if isinstance(patch, list):
        return [_without_directives(item) for item in patch]
    return patch


def _merge_by_key(current: list[Obj], patch: list[Obj], shape: Shape) -> list[Obj]:
    key = shape.merge_key
    if any(item.get(_DIRECTIVE) == "replace" and len(item) == 1 for item in patch):
        return [item for item in patch if _DIRECTIVE not in item]
    result = list(current)
    for item in patch:
        if key not in item:
            content = " ".join(f"{name}:{value}" for name, value in item.items())
            raise errors.unclassified(
                f"map: map[{content}] does not contain declared merge key: {key}"
            )
        index = next((i for i, old in enumerate(result) if old.get(key) == item[key]), None)
        directive = item.get(_DIRECTIVE)
        if directive == "delete":
            result = [old for old in result if old.get(key) != item[key]]
        elif index is None:
            result.append(_without_directives(item))
        elif directive == "replace":
            result[index] = _without_directives(item)
        else:
            result[index] = apply_strategic(result[index], item, shape.items)
    return result


def _ordered(
    items: list[Any], order: list[Any], before: list[Any], shape: Shape | None
) -> list[Any]:
    """Sort merged items: those in `order` in that order, with the others in between.

    Another item comes before an item of `order` only if both existed before the patch, in that sequence.
    So new items of a patch come first, as on the real server.
    """
    key = shape.merge_key if shape else ""

    def identity(item: Any) -> Any:
        return item.get(key) if key and isinstance(item, dict) else item

    ranks = [identity(item) for item in order]
    positions = [identity(item) for item in before]
    ordered = [item for item in items if identity(item) in ranks]
    ordered.sort(key=lambda item: ranks.index(identity(item)))
    others = [item for item in items if identity(item) not in ranks]
    result: list[Any] = []
    while ordered and others:
        left, right = identity(others[0]), identity(ordered[0])
        is_first = (
            left in positions
            and right in positions
            and positions.index(left) < positions.index(right)
        )
        result.append(others.pop(0) if is_first else ordered.pop(0))
    return result + ordered + others


def _without_directives(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_directives(child)
            for key, child in value.items()
            if not key.startswith("$") and child is not None
        }
    if isinstance(value, list):
        return [_without_directives(item) for item in value]
    return value

"""Validate the subgroup tree of pod groups: unique names, known parents, one minimum per level.

The first structural error ends the check, because the other rules need a valid tree; errors about minimums are
collected. Some are only warnings, always or on updates, so that groups older than a rule can still be edited.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from queues.admission.bodies import Json
from queues.admission.review import ALLOWED, ReviewRequest, Verdict, denied


@dataclass(frozen=True, slots=True, kw_only=True)
class MinimumError:
    """A violated rule about a minimum.

    Attributes
    ----------
    warns_on_update : only a warning on updates
    only_warns : always only a warning
    """

    message: str
    warns_on_update: bool = False
    only_warns: bool = False


def validate_pod_group(request: ReviewRequest) -> Verdict:
    """Validate a creation or an update; deletions are allowed."""
    if request.operation == "DELETE":
        return ALLOWED
    spec = _map(request.object.get("spec"))
    groups = [_map(group) for group in _list(spec.get("subGroups"))]
    structural = structural_error(spec, groups)
    if structural:
        return denied(structural)
    is_update = request.operation == "UPDATE"
    errors: list[str] = []
    warnings: list[str] = []
    for error in minimum_errors(spec, groups):
        is_warning = error.only_warns or (is_update and error.warns_on_update)
        (warnings if is_warning else errors).append(error.message)
    return Verdict(message="\n".join(errors), warnings=tuple(warnings))


def structural_error(spec: Json, groups: list[Json]) -> str:
    """Return the first reason why the subgroups form no tree, or ""."""
    if spec.get("minMember") is not None and spec.get("minSubGroup") is not None:
        return (
            f"minMember and minSubGroup are mutually exclusive: set minMember ({spec['minMember']}) to "
            "schedule a fixed number of pods, or set minSubGroup to require a minimum number of child "
            "SubGroups, but not both"
        )
    parents: dict[str, str] = {}
    for group in groups:
        name = _text(group.get("name"))
        if name in parents:
            return f"duplicate subgroup name {name}"
        parents[name] = _text(group.get("parent"))
    for name, parent in parents.items():
        if parent and parent not in parents:
            return f"parent {parent} of {name} was not found"
    if _has_cycle(parents):
        return "cycle detected in subgroups"
    for group in groups:
        if group.get("minMember") is not None and group.get("minSubGroup") is not None:
            return (
                f'subgroup "{group.get("name")}": minMember and minSubGroup are mutually exclusive'
            )
    return ""


def minimum_errors(spec: Json, groups: list[Json]) -> Iterator[MinimumError]:
    """Yield violated rules about minimums: of the subgroups by name, then of the group itself."""
    children: dict[str, int] = {}
    for group in groups:
        parent = _text(group.get("parent"))
        children[parent] = children.get(parent, 0) + 1
    for group in sorted(groups, key=lambda group: _text(group.get("name"))):
        name = _text(group.get("name"))
        yield from (
            _parent_errors(group, children[name]) if name in children else _leaf_errors(group)
        )
    min_sub_groups, roots = spec.get("minSubGroup"), children.get("", 0)
    if _exceeds(min_sub_groups, roots):
        yield MinimumError(
            message=f"minSubGroup ({min_sub_groups}) exceeds the number of direct child SubGroups ({roots})",
            only_warns=True,
        )


def _leaf_errors(group: Json) -> Iterator[MinimumError]:
    name = group.get("name")
    if group.get("minSubGroup") is not None:
        yield MinimumError(
            message=f'subgroup "{name}": minSubGroup cannot be set on a leaf SubGroup '
            "(no child SubGroups)"
        )
    if group.get("minMember") is None:
        yield MinimumError(message=f"subgroup {name}: minMember is required")


def _parent_errors(group: Json, children: int) -> Iterator[MinimumError]:
    name = group.get("name")
    if group.get("minMember") is not None:
        yield MinimumError(
            message=f'subgroup "{name}": minMember cannot be set on a mid-level SubGroup '
            "(has child SubGroups); use minSubGroup instead",
            warns_on_update=True,
        )
    if _exceeds(group.get("minSubGroup"), children):
        yield MinimumError(
            message=f'subgroup "{name}": minSubGroup ({group["minSubGroup"]}) exceeds the number of '
            f"direct child SubGroups ({children})",
            only_warns=True,
        )


def _has_cycle(parents: dict[str, str]) -> bool:
    reaches_root: set[str] = {""}
    for start in parents:
        path: list[str] = []
        name = start
        while name not in reaches_root:
            if name in path:
                return True
            path.append(name)
            name = parents[name]
        reaches_root.update(path)
    return False


def _exceeds(minimum: Any, count: int) -> bool:
    return isinstance(minimum, int) and minimum > count


def _map(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""

"""Karta: grouping rules for other kinds, written by their owners as data (`run.ai/v1alpha1 Karta`).

A definition names the components of a workload (a tree below the root kind), the paths of their replica counts, and
how to recognise the component of a pod. This module checks definitions and applies the one for a kind.
Expressions are jq paths, see `jq`.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from queues.grouping.base import (
    Context,
    Json,
    Kind,
    Metadata,
    SubGroup,
    Topology,
    dig,
    dig_list,
    dig_map,
    dig_text,
    is_whole,
    kind_of,
    labels_of,
    name_of,
    uid_of,
)
from queues.grouping.errors import GroupingError
from queues.grouping.karta.jq import JqOverrunError, check, evaluate, first_value
from queues.grouping.metadata import base_metadata, default_grouper

logger = logging.getLogger(__name__)
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A component of the workload: the paths of its scale, and how its pods are recognised."""

    name: str
    parent: str
    min_replicas_path: str
    replicas_path: str
    instance_ids_path: str
    template_path: str
    selector_path: str
    selector_value: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A checked Karta."""

    #: By name.
    components: dict[str, Component]
    root: str
    gang: Json

    def children(self, name: str) -> list[Component]:
        return [part for part in self.components.values() if part.parent == name]

    def subtree(self, name: str) -> list[Component]:
        components = [self.components[name]]
        for child in self.children(name):
            components += self.subtree(child.name)
        return components


def karta_grouper(ctx: Context) -> Metadata:
    """Group by the one valid definition of this kind; none or several mean the base rules."""
    kind = kind_of(ctx.top)
    fitting = fitting_definitions(ctx.lookups.kartas(kind), kind)
    if len(fitting) > 1:
        logger.warning("%d Karta definitions match %s; the base rules are used", len(fitting), kind)
    if len(fitting) != 1:
        return default_grouper(ctx)
    definition = fitting[0]
    if dig(definition.gang, "podGroup"):
        return _by_pod_group(ctx, definition)
    return _by_members(ctx, definition)


def fitting_definitions(kartas: Sequence[Json], kind: Kind) -> list[Definition]:
    """Return the valid definitions of a kind; invalid ones are logged and left out."""
    return [
        definition
        for definition in (_checked(karta, kind) for karta in kartas)
        if definition is not None
    ]


def refusal_of(karta: Json) -> str:
    """Return why a definition cannot be used, for its author; empty if it can."""
    root_kind = dig_map(karta, "spec", "structureDefinition", "rootComponent", "kind")
    kind = Kind(**{part: dig_text(root_kind, part) for part in ("group", "version", "kind")})
    expected_labels = index_labels(kind)
    labels = labels_of(karta)
    if any(labels.get(key, "") != value for key, value in expected_labels.items()):
        pairs = ", ".join(f"{key}={value}" for key, value in expected_labels.items())
        return f"its labels must name its root component: expected {pairs}"
    try:
        definition = _definition(karta, kind)
    except GroupingError as error:
        return str(error)
    return "" if definition else "it has no gang scheduling instructions (podGroup or podGroups)"


def index_labels(kind: Kind) -> dict[str, str]:
    """Return the labels by which the definitions of a kind are looked up."""
    return {
        "run.ai/karta-group": kind.group,
        "run.ai/karta-version": kind.version,
        "run.ai/karta-kind": kind.kind,
    }


def component_scale(definition: Definition, name: str, top: Json) -> int:
    """Return the scale of a component without its children."""
    return _own_scale(definition.components[name], top)


def _by_pod_group(ctx: Context, definition: Definition) -> Metadata:
    pod_group = dig_map(definition.gang, "podGroup")
    metadata = replace(
        base_metadata(ctx),
        name=f"pg-{uid_of(ctx.top)}-{dig_text(pod_group, 'name')}",
        topology=_topology(pod_group) or base_metadata(ctx).topology,
    )
    listed = [part for part in dig_list(pod_group, "subGroups") if isinstance(part, dict)]
    if not listed:
        return replace(metadata, min_member=_scale(definition, definition.root, ctx.top))
    groups = tuple(_sub_group(definition, part, ctx.top) for part in listed)
    return replace(
        metadata,
        min_sub_group=len(groups),
        sub_groups=groups,
        pod_sub_group=_component_of(definition, [group.name for group in groups], ctx.pod),
    )


def _sub_group(definition: Definition, part: Json, top: Json) -> SubGroup:
    name = dig_text(part, "componentName")
    if not any(p.replicas_path or p.min_replicas_path for p in definition.subtree(name)):
        raise GroupingError(f"component {name} must expose a replica scale definition")
    scale = _scale(definition, name, top)
    if scale <= 0:
        raise GroupingError(f"component {name} must expose a replica scale definition")
    return SubGroup(name=name, min_member=scale, topology=_topology(part))


def _by_members(ctx: Context, definition: Definition) -> Metadata:
    metadata = base_metadata(ctx)
    for group in dig_list(definition.gang, "podGroups"):
        for member in dig_list(group, "members"):
            name = dig_text(member, "componentName")
            if not _holds_pod(definition, name, ctx.pod) or not _passes(member, ctx.pod):
                continue
            key_values = [
                first_value(path, ctx.pod) for path in dig_list(member, "groupByKeyPaths")
            ]
            full = "-".join(["pg", uid_of(ctx.top), *(_as_text(part) for part in key_values)])
            if None in key_values or not _SUBDOMAIN.fullmatch(full) or len(full) > 253:
                raise GroupingError(f"pod group name {full!r} is not a DNS-1123 subdomain")
            return replace(metadata, name=full, min_member=_scale(definition, name, ctx.top))
    raise GroupingError(
        f"pod {name_of(ctx.pod)} belongs to no component of the Karta for {kind_of(ctx.top).kind}"
    )


def _passes(member: Json, pod: Json) -> bool:
    return all(bool(first_value(path, pod)) for path in dig_list(member, "filters"))


def _component_of(definition: Definition, names: list[str], pod: Json) -> str:
    return next((name for name in names if _holds_pod(definition, name, pod)), "")


def _holds_pod(definition: Definition, name: str, pod: Json) -> bool:
    return any(_selects(part, pod) for part in definition.subtree(name))


def _selects(part: Component, pod: Json) -> bool:
    if not part.selector_path:
        return False
    value = first_value(part.selector_path, pod)
    if value is None or part.selector_value is None:
        return value is not None
    return _as_text(value) == part.selector_value


def _as_text(value: Any) -> str:
    """Return a value as jq prints it: `true`, not `True`."""
    return value if isinstance(value, str) else json.dumps(value)


def _scale(definition: Definition, name: str, top: Json) -> int:
    """Return the pods of a subtree: own scale times the sum over the children; a missing factor counts as 1."""
    parts = definition.subtree(name)
    if not any(part.replicas_path or part.min_replicas_path for part in parts):
        leaves = [part for part in parts if not definition.children(part.name)]
        return sum(_instances(part, top) for part in leaves)
    return _product(definition, definition.components[name], top)


def _product(definition: Definition, part: Component, top: Json) -> int:
    own_scale = _own_scale(part, top)
    below = sum(_product(definition, child, top) for child in definition.children(part.name))
    return own_scale * below if own_scale and below else own_scale or below


def _own_scale(part: Component, top: Json) -> int:
    for path in (part.min_replicas_path, part.replicas_path):
        if path:
            total = sum(_count(part, value) for value in evaluate(path, top) if value is not None)
            if total > 0:
                return total
    return 0


def _count(part: Component, value: Any) -> int:
    if not is_whole(value):
        raise GroupingError(f"scale of component {part.name} must be a whole number, got {value!r}")
    return int(value)


def _instances(part: Component, top: Json) -> int:
    if not part.instance_ids_path:
        return 1
    return len([v for v in evaluate(part.instance_ids_path, top) if v is not None]) or 1


def _topology(spec: Json) -> Topology | None:
    topology = Topology(
        name=dig_text(spec, "topology", "topology") or dig_text(spec, "topology", "name"),
        required=dig_text(spec, "topology", "requiredTopologyLevel"),
        preferred=dig_text(spec, "topology", "preferredTopologyLevel"),
    )
    return topology if topology.name and (topology.required or topology.preferred) else None


def _checked(karta: Json, kind: Kind) -> Definition | None:
    try:
        return _definition(karta, kind)
    except JqOverrunError:
        raise  # may be temporary, so the pod is retried
    except GroupingError as error:
        _warn_once(name_of(karta), str(error))
        return None


@lru_cache(maxsize=256)
def _warn_once(karta: str, reason: str) -> None:
    """Log why a definition is skipped, once and not for each pod of the kind."""
    logger.warning("Karta %s is skipped: %s", karta, reason)


def _definition(karta: Json, kind: Kind) -> Definition | None:
    structure = dig_map(karta, "spec", "structureDefinition")
    root = dig_map(structure, "rootComponent")
    root_kind = dig_map(root, "kind")
    if (root_kind.get("group", ""), root_kind.get("version"), root_kind.get("kind")) != (
        kind.group,
        kind.version,
        kind.kind,
    ):
        return None
    gang = dig_map(karta, "spec", "optimizationInstructions", "gangScheduling")
    if not gang.get("podGroup") and not gang.get("podGroups"):
        return None
    parts = [_component(root, is_root=True)]
    parts += [_component(spec, is_root=False) for spec in dig_list(structure, "childComponents")]
    definition = Definition(
        components={part.name: part for part in parts}, root=parts[0].name, gang=gang
    )
    _check_tree(definition, len(parts))
    _check_names(definition)
    return definition


def _component(spec: Any, *, is_root: bool) -> Component:
    selector = dig_map(spec, "podSelector", "componentTypeSelector")
    value = selector.get("value")
    part = Component(
        name=dig_text(spec, "name"),
        parent="" if is_root else dig_text(spec, "ownerRef"),
        min_replicas_path=dig_text(spec, "scaleDefinition", "minReplicasPath"),
        replicas_path=dig_text(spec, "scaleDefinition", "replicasPath"),
        instance_ids_path=dig_text(spec, "instanceIdPath"),
        template_path=dig_text(spec, "specDefinition", "podTemplateSpecPath"),
        selector_path=dig_text(selector, "keyPath"),
        selector_value=None if value is None else _as_text(value),
    )
    if not part.name:
        raise GroupingError("a component has no name")
    paths = (
        part.min_replicas_path,
        part.replicas_path,
        part.instance_ids_path,
        part.template_path,
        part.selector_path,
    )
    for path in paths:
        if path:
            check(path)
    return part


def _check_tree(definition: Definition, count: int) -> None:
    if len(definition.components) != count:
        raise GroupingError("two components share a name")
    for part in definition.components.values():
        visited: set[str] = set()
        while part.name != definition.root:
            if part.name in visited or part.parent not in definition.components:
                raise GroupingError(f"component {part.name} does not hang below the root component")
            visited.add(part.name)
            part = definition.components[part.parent]


def _check_names(definition: Definition) -> None:
    component_names = [
        dig_text(p, "componentName") for p in dig_list(definition.gang, "podGroup", "subGroups")
    ]
    for group in dig_list(definition.gang, "podGroups"):
        for member in dig_list(group, "members"):
            component_names.append(dig_text(member, "componentName"))
            for path in (*dig_list(member, "groupByKeyPaths"), *dig_list(member, "filters")):
                check(str(path))
    for name in component_names:
        if name not in definition.components:
            raise GroupingError(f"gang scheduling names component {name!r}, which does not exist")
    if definition.gang.get("podGroup") and not dig_text(definition.gang, "podGroup", "name"):
        raise GroupingError("gangScheduling.podGroup has no name")

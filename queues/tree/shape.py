"""Read an unvalidated Queue body into a `QueueShape` and a list of findings.

Bodies come from webhooks and REST calls, so any JSON (and any Python object) may arrive. Reading never
raises: each bad field becomes a finding and is then treated as unset. Unset (None), unlimited (-1) and
zero are distinct, because KAI treats them differently: with an unset limit nothing runs.

Pure: no Django, no cluster. The `pointer` of a finding names the field as REST spells it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

# Imported from here by those who read shapes.
from queues.tree.findings import Finding as Finding
from queues.tree.findings import Severity as Severity
from queues.tree.findings import duration_fault
from queues.tree.findings import is_clean as is_clean
from queues.tree.findings import shown as shown
from queues.tree.options import NO_OPTIONS, QueueOptions, read_options
from queues.tree.unlimited import UNLIMITED

RESOURCES = ("gpu", "cpu", "memory")
# Names of the three resources in REST, whose amounts are in base units; for pointers and messages.
REST_NAMES = {"gpu": "gpu", "cpu": "cpuMilli", "memory": "memoryBytes"}
#: Resource -> how many units of REST one of the custom resource has.
BASE_UNITS = {"gpu": 1, "cpu": 1, "memory": 1_000_000}
QUOTA, LIMIT, WEIGHT = "quota", "limit", "weight"
CR_FIELDS = {QUOTA: "quota", LIMIT: "limit", WEIGHT: "overQuotaWeight"}
NAME_PATTERN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
NAME_LENGTH = 253
# Workloads name their queue in a label, whose value may not be longer.
LABEL_LENGTH = 63
PRIORITY_RANGE = (-(2**31), 2**31 - 1)
GPU_PLACES = 3
MAX_AMOUNT = 1e15

BoundAmounts = Mapping[str, float | None]
EMPTY: BoundAmounts = dict.fromkeys(RESOURCES)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueShape:
    """The fields that the rules read. Amounts are in the units of the custom resource; None is unset."""

    name: str
    parent: str = ""
    display_name: str = ""
    priority: int | None = None
    preempt_min_runtime: str = ""
    reclaim_min_runtime: str = ""
    has_resources: bool = True
    version: str = ""
    quota: BoundAmounts = field(default_factory=lambda: EMPTY)
    limit: BoundAmounts = field(default_factory=lambda: EMPTY)
    weight: BoundAmounts = field(default_factory=lambda: EMPTY)
    options: QueueOptions = NO_OPTIONS


def shapes_of(bodies: Iterable[object]) -> dict[str, QueueShape]:
    """Return the shapes of Queue custom resources by name; those without a name are left out."""
    shapes = (read_queue(body)[0] for body in bodies)
    return {shape.name: shape for shape in shapes if shape.name}


def read_queue(body: object) -> tuple[QueueShape, tuple[Finding, ...]]:
    """Read the JSON of a Queue custom resource.

    Returns
    -------
    the shape, with unreadable fields unset, and what is wrong with the body
    """
    findings: list[Finding] = []
    root = _mapping(body, "", findings)
    metadata = _mapping(root.get("metadata", {}), "/metadata", findings)
    spec = _mapping(root.get("spec", {}), "/spec", findings)
    version = metadata.get("resourceVersion")
    resources = spec.get("resources")
    if resources is None:
        findings.append(
            Finding(pointer="/quota", code="required", message="resources must be specified")
        )
    per_resource = _mapping({} if resources is None else resources, "/quota", findings)
    cells = {
        name: _mapping(per_resource.get(name) or {}, f"/quota/{REST_NAMES[name]}", findings)
        for name in RESOURCES
    }
    options, unreadable_options = read_options(metadata.get("annotations"))
    findings += unreadable_options
    shape = QueueShape(
        name=_name(metadata.get("name"), "/name", findings, is_required=True),
        parent=_name(spec.get("parentQueue"), "/parent", findings, is_required=False),
        display_name=_text(spec.get("displayName"), "/displayName", findings),
        priority=_priority(spec.get("priority"), findings),
        preempt_min_runtime=_duration(
            spec.get("preemptMinRuntime"), "/preemptMinRuntime", findings
        ),
        reclaim_min_runtime=_duration(
            spec.get("reclaimMinRuntime"), "/reclaimMinRuntime", findings
        ),
        has_resources=resources is not None,
        version=version if isinstance(version, str) else "",
        quota=_amounts(cells, QUOTA, findings),
        limit=_amounts(cells, LIMIT, findings),
        weight=_amounts(cells, WEIGHT, findings),
        options=options,
    )
    return shape, tuple(findings)


def _mapping(value: object, pointer: str, findings: list[Finding]) -> Mapping[Any, Any]:
    if isinstance(value, Mapping):
        return value
    if value is not None:
        findings.append(
            Finding(
                pointer=pointer,
                code="type",
                message=f"{pointer or 'the body'}: expected an object, got {shown(value)}",
                given=shown(value),
                allowed="object",
            )
        )
    return {}


def _text(value: object, pointer: str, findings: list[Finding]) -> str:
    if value is None:
        return ""
    if isinstance(value, str) and is_clean(value):
        return value
    findings.append(
        Finding(
            pointer=pointer,
            code="type",
            message=f"{pointer[1:]}: expected a string, got {shown(value)}",
            given=shown(value),
            allowed="string",
        )
    )
    return ""


def _name(value: object, pointer: str, findings: list[Finding], *, is_required: bool) -> str:
    name = _text(value, pointer, findings)
    if not name and not is_required:
        return ""
    if len(name) <= NAME_LENGTH and NAME_PATTERN.fullmatch(name):
        return name
    findings.append(
        Finding(
            pointer=pointer,
            code="name",
            message=f"{pointer[1:]}: expected lower-case letters, digits, '-' and '.', beginning and"
            f" ending with a letter or digit, got '{shown(name)}'",
            given=shown(name),
            allowed=NAME_PATTERN.pattern,
        )
    )
    return ""


def _priority(value: object, findings: list[Finding]) -> int | None:
    if value is None:
        return None
    low, high = PRIORITY_RANGE
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if is_whole and low <= value <= high:  # type: ignore[operator]
        return value  # type: ignore[return-value]
    findings.append(
        Finding(
            pointer="/priority",
            code="priority",
            message=f"priority: expected a whole number from {low} to {high}, got {shown(value)}",
            given=shown(value),
            allowed=f"{low}..{high}",
        )
    )
    return None


def _duration(value: object, pointer: str, findings: list[Finding]) -> str:
    text = _text(value, pointer, findings)
    fault = duration_fault(pointer, text) if text else None
    if fault is None:
        return text
    findings.append(fault)
    return ""


def _amounts(
    cells: Mapping[str, Mapping[Any, Any]], bound_name: str, findings: list[Finding]
) -> dict[str, float | None]:
    return {
        resource: _amount(cell.get(CR_FIELDS[bound_name]), bound_name, resource, findings)
        for resource, cell in cells.items()
    }


def _amount(value: object, bound_name: str, resource: str, findings: list[Finding]) -> float | None:
    if value is None:
        return None
    # Nearly all amounts are plain numbers, and thousands of queues have nine of them.
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MAX_AMOUNT:
        return float(value)
    number = _number(value)
    may_be_unlimited = bound_name != WEIGHT
    allowed = "a number >= 0, or unlimited (-1)" if may_be_unlimited else "a number >= 0"
    if number is not None and (number >= 0 or (may_be_unlimited and number == UNLIMITED)):
        return number
    code = "negative" if number is not None else "number"
    findings.append(
        Finding(
            pointer=f"/{bound_name}/{REST_NAMES[resource]}",
            code=code,
            message=f"{bound_name} of {resource}: expected {allowed}, got {shown(value)}",
            given=shown(value),
            allowed=allowed,
        )
    )
    return None


def _number(value: object) -> float | None:
    """Return a finite float of reasonable size, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and abs(number) <= MAX_AMOUNT else None

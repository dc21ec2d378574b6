"""Plan a change set: what each edit changes, whether the rules allow it, and in which order to write.

Pure, apart from the rights that are passed in. No intermediate state may break a rule that the final state keeps:
bounds are raised from the root down, queues are created before others move below them, bounds are lowered from
the leaves up, and deletions come last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from queues.editing import edits
from queues.editing.edits import UNLIMITED_WORD, Difference
from queues.tree.amounts import Usage
from queues.tree.shape import CR_FIELDS, RESOURCES, REST_NAMES, Finding, Severity, read_queue
from scheduler.tools.simulate.what_if.edited import EditedQueues
from scheduler.tools.simulate.what_if.question import QueueEdit

Body = dict[str, Any]
Fields = dict[str, Any]

WARN, BLOCK = "warn", "block"
POLICIES = (WARN, BLOCK)
#: Findings about a bound that falls below what the queue uses.
BELOW_USE = frozenset({"limit-below-allocated", "quota-below-non-preemptible"})
OWN_MANAGERS = frozenset({"kaiweb", "unknown", ""})
RAISE, CREATE, MOVE, LOWER, DELETE = range(5)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """One write: the editable fields of the queue before and after, by JSON pointer; empty without a queue."""

    edit: QueueEdit
    before: Fields
    after: Fields

    @property
    def diff(self) -> list[Difference]:
        return difference_of(self.before, self.after)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The steps in the order of writing, and what is to say about them."""

    steps: tuple[PlannedStep, ...]
    errors: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()


def make_plan(
    queues: Mapping[str, Body],
    queue_edits: Sequence[QueueEdit],
    *,
    usage: Mapping[str, Usage],
    policy: str,
    now: float,
) -> Plan:
    """Judge the edits in the order of writing.

    Parameters
    ----------
    queues : the bodies of all queues of the cluster, by name
    usage : what queues hold now
    policy : `block` refuses a bound below what is used, `warn` only says so
    """
    edited = EditedQueues(dict(queues), usage)
    numbers = {edit.name: number for number, edit in enumerate(queue_edits)}
    steps = []
    for edit in in_safe_order(queues, queue_edits):
        before = fields_of(edited.bodies.get(edit.name))
        edited.apply(numbers[edit.name], edit, now)
        steps.append(
            PlannedStep(edit=edit, before=before, after=fields_of(edited.bodies.get(edit.name)))
        )
        if edit.action != "create":
            edited.errors += _owned(numbers[edit.name], queues.get(edit.name), steps[-1])
    errors, warnings = edited.errors, edited.warnings
    if policy == BLOCK:
        blocked = [finding for finding in warnings if finding.code in BELOW_USE]
        errors = [*errors, *(replace(finding, severity=Severity.ERROR) for finding in blocked)]
        warnings = [finding for finding in warnings if finding.code not in BELOW_USE]
    return Plan(steps=tuple(steps), errors=tuple(errors), warnings=tuple(warnings))


def fields_of(body: Body | None) -> Fields:
    """Return the editable fields of a queue by JSON pointer."""
    return {} if body is None else edits.flat(body)


def difference_of(before: Fields, after: Fields) -> list[Difference]:
    """Return the fields that differ."""
    pointers = [*after, *(pointer for pointer in before if pointer not in after)]
    return [
        Difference(pointer, before.get(pointer), after.get(pointer))
        for pointer in pointers
        if before.get(pointer) != after.get(pointer)
    ]


def edit_to(current: Fields, target: Fields) -> Fields:
    """Return the edit that turns one set of fields into the other; fields of neither stay as they are."""
    edit: Fields = {}
    for difference in difference_of(current, target):
        head, *rest = difference.pointer[1:].split("/")
        if rest:
            key = "/".join(rest).replace("~1", "/").replace("~0", "~")
            edit.setdefault(head, {})[key] = difference.after
        else:
            edit[head] = difference.after
    return edit


def edit_to_create(target: Fields) -> Fields:
    """Return the edit that creates a queue with exactly these fields."""
    start = edits.flat(edits.new_queue("new"))
    return edit_to(start, target)


# ---------------------------------------------------------------------------------------------- order


def in_safe_order(queues: Mapping[str, Body], queue_edits: Sequence[QueueEdit]) -> list[QueueEdit]:
    """Return the edits in an order in which no intermediate state breaks a rule that the last one keeps."""
    shapes = (read_queue(body)[0] for body in queues.values())
    tree = {shape.name: shape for shape in shapes if shape.name}
    parents = {name: shape.parent for name, shape in tree.items()}
    for edit in queue_edits:
        if "parent" in edit.edit:
            parents[edit.name] = str(edit.edit["parent"] or "")
    kinds = {edit.name: _kind(queues.get(edit.name), edit) for edit in queue_edits}

    def key(edit: QueueEdit) -> tuple[int, int, str]:
        kind, depth = kinds[edit.name], _depth(parents, edit.name)
        return (kind, -depth if kind in (LOWER, DELETE) else depth, edit.name)

    return sorted(queue_edits, key=key)


def _kind(body: Body | None, edit: QueueEdit) -> int:
    if edit.action == "delete":
        return DELETE
    if edit.action == "create" or body is None:
        return CREATE
    old = fields_of(body)
    if "parent" in edit.edit and (edit.edit["parent"] or None) != old.get("/parent"):
        return MOVE
    new = fields_of(edits.apply(body, edit.edit)[0])
    bounds = [
        item for item in difference_of(old, new) if item.pointer.startswith(("/quota", "/limit"))
    ]
    is_raise = bool(bounds) and all(_size(item.after) >= _size(item.before) for item in bounds)
    return RAISE if is_raise else LOWER


def _size(amount: Any) -> float:
    if amount == UNLIMITED_WORD:
        return float("inf")
    return float(amount) if isinstance(amount, int | float) else 0.0


def _depth(parents: Mapping[str, str], name: str) -> int:
    depth, visited = 0, {name}
    while (name := parents.get(name, "")) and name not in visited:
        visited.add(name)
        depth += 1
    return depth


# ------------------------------------------------------------------------------------- field managers


def _owned(number: int, body: Body | None, step: PlannedStep) -> Iterator[Finding]:
    """Yield a finding for each changed field that another manager applies, e.g. a GitOps controller."""
    for manager, fields in _applied_fields(body or {}):
        for difference in step.diff:
            if _contains(fields, _path_of(difference.pointer)):
                yield Finding(
                    pointer=f"/queues/{number}/edit{difference.pointer}",
                    code="field-owned",
                    message=f"queue '{step.edit.name}': {difference.pointer[1:]} is owned by '{manager}'",
                    given=manager,
                )


def _applied_fields(body: Body) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for entry in (body.get("metadata") or {}).get("managedFields") or ():
        manager = str(entry.get("manager", ""))
        if entry.get("operation") == "Apply" and manager not in OWN_MANAGERS:
            yield manager, entry.get("fieldsV1") or {}


def _path_of(pointer: str) -> list[str]:
    head, *rest = pointer[1:].split("/", 1)
    if head == "labels":
        key = rest[0].replace("~1", "/").replace("~0", "~")
        return ["f:metadata", "f:labels", f"f:{key}"]
    if rest:
        resource = next(name for name in RESOURCES if REST_NAMES[name] == rest[0])
        return ["f:spec", "f:resources", f"f:{resource}", f"f:{CR_FIELDS[head]}"]
    return ["f:spec", f"f:{edits.TEXT_FIELDS.get(head, head)}"]


def _contains(fields: Mapping[str, Any], path: Sequence[str]) -> bool:
    node: Any = fields
    for name in path:
        if not isinstance(node, Mapping) or name not in node:
            return False
        node = node[name]
    return True

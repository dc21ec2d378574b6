"""Plan a change set: what each edit changes, whether the rules allow it, and in which order to write.

Pure, apart from the rights that are passed in. No intermediate state may break a rule that the final state keeps:
bounds are raised from the root down, queues are created before others move below them, bounds are lowered from
the leaves up, and deletions come last. An edit that would break a rule only until others are made waits for them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kube.values.pointers import key_of_part
from queues.editing import edits
from queues.editing.edits import Difference
from queues.editing.judging import BELOW_USE, BORDER_CODES
from queues.editing.option_edits import OPTION_FIELDS, option_path
from queues.models import BelowUse
from queues.tree import hierarchy
from queues.tree.amounts import NO_USAGE, TOLERANCE, Usage
from queues.tree.shape import (
    CR_FIELDS,
    RESOURCES,
    REST_NAMES,
    Finding,
    Severity,
    read_queue,
)
from queues.tree.unlimited import UNLIMITED, UNLIMITED_WORD
from scheduler.tools.simulate.what_if.edited import EditedQueues
from scheduler.tools.simulate.what_if.question import QueueEdit

Body = dict[str, Any]
Fields = dict[str, Any]

WARN, BLOCK, DRAIN = BelowUse.WARN, BelowUse.BLOCK, BelowUse.DRAIN
POLICIES = tuple(BelowUse.values)
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
    """The steps in the order of writing, and what is to say about them.

    Attributes
    ----------
    excess : queue to drain -> resource -> how much more than its new limit it uses, in the units of its object
    """

    steps: tuple[PlannedStep, ...]
    errors: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()
    excess: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Policy:
    """What is done about a bound that falls below what its queue uses.

    `warn` only says so, `block` refuses the change, `drain` also requeues preemptible work above the limit.
    """

    default: str = WARN
    by_queue: Mapping[str, str] = field(default_factory=dict)

    def of(self, queue: str) -> str:
        return self.by_queue.get(queue, self.default)


def make_plan(
    queues: Mapping[str, Body],
    queue_edits: Sequence[QueueEdit],
    *,
    usage: Mapping[str, Usage],
    policy: Policy,
    now: float,
) -> Plan:
    """Judge the edits in the order of writing.

    Parameters
    ----------
    queues : the bodies of all queues of the cluster, by name
    usage : what queues hold now
    """
    edited = EditedQueues(dict(queues), usage)
    numbers = {edit.name: number for number, edit in enumerate(queue_edits)}
    steps = _made_in_order(edited, in_safe_order(queues, edited.shapes, queue_edits), numbers, now)
    for step in steps:
        if step.edit.action != "create":
            name = step.edit.name
            edited.errors += _owned(numbers[name], queues.get(name), step)
    errors, warnings = edited.errors, []
    for finding in edited.warnings:
        queue = queue_edits[_number_of(finding)].name
        if finding.code in BELOW_USE and policy.of(queue) == BLOCK:
            errors.append(replace(finding, severity=Severity.ERROR))
        else:
            warnings.append(finding)
    return Plan(
        steps=tuple(steps),
        errors=tuple(errors),
        warnings=tuple(warnings),
        excess={
            edit.name: _excess(edited.bodies[edit.name], usage.get(edit.name, NO_USAGE))
            for edit in queue_edits
            if policy.of(edit.name) == DRAIN and edit.name in edited.bodies
        },
    )


def _made_in_order(
    edited: EditedQueues, ordered: Sequence[QueueEdit], numbers: Mapping[str, int], now: float
) -> list[PlannedStep]:
    """Apply the edits; one that breaks a rule only for the time being waits until others are made."""
    lasting = _lasting_breaches(edited, ordered, numbers, now)
    steps: list[PlannedStep] = []

    def make(batch: Sequence[QueueEdit], *, must: bool = False) -> list[QueueEdit]:
        postponed = []
        for edit in batch:
            accepted = None if must else lasting.get(edit.name, frozenset())
            step = _made(edited, numbers[edit.name], edit, now, accepted)
            postponed.append(edit) if step is None else steps.append(step)
        return postponed

    others = [edit for edit in ordered if edit.action != "delete"]
    deletions = [edit for edit in ordered if edit.action == "delete"]
    while others or deletions:
        postponed = make(others)
        if len(postponed) == len(others):
            left_deletions = make(deletions)
            if len(left_deletions) == len(deletions):
                make((*others, *deletions), must=True)
                return steps
            deletions = left_deletions
        others = postponed
    return steps


def _lasting_breaches(
    edited: EditedQueues, ordered: Sequence[QueueEdit], numbers: Mapping[str, int], now: float
) -> dict[str, frozenset[str]]:
    """Return queue -> the rules of the border that it breaks when all edits are made."""
    final = edited.copy()
    for edit in ordered:
        final.apply(numbers[edit.name], edit, now)
    return {
        edit.name: frozenset(
            finding.code
            for finding in hierarchy.check(
                final.shapes,
                old=final.bodies[edit.name],
                new=final.bodies[edit.name],
                usage=edited.usage,
            )
        )
        & BORDER_CODES
        for edit in ordered
        if edit.name in final.bodies
    }


def _made(
    edited: EditedQueues,
    number: int,
    edit: QueueEdit,
    now: float,
    accepted: Collection[str] | None,
) -> PlannedStep | None:
    """Apply an edit; return None, with everything as before, if it breaks a rule.

    Parameters
    ----------
    accepted : rules of the border that it may break; None: it is applied in any case
    """
    old, errors, warnings = edited.bodies.get(edit.name), [*edited.errors], [*edited.warnings]
    edited.apply(number, edit, now)
    codes = {finding.code for finding in edited.warnings[len(warnings) :]}
    if accepted is not None and (
        len(edited.errors) > len(errors) or codes & BORDER_CODES - set(accepted)
    ):
        edited.errors, edited.warnings = errors, warnings
        edited.put(edit.name, old)
        return None
    after = fields_of(edited.bodies.get(edit.name))
    return PlannedStep(edit=edit, before=fields_of(old), after=after)


def _number_of(finding: Finding) -> int:
    """Return the number of the edit that a finding is about; its pointer begins with /queues/NUMBER."""
    return int(finding.pointer.split("/")[2])


def _excess(body: Body, usage: Usage) -> dict[str, float]:
    limits = read_queue(body)[0].limit
    return {
        resource: usage.allocated.get(resource, 0.0) - limit
        for resource, limit in limits.items()
        if limit not in (None, UNLIMITED) and usage.allocated.get(resource, 0.0) > limit + TOLERANCE
    }


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
        head, *key_parts = difference.pointer[1:].split("/")
        if key_parts:
            edit.setdefault(head, {})[key_of_part("/".join(key_parts))] = difference.after
        else:
            edit[head] = difference.after
    return edit


def edit_between(name: str, before: Body | None, after: Body) -> QueueEdit:
    """Return the edit that makes the fields of a queue those of `after`; None before is a queue to create."""
    target = fields_of(after)
    if before is None:
        return QueueEdit(name=name, action="create", edit=edit_to_create(target))
    return QueueEdit(name=name, edit=edit_to(fields_of(before), target))


def edit_to_create(target: Fields) -> Fields:
    """Return the edit that creates a queue with exactly these fields."""
    start = edits.flat(edits.new_queue("new"))
    return edit_to(start, target)


# ---------------------------------------------------------------------------------------------- order


def in_safe_order(
    queues: Mapping[str, Body], tree: hierarchy.Tree, queue_edits: Sequence[QueueEdit]
) -> list[QueueEdit]:
    """Return the edits in an order in which no intermediate state breaks a rule that the last one keeps."""
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
        return ["f:metadata", "f:labels", f"f:{key_of_part(rest[0])}"]
    if head in OPTION_FIELDS:
        return option_path(head)
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

"""The policies about changes of queues: read, edited, and the rule that says which change needs approval."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from django.db import transaction

from queues.editing import edits
from queues.editing.audit_entries import record
from queues.editing.edits import Difference
from queues.editing.write_requests import Body, WriteRequest, refuse_stale
from queues.errors import ApprovalNeededError
from queues.models import ApprovalRule, AuditAction, AuditKind, ChangePolicy
from queues.tree.unlimited import UNLIMITED_WORD

Fields = Mapping[str, Any]
#: Name in REST -> column.
COLUMNS = {"belowUse": "below_use", "approval": "approval"}
#: The beginnings of pointers to fields that take room or time from work, whichever way they change.
SENSITIVE = ("/parent", "/gpuModels", "/maxRunTime")


def change_policy() -> ChangePolicy:
    """Return the policies that hold."""
    return ChangePolicy.objects.first() or ChangePolicy()


def edit_policy(values: Mapping[str, str], request: WriteRequest) -> ChangePolicy:
    """Set some of the policies, by their names in REST; the audit log keeps the values before.

    Raises
    ------
    StaleRowError : the tag of the request is another one
    """
    with transaction.atomic():
        ChangePolicy.objects.get_or_create(only=True)
        policy = ChangePolicy.objects.select_for_update().get(only=True)
        refuse_stale(
            request, policy, tag_of(policy), "the policies have changed since you read them"
        )
        diff = []
        for name, value in values.items():
            before = getattr(policy, COLUMNS[name])
            if before != value:
                diff.append(Difference(f"/{name}", before, value))
                setattr(policy, COLUMNS[name], value)
        if diff:
            policy.save()
            record(AuditKind.POLICY, AuditAction.UPDATE, "changes", request, diff=diff)
    return policy


def tag_of(policy: ChangePolicy) -> str:
    """Return the edit tag: the values themselves, which are few."""
    return "-".join(getattr(policy, column) for column in COLUMNS.values())


def needs_approval(rule: str, before: Fields, after: Fields) -> bool:
    """Return whether an edit of one queue needs approval.

    Parameters
    ----------
    before, after : its editable fields by JSON pointer, as `edits.flat` returns them; empty without the queue
    """
    if rule == ApprovalRule.NONE or before == after:
        return False
    return rule == ApprovalRule.ALL or _takes(before, after)


def refuse_unapproved(name: str, before: Body | None, after: Body | None) -> None:
    """Raise ApprovalNeededError if an edit of one queue, made without a change set, needs approval."""
    old_fields, new_fields = (edits.flat(body) if body else {} for body in (before, after))
    if needs_approval(change_policy().approval, old_fields, new_fields):
        raise ApprovalNeededError(
            f"this edit of queue '{name}' needs the approval of another admin: put it into a change set"
            " and request approval"
        )


def _takes(before: Fields, after: Fields) -> bool:
    """Return whether work that runs or waits in the queue may lose something by the edit."""
    if not before:
        return False
    if not after:
        return True
    changed = {
        pointer
        for pointer in before.keys() | after.keys()
        if before.get(pointer) != after.get(pointer)
    }
    return any(
        pointer.startswith(SENSITIVE)
        or _is_lowered(pointer, before.get(pointer), after.get(pointer))
        for pointer in changed
    )


def _is_lowered(pointer: str, before: object, after: object) -> bool:
    # What is left out guarantees nothing and caps nothing.
    if pointer.startswith("/quota/"):
        return _amount(after, 0.0) < _amount(before, 0.0)
    if pointer.startswith("/limit/"):
        return _amount(after, math.inf) < _amount(before, math.inf)
    return False


def _amount(value: object, if_absent: float) -> float:
    if value == UNLIMITED_WORD:
        return math.inf
    return float(value) if isinstance(value, int | float) else if_absent

"""Change sets as REST shows them, and the refusal of a plan with errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils import timezone

from kaiweb.api.errors import Problem
from kaiweb.items.amounts import timestamp
from kaiweb.models import ChangeSet, ChangeSetState
from kaiweb.planning import change_sets, drains
from kaiweb.planning.plan import Body, Plan, difference_of
from queues.tree.shape import Finding


def refuse_errors(plan: Plan) -> None:
    """Raise a Problem if the plan has errors."""
    if not plan.errors:
        return
    entries = [finding.as_dict() for finding in plan.errors]
    is_owned = all(finding.code == "field-owned" for finding in plan.errors)
    detail = "; ".join(finding.message for finding in plan.errors)
    raise Problem("field-owned" if is_owned else "hierarchy", detail, errors=entries)


def change_item(row: ChangeSet, queues: dict[str, Body]) -> dict[str, Any]:
    """Return a change set with what it would change now, or the steps that were made."""
    is_open = row.state in (
        *change_sets.EDITABLE,
        ChangeSetState.REQUESTED,
        ChangeSetState.APPROVED,
    )
    plan = change_sets.plan_of(row, queues, timezone.now()) if is_open else Plan(steps=())
    drain = drains.drain_of(plan)
    return {
        **change_summary(row),
        "policy": row.policy,
        "policies": row.policies,
        "needsApproval": is_open and change_sets.lacks_approval(row, plan),
        "edits": row.edits,
        "plan": plan_entries(plan),
        "errors": finding_entries(plan.errors),
        "warnings": finding_entries((*plan.warnings, *drains.warnings_of(drain))),
        "drains": drain.as_items() if is_open else row.drained,
        "stale": change_sets.stale_queues(row, queues) if is_open else [],
        "steps": [
            {
                "number": step.number,
                "queue": step.queue,
                "action": step.action,
                "state": step.state,
                "error": step.error or None,
                "diff": [item.as_dict() for item in difference_of(step.before, step.after)],
            }
            for step in row.steps.all()
        ],
    }


def plan_entries(plan: Plan) -> list[dict[str, Any]]:
    """Return the steps of a plan: queue, action and fields before and after."""
    return [
        {
            "queue": step.edit.name,
            "action": step.edit.action,
            "diff": [difference.as_dict() for difference in step.diff],
        }
        for step in plan.steps
    ]


def finding_entries(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Return findings as REST shows them."""
    return [finding.as_dict() for finding in findings]


def change_summary(row: ChangeSet) -> dict[str, Any]:
    """Return a change set without its plan and steps."""
    return {
        "id": row.pk,
        "title": row.title,
        "reason": row.reason,
        "author": row.author.get_username(),
        "state": row.state,
        "queues": [edit["name"] for edit in row.edits],
        "createdAt": timestamp(row.created_at),
        "changedAt": timestamp(row.changed_at),
        "decidedBy": row.decided_by.get_username() if row.decided_by else None,
        "preview": row.preview_id,
        "reverts": row.reverts_id,
        "error": row.error or None,
    }

"""Change sets: store edits of queues, apply them step by step, roll back what was done when a step fails.

Each step is a row that is written before the cluster is. A process that dies half-way leaves the set `applying`;
`settle` finds it and rolls the steps back, newest first. Every write of a queue, also of a roll-back, is in the
audit log with a reason that names the change set.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from kaiweb.models import ChangeSet, ChangeSetState, ChangeStep, ChangeStepState
from kaiweb.planning import drains
from kaiweb.planning.drains import Drain
from kaiweb.planning.plan import (
    Body,
    Plan,
    Policy,
    edit_to,
    edit_to_create,
    fields_of,
    make_plan,
)
from kube.errors import KubeError, ServerError
from kube.gateway import Gateway
from kube.resources import QUEUES
from queues import selectors, services
from queues.access.rights import Grant, Rights
from queues.editing.bodies import read_or_none
from queues.editing.policies import change_policy, needs_approval
from queues.editing.tags import tag_of_body
from queues.editing.write_requests import WriteRequest
from queues.errors import ApprovalNeededError, MissingRightError, QueuesError
from queues.models import Role
from queues.tree import hierarchy
from queues.tree.shape import QueueShape, shapes_of
from scheduler.tools.simulate.what_if.question import QueueEdit

log = logging.getLogger(__name__)

EDITABLE = (ChangeSetState.DRAFT, ChangeSetState.REJECTED)
APPLICABLE = (*EDITABLE, ChangeSetState.APPROVED)
#: A set that is `applying` for longer without a step has lost its process.
LOST_AFTER = timedelta(seconds=60)
FAILURES = (QueuesError, KubeError)
PREVIEW_CYCLES = 2


class StateError(Exception):
    """The change set is in a state that does not allow this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who applies a change set, and when."""

    rights: Rights
    now: datetime
    request_id: str = ""


def live_queues(gateway: Gateway) -> dict[str, Body]:
    """Return the bodies of the cluster's queues by name."""
    return {body["metadata"]["name"]: body for body in gateway.list(QUEUES, as_type=dict).items}


def tags_of(queues: dict[str, Body], edits: Sequence[QueueEdit]) -> dict[str, str]:
    """Return the edit tags of the edited queues; "" for a queue that does not exist."""
    return {
        edit.name: tag_of_body(queues[edit.name]) if edit.name in queues else "" for edit in edits
    }


def edits_of(change_set: ChangeSet) -> list[QueueEdit]:
    """Return the stored edits."""
    return [QueueEdit(**edit) for edit in change_set.edits]


def plan_of(change_set: ChangeSet, queues: dict[str, Body], now: datetime) -> Plan:
    """Return what the change set would do now."""
    return make_plan(
        queues,
        edits_of(change_set),
        usage=selectors.usage(),
        policy=Policy(change_set.policy, change_set.policies),
        now=now.timestamp(),
    )


def stale_queues(change_set: ChangeSet, queues: dict[str, Body]) -> list[str]:
    """Return the queues that were edited since the change set was written."""
    current = tags_of(queues, edits_of(change_set))
    return sorted(name for name, tag in current.items() if change_set.tags.get(name) != tag)


def move_to(
    change_set: ChangeSet, state: ChangeSetState, allowed: Sequence[ChangeSetState], now: datetime
) -> None:
    """Change the state, unless a concurrent request has changed it already.

    Raises
    ------
    StateError : the present state is not among those allowed
    """
    rows = ChangeSet.objects.filter(pk=change_set.pk, state__in=allowed)
    if not rows.update(state=state, changed_at=now):
        change_set.refresh_from_db()
        raise _wrong_state(change_set, allowed)
    change_set.state, change_set.changed_at = state, now


@contextmanager
def edited_draft(change_set: ChangeSet, now: datetime) -> Iterator[None]:
    """Open a transaction in which a draft is edited or deleted, as it is stored now.

    An apply that begins meanwhile waits for the end of the transaction. So neither writes the state of the other back.

    Raises
    ------
    StateError : it is no draft, for instance because it is being applied
    """
    with transaction.atomic():
        move_to(change_set, ChangeSetState.DRAFT, EDITABLE, now)
        change_set.refresh_from_db()
        yield


def require_state(change_set: ChangeSet, allowed: Sequence[ChangeSetState]) -> None:
    """Raise StateError if the state is not among those allowed."""
    if change_set.state not in allowed:
        raise _wrong_state(change_set, allowed)


def _wrong_state(change_set: ChangeSet, allowed: Sequence[ChangeSetState]) -> StateError:
    expected = ", ".join(item.value for item in allowed)
    return StateError(f"{change_set}: expected it to be {expected}, it is {change_set.state}")


def apply(gateway: Gateway, change_set: ChangeSet, plan: Plan, caller: Caller) -> None:
    """Write the steps of a plan; on a failure undo those that were made.

    Raises
    ------
    StateError : it is being applied already, or was
    kube.errors.KubeError, QueuesError : a step failed; the steps before it were undone where possible
    """
    with transaction.atomic():
        move_to(change_set, ChangeSetState.APPLYING, APPLICABLE, caller.now)
        change_set.steps.all().delete()
        steps = ChangeStep.objects.bulk_create(
            ChangeStep(
                change_set=change_set,
                number=number,
                queue=step.edit.name,
                action=step.edit.action,
                before=step.before,
                after=step.after,
            )
            for number, step in enumerate(plan.steps, start=1)
        )
    for step, planned in zip(steps, plan.steps, strict=True):
        _go_on(change_set)
        _note(step, ChangeStepState.STARTED)
        try:
            _write(gateway, change_set, planned.edit, caller)
            _note(step, ChangeStepState.DONE)
        except FAILURES as error:
            # After an error of the server, the write may have been made.
            is_open = isinstance(error, ServerError)
            state = ChangeStepState.STARTED if is_open else ChangeStepState.FAILED
            _note(step, state, str(error))
            roll_back(gateway, change_set, caller, str(error))
            raise
    move_to(change_set, ChangeSetState.APPLIED, (ChangeSetState.APPLYING,), caller.now)


def preview_question(change_set: ChangeSet, drain: Drain) -> dict[str, Any]:
    """Return the simulation of two cycles after a change, without the workloads that it drains."""
    removed = [row.key for row in drain.rows]
    return {
        "queues": change_set.edits,
        "workloads": {"remove": removed},
        "cycles": PREVIEW_CYCLES,
    }


def require_rights(queues: dict[str, Body], plan: Plan, rights: Rights) -> None:
    """Refuse a plan before its first write if the caller may not make one of its steps.

    Raises
    ------
    MissingRightError
    """
    before = shapes_of(queues.values())
    after = dict(before)
    for step in plan.steps:
        parent = str(step.after.get("/parent") or "")
        after[step.edit.name] = QueueShape(name=step.edit.name, parent=parent)
    for step in plan.steps:
        name, parent = step.edit.name, after[step.edit.name].parent
        if name in before and not rights.may_edit(hierarchy.ancestors(before, name)):
            text = f"changing queue '{name}' needs the right 'edit' on a queue above it"
            raise MissingRightError(text)
        is_placed = step.edit.action != "delete" and (
            name not in before or before[name].parent != parent
        )
        if is_placed and not rights.may_place_under(hierarchy.ancestors(after, parent)):
            raise MissingRightError(f"placing queue '{name}' needs the right 'edit' on its parent")


def lacks_approval(change_set: ChangeSet, plan: Plan) -> bool:
    """Return whether by the policies an admin other than the author must approve the change first."""
    is_approved_by_another = (
        change_set.state == ChangeSetState.APPROVED
        and change_set.decided_by_id != change_set.author_id
    )
    rule = change_policy().approval
    return not is_approved_by_another and any(
        needs_approval(rule, step.before, step.after) for step in plan.steps
    )


def require_approval(change_set: ChangeSet, plan: Plan) -> None:
    """Raise ApprovalNeededError if the policies ask for an approval that is missing."""
    if lacks_approval(change_set, plan):
        raise ApprovalNeededError(
            "this change needs the approval of another admin: request it for a change set with these edits"
        )


def require_drain(drain: Drain, caller: Caller) -> None:
    """Raise MissingRightError if the caller may not requeue what is to be drained."""
    tree = selectors.tree()
    for row in drain.rows:
        if not caller.rights.may_act_on_work_in(hierarchy.ancestors(tree, row.queue)):
            raise MissingRightError(f"draining needs the right to requeue '{row.key}'")


def drain(gateway: Gateway, change_set: ChangeSet, plan: Drain, caller: Caller) -> None:
    """Requeue what the applied change drains, and store it."""
    if not plan.rows:
        return
    request = _request(change_set, caller, "drained")
    change_set.drained = drains.carry_out(gateway, plan, request)
    change_set.save(update_fields=["drained"])


def _go_on(change_set: ChangeSet) -> None:
    """Show that the set is still being applied.

    Raises
    ------
    StateError : `settle` took this process for dead and has rolled the set back
    """
    rows = ChangeSet.objects.filter(pk=change_set.pk, state=ChangeSetState.APPLYING)
    if not rows.update(changed_at=timezone.now()):
        raise StateError(f"{change_set} was rolled back meanwhile, because it took too long")


def _note(step: ChangeStep, state: ChangeStepState, error: str = "") -> None:
    step.state, step.error = state, error
    step.save(update_fields=["state", "error"])


def _write(gateway: Gateway, change_set: ChangeSet, edit: QueueEdit, caller: Caller) -> None:
    tag = change_set.tags.get(edit.name, "")
    request = _request(change_set, caller, change_set.reason, tag)
    match edit.action:
        case "create":
            services.queue_create(gateway, name=edit.name, edit=edit.edit, request=request)
        case "delete":
            services.queue_delete(gateway, name=edit.name, request=request)
        case "replace":
            services.queue_replace(gateway, name=edit.name, edit=edit.edit, request=request)
        case _:
            services.queue_update(gateway, name=edit.name, edit=edit.edit, request=request)


def _request(change_set: ChangeSet, caller: Caller, why: str, tag: str = "") -> WriteRequest:
    return WriteRequest(
        rights=caller.rights,
        now=caller.now,
        expected_tag=tag,
        is_planned=True,
        reason=f"{change_set}: {why}"[:1024],
        request_id=caller.request_id,
    )


def roll_back(gateway: Gateway, change_set: ChangeSet, caller: Caller, why: str) -> None:
    """Undo the steps that were made, newest first; the set ends `rolledBack`, or `stuck` if one cannot be undone."""
    state = ChangeSetState.ROLLED_BACK
    written = (ChangeStepState.DONE, ChangeStepState.STARTED)
    for step in change_set.steps.filter(state__in=written).order_by("-number"):
        try:
            if _undo(gateway, step, _request(change_set, caller, f"rolled back, because {why}")):
                _note(step, ChangeStepState.UNDONE, step.error)
        except FAILURES as error:
            log.warning("%s cannot be undone: %s", step, error)
            _note(step, ChangeStepState.FAILED, f"cannot be undone: {error}")
            state = ChangeSetState.STUCK
    change_set.error = why
    change_set.save(update_fields=["error"])
    move_to(change_set, state, (ChangeSetState.APPLYING,), caller.now)


def _undo(gateway: Gateway, step: ChangeStep, request: WriteRequest) -> bool:
    """Undo one step as far as it was made; return whether anything was undone.

    Only the fields that the step changed are set back, and only those that still have its value.
    """
    current = read_or_none(gateway, step.queue)
    if step.action == "create":
        is_ours = current is not None and fields_of(current) == step.after
        if is_ours:
            services.queue_delete(gateway, name=step.queue, request=request)
        return is_ours
    if step.action == "delete":
        if current is None:
            edit = edit_to_create(step.before)
            services.queue_create(gateway, name=step.queue, edit=edit, request=request)
        return current is None
    now = fields_of(current)
    target = dict(now)
    for pointer in step.before.keys() | step.after.keys():
        old, new = step.before.get(pointer), step.after.get(pointer)
        if old == new or now.get(pointer) != new:
            continue
        if old is None:
            target.pop(pointer, None)
        else:
            target[pointer] = old
    edit = edit_to(now, target)
    if edit:
        services.queue_update(gateway, name=step.queue, edit=edit, request=request)
    return bool(edit)


def settle(gateway: Gateway, now: datetime) -> int:
    """Roll back the change sets whose process has ended half-way; return how many."""
    abandoned = ChangeSet.objects.filter(
        state=ChangeSetState.APPLYING, changed_at__lt=now - LOST_AFTER
    )
    settled = 0
    for change_set in abandoned:
        rights = Rights(
            username="kaiweb", display_name="kaiweb", kind="session", grants=(Grant(Role.ADMIN),)
        )
        roll_back(
            gateway,
            change_set,
            Caller(rights=rights, now=now),
            "the process that applied it ended half-way",
        )
        settled += 1
    return settled


def reverse(
    change_set: ChangeSet, author_id: int, now: datetime, queues: dict[str, Body]
) -> ChangeSet:
    """Create the draft that undoes an applied change set.

    Raises
    ------
    StateError : it was not applied
    """
    if change_set.state != ChangeSetState.APPLIED:
        raise StateError(f"{change_set}: expected it to be applied, it is {change_set.state}")
    edits: list[dict[str, Any]] = []
    for step in change_set.steps.order_by("-number"):
        if step.action == "create":
            edits.append({"name": step.queue, "action": "delete", "edit": {}})
        elif step.action == "delete":
            edit = edit_to_create(step.before)
            edits.append({"name": step.queue, "action": "create", "edit": edit})
        else:
            edit = edit_to(step.after, step.before)
            edits.append({"name": step.queue, "action": "update", "edit": edit})
    return ChangeSet.objects.create(
        author_id=author_id,
        title=f"Undo: {change_set.title}"[:200],
        reason=f"undo of {change_set}",
        edits=edits,
        tags=tags_of(queues, [QueueEdit(**edit) for edit in edits]),
        reverts=change_set,
        created_at=now,
        changed_at=now,
    )

"""Writes to queues: check the tree, check the rights, then patch the cluster with a version precondition.

The database is not written here (except the note of who did what): the change comes back through the
watch, as every other change does. What the caller may and may not do is decided against the cluster's
own list of queues, not against the mirror, which may be a moment behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from kube.errors import ConflictError, NotFoundError
from kube.gateway import Gateway, PatchType
from kube.resources import QUEUES
from queues import edits, hierarchy, selectors
from queues.edits import Difference
from queues.errors import (
    FieldOwnedError,
    HierarchyError,
    MissingRightError,
    StaleQueueError,
    UnknownQueueError,
)
from queues.models import QuotaChange
from queues.rights import Rights
from queues.shape import Finding, QueueShape, Severity, read_queue

FIELD_MANAGER = "kaiweb"
# Warnings for admins, limits for those who rule a subtree only.
BORDER_CODES = frozenset({"children-over-parent", "limit-over-parent"})

Body = dict[str, Any]
Tree = dict[str, QueueShape]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Who asks for a write, and how it is to be done.

    Attributes
    ----------
    expected_version : the version the caller has read; empty if the call needs none
    """

    rights: Rights
    now: datetime
    expected_version: str = ""
    dry_run: bool = False
    reason: str = ""
    request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a write: the object as it is (or would be) now."""

    body: Body
    warnings: Sequence[Finding] = ()
    diff: Sequence[Difference] = field(default_factory=tuple)
    is_written: bool = False


def queue_create(gateway: Gateway, *, name: object, edit: object, order: Order) -> Outcome:
    """Create a queue.

    Raises
    ------
    HierarchyError, MissingRightError, kube.errors.KubeError
    """
    body, faults = edits.apply(edits.new_queue(name), edit)
    tree = _tree(gateway)
    _require_place(tree, read_queue(body)[0].parent, order)
    found = _judge(tree, None, body, faults, order)
    written = gateway.create(QUEUES, body, dry_run=order.dry_run)
    outcome = Outcome(
        body=written,
        warnings=hierarchy.warnings(found),
        diff=edits.differences(None, written),
        is_written=not order.dry_run,
    )
    _note("create", outcome, order, before="")
    return outcome


def queue_update(gateway: Gateway, *, name: str, edit: object, order: Order) -> Outcome:
    """Change the fields that the edit names.

    Raises
    ------
    UnknownQueueError, StaleQueueError, HierarchyError, MissingRightError, kube.errors.KubeError
    """
    current = queue_read(gateway, name)
    body, faults = edits.apply(current, edit)
    return _write(gateway, current, body, faults, order)


def queue_replace(gateway: Gateway, *, name: str, edit: object, order: Order) -> Outcome:
    """Make the queue's editable fields exactly those of the edit.

    Raises
    ------
    the same as `queue_update`
    """
    current = queue_read(gateway, name)
    bare = edits.bare_queue(name, current["metadata"])
    body, faults = edits.apply(bare, edit)
    return _write(gateway, current, body, faults, order)


def queue_apply(
    gateway: Gateway, *, name: str, edit: object, manager: str, force: bool, order: Order
) -> Outcome:
    """State the wanted fields as a field manager (server-side apply); repeating it changes nothing.

    Raises
    ------
    FieldOwnedError : another manager owns a field and `force` is off
    the others of `queue_update`
    """
    current = _read_or_none(gateway, name)
    _require_version(name, current, order)
    bare = edits.bare_queue(name, {})
    del bare["metadata"]["labels"]  # an applied empty map would own every label
    wanted, faults = edits.apply(bare, edit)
    tree = _tree(gateway)
    _refuse_faults(faults)
    applied = _apply(gateway, name, wanted, manager, force=force, dry_run=True)
    if current is None:
        _require_place(tree, read_queue(applied)[0].parent, order)
    else:
        _require_edit(tree, current, applied, order)
    found = _judge(tree, current, applied, (), order)
    diff = edits.differences(current, applied)
    if not order.dry_run:
        applied = _apply(gateway, name, wanted, manager, force=force, dry_run=False)
    outcome = Outcome(
        body=applied,
        warnings=hierarchy.warnings(found),
        diff=diff,
        is_written=bool(diff) and not order.dry_run,
    )
    action = "create" if current is None else "update"
    _note(action, outcome, order, before=_version(current) if current else "")
    return outcome


def queue_delete(gateway: Gateway, *, name: str, order: Order) -> Outcome:
    """Delete a queue that has no children.

    Raises
    ------
    the same as `queue_update`
    """
    current = queue_read(gateway, name)
    _require_version(name, current, order)
    tree = _tree(gateway)
    _require_edit(tree, current, current, order)
    found = hierarchy.check(tree, old=current, new=None, usage=selectors.usage())
    _refuse_faults(hierarchy.errors(found))
    if not order.dry_run:
        try:
            gateway.delete(QUEUES, name, resource_version=_version(current))
        except ConflictError as error:
            raise _stale(gateway, name, current) from error
    outcome = Outcome(
        body=current, warnings=hierarchy.warnings(found), is_written=not order.dry_run
    )
    _note("delete", outcome, order, before=_version(current))
    return outcome


def queue_read(gateway: Gateway, name: str) -> Body:
    """Return the queue as the cluster has it.

    Raises
    ------
    UnknownQueueError
    """
    current = _read_or_none(gateway, name)
    if current is None:
        raise UnknownQueueError(name)
    return current


def _read_or_none(gateway: Gateway, name: str) -> Body | None:
    try:
        return gateway.get(QUEUES, name, as_type=dict)
    except NotFoundError:
        return None


def _write(
    gateway: Gateway, current: Body, body: Body, faults: Sequence[Finding], order: Order
) -> Outcome:
    name = current["metadata"]["name"]
    _require_version(name, current, order)
    tree = _tree(gateway)
    _require_edit(tree, current, body, order)
    found = _judge(tree, current, body, faults, order)
    diff = edits.differences(current, body)
    warnings = hierarchy.warnings(found)
    if not diff:
        return Outcome(body=current, warnings=warnings)
    patch = edits.merge_patch(
        {"spec": current.get("spec") or {}, "metadata": _labels(current)},
        {"spec": body["spec"], "metadata": _labels(body)},
    )
    patch.setdefault("metadata", {})["resourceVersion"] = _version(current)
    try:
        written = gateway.patch(
            QUEUES, name, patch, field_manager=FIELD_MANAGER, dry_run=order.dry_run
        )
    except ConflictError as error:
        raise _stale(gateway, name, current) from error
    outcome = Outcome(body=written, warnings=warnings, diff=diff, is_written=not order.dry_run)
    _note("update", outcome, order, before=_version(current))
    return outcome


def _labels(body: Mapping[str, Any]) -> Body:
    return {"labels": body["metadata"].get("labels") or {}}


def _apply(
    gateway: Gateway, name: str, wanted: Body, manager: str, *, force: bool, dry_run: bool
) -> Body:
    try:
        return gateway.patch(
            QUEUES,
            name,
            wanted,
            patch_type=PatchType.APPLY,
            field_manager=manager,
            force=force,
            dry_run=dry_run,
        )
    except ConflictError as error:
        raise FieldOwnedError(str(error)) from error


def _tree(gateway: Gateway) -> Tree:
    """Return the cluster's queues as the rules see them."""
    listing = gateway.list(QUEUES, as_type=dict)
    shapes = (read_queue(body)[0] for body in listing.items)
    return {shape.name: shape for shape in shapes if shape.name}


def _judge(
    tree: Tree, old: Body | None, new: Body, faults: Sequence[Finding], order: Order
) -> tuple[Finding, ...]:
    """Return the findings of an edit that may be made.

    Raises
    ------
    HierarchyError : it may not
    """
    usage = selectors.usage()
    found = (*faults, *hierarchy.check(tree, old=old, new=new, usage=usage))
    if not order.rights.is_admin:
        known = hierarchy.check(tree, old=old, new=old, usage=usage) if old is not None else ()
        found = tuple(
            replace(one, severity=Severity.ERROR)
            if one.code in BORDER_CODES and one not in known
            else one
            for one in found
        )
    _refuse_faults(hierarchy.errors(found))
    return found


def _refuse_faults(faults: Sequence[Finding]) -> None:
    if faults:
        raise HierarchyError(faults)


def _require_edit(tree: Tree, old: Body, new: Body, order: Order) -> None:
    before, after = read_queue(old)[0], read_queue(new)[0]
    if not order.rights.may_edit(hierarchy.ancestors(tree, before.name)):
        raise MissingRightError(
            f"changing queue '{before.name}' needs the right 'edit' on a queue above it"
        )
    if before.parent != after.parent:
        _require_place(tree, after.parent, order)


def _require_place(tree: Tree, parent: str, order: Order) -> None:
    if not order.rights.may_place_under(hierarchy.ancestors(tree, parent)):
        where = f"below '{parent}'" if parent else "at the top of the tree"
        raise MissingRightError(f"placing a queue {where} needs the right 'edit' there")


def _require_version(name: str, current: Body | None, order: Order) -> None:
    if not order.expected_version:
        return
    if current is None:
        raise UnknownQueueError(name)
    if order.expected_version != _version(current):
        raise StaleQueueError(name, given=order.expected_version, current=_version(current))


def _stale(gateway: Gateway, name: str, read: Body) -> StaleQueueError:
    current = queue_read(gateway, name)
    return StaleQueueError(name, given=_version(read), current=_version(current))


def _version(body: Mapping[str, Any]) -> str:
    return str(body["metadata"].get("resourceVersion", ""))


def _note(action: str, outcome: Outcome, order: Order, *, before: str) -> None:
    if not outcome.is_written:
        return
    QuotaChange.objects.create(
        queue=outcome.body["metadata"]["name"],
        action=action,
        actor=order.rights.username,
        at=order.now,
        diff=[one.as_dict() for one in outcome.diff],
        reason=order.reason,
        request_id=order.request_id,
        version_before=before,
        version_after="" if action == "delete" else _version(outcome.body),
    )

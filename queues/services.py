"""Writes to queues: check the tree, check the rights, note the intent, then patch the cluster.

The database is not written here (except the note of who did what, `queues.audit`): the change comes back
through the watch, as every other change does. What the caller may and may not do is decided against the
cluster's own list of queues, not against the mirror, which may be a moment behind.

Two versions are at work. The caller names the edit tag it has read, which status writes leave alone; the patch
carries the resourceVersion read just before, and is made anew when a status write came between. Edits that
change the shape of the tree run one at a time (`queues.structure`) and look at the tree again afterwards.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from kube.errors import ConflictError, KubeError, NotFoundError, ServerError
from kube.gateway import Gateway, PatchType
from kube.resources import QUEUES
from queues import audit, edits, hierarchy, selectors, structure
from queues.errors import (
    BusyError,
    FieldOwnedError,
    HierarchyError,
    MissingRightError,
    QueuesError,
    StaleQueueError,
    UnknownQueueError,
)
from queues.orders import Body, Order, Outcome
from queues.shape import NAME_PATTERN, Finding, QueueShape, Severity, read_queue
from queues.tags import tag_of_body

log = logging.getLogger(__name__)

FIELD_MANAGER = "kaiweb"
# Warnings for admins, limits for those who rule a subtree only.
BORDER_CODES = frozenset({"children-over-parent", "limit-over-parent"})
# Status writes come a few times a second at most; each costs one try.
TRIES = 8
UNRECORDED = Finding(
    pointer="",
    code="audit-pending",
    message="the change is made; the database did not take its entry in the change log, which will follow",
    severity=Severity.WARNING,
)

Tree = dict[str, QueueShape]


def queue_create(gateway: Gateway, *, name: object, edit: object, order: Order) -> Outcome:
    """Create a queue.

    Raises
    ------
    HierarchyError, MissingRightError, BusyError, kube.errors.KubeError, django.db.DatabaseError
    """
    body, faults = edits.apply(edits.new_queue(name), edit)
    parent = read_queue(body)[0].parent
    with _one_at_a_time(gateway, order, is_structural=bool(parent)):
        tree = _tree(gateway)
        _require_place(tree, parent, order)
        findings = _judge(tree, None, body, faults, order)

        def write() -> Body:
            written = gateway.create(QUEUES, body, dry_run=order.dry_run)
            if parent and not order.dry_run:
                _keep_sound(gateway, None, written)
            return written

        return _carry_out("create", None, body, findings, order, write)


def queue_update(gateway: Gateway, *, name: str, edit: object, order: Order) -> Outcome:
    """Change the fields that the edit names.

    Raises
    ------
    UnknownQueueError, StaleQueueError, and those of `queue_create`
    """
    return _edit(gateway, name, order, lambda current: edits.apply(current, edit))


def queue_replace(gateway: Gateway, *, name: str, edit: object, order: Order) -> Outcome:
    """Make the queue's editable fields exactly those of the edit.

    Raises
    ------
    the same as `queue_update`
    """
    return _edit(
        gateway,
        name,
        order,
        lambda current: edits.apply(edits.bare_queue(name, current["metadata"]), edit),
    )


def queue_apply(
    gateway: Gateway, *, name: str, edit: object, manager: str, force: bool, order: Order
) -> Outcome:
    """State the wanted fields as a field manager (server-side apply); repeating it changes nothing.

    Raises
    ------
    FieldOwnedError : another manager owns a field and `force` is off
    the others of `queue_update`
    """
    bare = edits.bare_queue(name, {})
    del bare["metadata"]["labels"]  # an applied empty map would own every label
    wanted, faults = edits.apply(bare, edit)
    _refuse_faults((*faults, *_name_faults(wanted)))
    parent = wanted["spec"].get("parentQueue")

    def once() -> Outcome:
        current = _read_or_none(gateway, name)
        is_structural = parent is not None and parent != _parent(current)
        with _one_at_a_time(gateway, order, is_structural=is_structural):
            if is_structural:
                current = _read_or_none(gateway, name)
            return _apply(gateway, current, wanted, manager, force=force, order=order)

    return _until_undisturbed(name, once)


def queue_delete(gateway: Gateway, *, name: str, order: Order) -> Outcome:
    """Delete a queue that has no children.

    Raises
    ------
    the same as `queue_update`
    """

    def once() -> Outcome:
        with _one_at_a_time(gateway, order, is_structural=True):
            current = queue_read(gateway, name)
            _require_version(name, current, order)
            tree = _tree(gateway)
            _require_edit(tree, current, current, order)
            findings = hierarchy.check(tree, old=current, new=None, usage=selectors.usage())
            _refuse_faults(hierarchy.errors(findings))

            def write() -> Body:
                if not order.dry_run:
                    gateway.delete(QUEUES, name, resource_version=_version(current))
                    _keep_children(gateway, current)
                return current

            return _carry_out("delete", current, None, findings, order, write)

    return _until_undisturbed(name, once)


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
    if not NAME_PATTERN.fullmatch(name):
        return None  # no object can have it, and it must not become part of an address
    try:
        return gateway.get(QUEUES, name, as_type=dict)
    except NotFoundError:
        return None


def _edit(
    gateway: Gateway,
    name: str,
    order: Order,
    make: Callable[[Body], tuple[Body, Sequence[Finding]]],
) -> Outcome:
    """Write what `make` makes of the current queue."""

    def once() -> Outcome:
        current = queue_read(gateway, name)
        body, faults = make(current)
        is_move = _parent(body) != _parent(current)
        with _one_at_a_time(gateway, order, is_structural=is_move):
            if is_move:
                current = queue_read(gateway, name)
                body, faults = make(current)
            return _write(gateway, current, body, faults, order)

    return _until_undisturbed(name, once)


def _write(
    gateway: Gateway, current: Body, body: Body, faults: Sequence[Finding], order: Order
) -> Outcome:
    name = current["metadata"]["name"]
    _require_version(name, current, order)
    tree = _tree(gateway)
    _require_edit(tree, current, body, order)
    findings = _judge(tree, current, body, faults, order)
    if not edits.differences(current, body):
        return Outcome(body=current, warnings=hierarchy.warnings(findings))
    patch = _patch_between(current, body)
    patch.setdefault("metadata", {})["resourceVersion"] = _version(current)

    def write() -> Body:
        written = gateway.patch(
            QUEUES, name, patch, field_manager=FIELD_MANAGER, dry_run=order.dry_run
        )
        if _parent(written) != _parent(current) and not order.dry_run:
            _keep_sound(gateway, current, written)
        return written

    return _carry_out("update", current, body, findings, order, write)


def _apply(
    gateway: Gateway,
    current: Body | None,
    wanted: Body,
    manager: str,
    *,
    force: bool,
    order: Order,
) -> Outcome:
    name = wanted["metadata"]["name"]
    _require_version(name, current, order)
    if order.expected_tag and current is not None:
        metadata = {**wanted["metadata"], "resourceVersion": _version(current)}
        wanted = {**wanted, "metadata": metadata}
    tree = _tree(gateway)
    preview = _server_side_apply(gateway, name, wanted, manager, force=force, dry_run=True)
    if current is None:
        _require_place(tree, _parent(preview), order)
    else:
        _require_edit(tree, current, preview, order)
    findings = _judge(tree, current, preview, (), order)
    is_structural = _parent(preview) != _parent(current)

    def write() -> Body:
        if order.dry_run:
            return preview
        written = _server_side_apply(gateway, name, wanted, manager, force=force, dry_run=False)
        if is_structural:
            _keep_sound(gateway, current, written)
        return written

    if not edits.differences(current, preview):
        return Outcome(body=write(), warnings=hierarchy.warnings(findings))
    action = "create" if current is None else "update"
    return _carry_out(action, current, preview, findings, order, write)


def _server_side_apply(
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
        # The same status says that the object moved on meanwhile, which another try may solve.
        if not force and "Apply failed with" in str(error):
            raise FieldOwnedError(str(error)) from error
        raise


def _carry_out(
    action: str,
    before: Body | None,
    after: Body | None,
    findings: tuple[Finding, ...],
    order: Order,
    write: Callable[[], Body],
) -> Outcome:
    """Note the intent, write, and complete the note.

    Raises
    ------
    django.db.DatabaseError : the intent could not be noted; nothing was written
    kube.errors.ServerError : it may have been written; the intent stays and is settled later
    """
    warnings = hierarchy.warnings(findings)
    diff = edits.differences(before, after or {})
    if order.dry_run:
        return Outcome(body=write(), warnings=warnings, diff=diff, is_change=True)
    metadata = (before or after or {})["metadata"]
    change = audit.intend(action, metadata["name"], order, before=before, diff=diff)
    try:
        written = write()
    except ServerError:
        raise
    except (KubeError, QueuesError):
        audit.withdraw(change)
        raise
    if after is not None:
        diff = edits.differences(before, written)
    is_recorded = audit.complete(change, written if after is not None else None, diff)
    return Outcome(
        body=written,
        warnings=warnings if is_recorded else (*warnings, UNRECORDED),
        diff=diff,
        is_change=True,
        is_written=True,
    )


def _one_at_a_time(
    gateway: Gateway, order: Order, *, is_structural: bool
) -> AbstractContextManager[None]:
    if is_structural and not order.dry_run:
        return structure.lock_of(gateway).held()
    return nullcontext()


def _until_undisturbed(name: str, once: Callable[[], Outcome]) -> Outcome:
    """Try again when the object moved on between read and write; an edit of somebody ends it with `StaleQueueError`."""
    for _attempt in range(TRIES):
        try:
            return once()
        except ConflictError as error:
            log.debug("queue '%s' moved on under an edit: %s", name, error)
    raise BusyError(f"queue '{name}' was written by others {TRIES} times while it was edited")


def _keep_sound(gateway: Gateway, before: Body | None, written: Body) -> None:
    """Look at the tree after a creation or a move, and take it back if it does not hold.

    Raises
    ------
    HierarchyError : it was taken back
    """
    tree = _tree(gateway)
    name = written["metadata"]["name"]
    problem = hierarchy.problem_of(tree, name) if name in tree else ""
    if not problem:
        return
    _take_back(gateway, before, written)
    raise HierarchyError(
        [
            Finding(
                pointer="/parent",
                code="tree-changed",
                message=f"the tree changed under the edit, which was taken back: {problem}",
                given=_parent(written) or None,
            )
        ]
    )


def _take_back(gateway: Gateway, before: Body | None, written: Body) -> None:
    name = written["metadata"]["name"]
    for _attempt in range(TRIES):
        current = _read_or_none(gateway, name)
        if current is None or tag_of_body(current) != tag_of_body(written):
            return  # somebody has edited it since: theirs to judge
        try:
            if before is None:
                gateway.delete(QUEUES, name, resource_version=_version(current))
            else:
                patch = _patch_between(current, before)
                patch.setdefault("metadata", {})["resourceVersion"] = _version(current)
                gateway.patch(QUEUES, name, patch, field_manager=FIELD_MANAGER)
        except ConflictError:
            continue
        return
    log.error("queue '%s': the edit that broke the tree could not be taken back", name)


def _keep_children(gateway: Gateway, deleted: Body) -> None:
    """Make a deleted queue again if somebody else has put a queue below it meanwhile.

    Raises
    ------
    HierarchyError : it was made again
    """
    name = deleted["metadata"]["name"]
    tree = _tree(gateway)
    children = [child for child in hierarchy.children(tree, name) if child != name]
    if not children or name in tree:
        return
    kept = ("name", "labels", "annotations")
    metadata = {key: deleted["metadata"][key] for key in kept if key in deleted["metadata"]}
    gateway.create(QUEUES, {**deleted, "metadata": metadata})
    raise HierarchyError(
        [
            Finding(
                pointer="/name",
                code="has-children",
                message=f"queue '{name}' got child queues [{' '.join(children)}] while it was deleted,"
                " so it was made again",
                given=name,
            )
        ]
    )


def _patch_between(before: Body, after: Body) -> Body:
    return edits.merge_patch(
        {"spec": before.get("spec") or {}, "metadata": _labels(before)},
        {"spec": after.get("spec") or {}, "metadata": _labels(after)},
    )


def _labels(body: Mapping[str, Any]) -> Body:
    return {"labels": body["metadata"].get("labels") or {}}


def _parent(body: Mapping[str, Any] | None) -> str:
    return str(((body or {}).get("spec") or {}).get("parentQueue") or "")


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
    findings = (*faults, *hierarchy.check(tree, old=old, new=new, usage=usage))
    if not order.rights.is_admin:
        known = hierarchy.check(tree, old=old, new=old, usage=usage) if old is not None else ()
        findings = tuple(
            replace(finding, severity=Severity.ERROR)
            if finding.code in BORDER_CODES and finding not in known
            else finding
            for finding in findings
        )
    _refuse_faults(hierarchy.errors(findings))
    return findings


def _refuse_faults(faults: Sequence[Finding]) -> None:
    if faults:
        raise HierarchyError(faults)


def _name_faults(body: Body) -> tuple[Finding, ...]:
    return tuple(finding for finding in read_queue(body)[1] if finding.pointer == "/name")


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
    if not order.expected_tag:
        return
    if current is None:
        raise UnknownQueueError(name)
    if order.expected_tag != tag_of_body(current):
        raise StaleQueueError(name, given=order.expected_tag, current=tag_of_body(current))


def _version(body: Mapping[str, Any]) -> str:
    return str(body["metadata"].get("resourceVersion", ""))

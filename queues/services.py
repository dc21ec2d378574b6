"""Writes to queues: check the tree and the rights, write an audit entry, then patch the cluster.

Only the audit log (`queues.editing.audit`) is written to the database here; the mirror brings the change back
from the watch, like every other change. Tree and rights are checked against the cluster's list of queues, not
against the mirror, which may be behind.

Two versions are used. The caller sends the edit tag it has read, which status writes do not change. The patch
carries the resourceVersion read just before, and is computed again when a status write came in between. Edits that
change the shape of the tree run one at a time (`queues.editing.tree_lock`), and the tree is checked again afterwards.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from kube.errors import ConflictError, KubeError, ServerError
from kube.gateway import Gateway, PatchOptions, PatchType
from kube.resources import QUEUES
from queues import selectors
from queues.editing import audit, edits, tree_lock
from queues.editing.bodies import (
    live_tree,
    parent_of,
    patch_between,
    read_or_none,
    resource_version_of,
)
from queues.editing.judging import judge, name_faults, refuse_faults, require_edit, require_place
from queues.editing.policies import refuse_unapproved
from queues.editing.repair import FIELD_MANAGER, TRIES, recreate_if_parent, undo_if_unsound
from queues.editing.tags import tag_of_body
from queues.editing.write_requests import Body, WriteRequest, WriteResult
from queues.errors import (
    BusyError,
    FieldOwnedError,
    HierarchyError,
    QueuesError,
    StaleQueueError,
    UnknownQueueError,
)
from queues.models import QuotaChange
from queues.tree import hierarchy
from queues.tree.shape import Finding, Severity, read_queue

log = logging.getLogger(__name__)

UNVERIFIED = Finding(
    pointer="/parent",
    code="tree-unverified",
    message="the change was made, but the tree could not be checked again because the cluster did not answer",
    severity=Severity.WARNING,
)
UNRECORDED = Finding(
    pointer="",
    code="audit-pending",
    message="the change was made, but its entry in the audit log could not be completed yet",
    severity=Severity.WARNING,
)


def queue_create(
    gateway: Gateway, *, name: object, edit: object, request: WriteRequest
) -> WriteResult:
    """Create a queue.

    Raises
    ------
    HierarchyError, MissingRightError, BusyError, kube.errors.KubeError, django.db.DatabaseError
    """
    body, faults = edits.apply(edits.new_queue(name), edit)
    parent = read_queue(body)[0].parent
    with _one_at_a_time(gateway, request, is_structural=bool(parent)):
        tree = live_tree(gateway)
        require_place(tree, parent, request)
        findings = judge(tree, None, body, faults, request)

        write = _Write(
            action="create",
            before=None,
            after=body,
            send=lambda: gateway.create(QUEUES, body, dry_run=request.dry_run),
            verify=(lambda written: undo_if_unsound(gateway, None, written)) if parent else None,
        )
        return _carry_out(write, findings, request)


def queue_update(
    gateway: Gateway, *, name: str, edit: object, request: WriteRequest
) -> WriteResult:
    """Change the fields that the edit names.

    Raises
    ------
    UnknownQueueError, StaleQueueError, and those of `queue_create`
    """
    return _edit(gateway, name, request, lambda current: edits.apply(current, edit))


def queue_replace(
    gateway: Gateway, *, name: str, edit: object, request: WriteRequest
) -> WriteResult:
    """Replace the queue's editable fields by those of the edit.

    Raises
    ------
    the same as `queue_update`
    """
    return _edit(
        gateway,
        name,
        request,
        lambda current: edits.apply(edits.bare_queue(name, current["metadata"]), edit),
    )


def queue_apply(
    gateway: Gateway, *, name: str, edit: object, manager: str, force: bool, request: WriteRequest
) -> WriteResult:
    """Apply fields as a field manager (server-side apply); repeating it changes nothing.

    Raises
    ------
    FieldOwnedError : another manager owns a field and `force` is off
    the others of `queue_update`
    """
    bare = edits.bare_queue(name, {})
    del bare["metadata"]["labels"]  # server-side apply of an empty map would own every label
    desired, faults = edits.apply(bare, edit)
    refuse_faults((*faults, *name_faults(desired)))
    parent = desired["spec"].get("parentQueue")

    def attempt() -> WriteResult:
        current = read_or_none(gateway, name)
        is_structural = parent is not None and parent != parent_of(current)
        with _one_at_a_time(gateway, request, is_structural=is_structural):
            if is_structural:
                current = read_or_none(gateway, name)
            return _apply(gateway, current, desired, manager, force=force, request=request)

    return _retry_on_conflict(name, attempt)


def queue_delete(gateway: Gateway, *, name: str, request: WriteRequest) -> WriteResult:
    """Delete a queue that has no children.

    Raises
    ------
    the same as `queue_update`
    """

    def attempt() -> WriteResult:
        with _one_at_a_time(gateway, request, is_structural=True):
            current = queue_read(gateway, name)
            _require_expected_tag(name, current, request)
            tree = live_tree(gateway)
            require_edit(tree, current, current, request)
            findings = hierarchy.check(tree, old=current, new=None, usage=selectors.usage())
            refuse_faults(hierarchy.errors(findings))

            def send() -> Body:
                if not request.dry_run:
                    gateway.delete(QUEUES, name, resource_version=resource_version_of(current))
                return current

            write = _Write(
                action="delete",
                before=current,
                after=None,
                send=send,
                verify=lambda deleted: recreate_if_parent(gateway, deleted),
            )
            return _carry_out(write, findings, request)

    return _retry_on_conflict(name, attempt)


def queue_read(gateway: Gateway, name: str) -> Body:
    """Return a queue of the cluster.

    Raises
    ------
    UnknownQueueError
    """
    current = read_or_none(gateway, name)
    if current is None:
        raise UnknownQueueError(name)
    return current


def _edit(
    gateway: Gateway,
    name: str,
    request: WriteRequest,
    edit_of: Callable[[Body], tuple[Body, Sequence[Finding]]],
) -> WriteResult:
    """Write the body that `edit_of` computes from the current queue."""

    def attempt() -> WriteResult:
        current = queue_read(gateway, name)
        body, faults = edit_of(current)
        is_move = parent_of(body) != parent_of(current)
        with _one_at_a_time(gateway, request, is_structural=is_move):
            if is_move:
                current = queue_read(gateway, name)
                body, faults = edit_of(current)
            return _write(gateway, current, body, faults, request)

    return _retry_on_conflict(name, attempt)


def _write(
    gateway: Gateway, current: Body, body: Body, faults: Sequence[Finding], request: WriteRequest
) -> WriteResult:
    name = current["metadata"]["name"]
    _require_expected_tag(name, current, request)
    tree = live_tree(gateway)
    require_edit(tree, current, body, request)
    findings = judge(tree, current, body, faults, request)
    if not edits.differences(current, body):
        return WriteResult(body=current, warnings=hierarchy.warnings(findings))
    patch = patch_between(current, body)
    patch.setdefault("metadata", {})["resourceVersion"] = resource_version_of(current)

    is_move = parent_of(body) != parent_of(current)
    write = _Write(
        action="update",
        before=current,
        after=body,
        send=lambda: gateway.patch(
            QUEUES,
            name,
            patch,
            options=PatchOptions(field_manager=FIELD_MANAGER, dry_run=request.dry_run),
        ),
        verify=(lambda written: undo_if_unsound(gateway, current, written)) if is_move else None,
    )
    return _carry_out(write, findings, request)


def _apply(
    gateway: Gateway,
    current: Body | None,
    desired: Body,
    manager: str,
    *,
    force: bool,
    request: WriteRequest,
) -> WriteResult:
    name = desired["metadata"]["name"]
    _require_expected_tag(name, current, request)
    if request.expected_tag and current is not None:
        metadata = {**desired["metadata"], "resourceVersion": resource_version_of(current)}
        desired = {**desired, "metadata": metadata}
    tree = live_tree(gateway)
    preview = _server_side_apply(gateway, name, desired, manager, force=force, dry_run=True)
    if current is None:
        require_place(tree, parent_of(preview), request)
    else:
        require_edit(tree, current, preview, request)
    findings = judge(tree, current, preview, (), request)

    def send() -> Body:
        if request.dry_run:
            return preview
        return _server_side_apply(gateway, name, desired, manager, force=force, dry_run=False)

    if not edits.differences(current, preview):
        return WriteResult(body=send(), warnings=hierarchy.warnings(findings))
    is_move = parent_of(preview) != parent_of(current)
    write = _Write(
        action="create" if current is None else "update",
        before=current,
        after=preview,
        send=send,
        verify=(lambda written: undo_if_unsound(gateway, current, written)) if is_move else None,
    )
    return _carry_out(write, findings, request)


def _server_side_apply(
    gateway: Gateway, name: str, desired: Body, manager: str, *, force: bool, dry_run: bool
) -> Body:
    try:
        return gateway.patch(
            QUEUES,
            name,
            desired,
            patch_type=PatchType.APPLY,
            options=PatchOptions(field_manager=manager, force=force, dry_run=dry_run),
        )
    except ConflictError as error:
        # The same status is returned when the object changed meanwhile, which a retry solves.
        if not force and "Apply failed with" in str(error):
            raise FieldOwnedError(str(error)) from error
        raise


@dataclass(frozen=True, slots=True, kw_only=True)
class _Write:
    """One write that has passed all checks.

    Attributes
    ----------
    send : writes to the cluster, which may refuse
    verify : checks the tree afterwards, and undoes the write if the tree is unsound
    """

    action: str
    before: Body | None
    after: Body | None
    send: Callable[[], Body]
    verify: Callable[[Body], None] | None = None

    @property
    def name(self) -> str:
        return str((self.before or self.after or {})["metadata"]["name"])


def _carry_out(write: _Write, findings: tuple[Finding, ...], request: WriteRequest) -> WriteResult:
    """Write the audit entry, write to the cluster, verify, and complete the entry.

    Raises
    ------
    ApprovalNeededError : by the policies the edit must be made as an approved change set
    django.db.DatabaseError : the entry could not be written; the cluster was not changed
    kube.errors.ServerError : the cluster may have been changed; the entry is settled later
    """
    if not request.is_planned:
        refuse_unapproved(write.name, write.before, write.after)
    warnings = hierarchy.warnings(findings)
    diff = edits.differences(write.before, write.after or {})
    if request.dry_run:
        return WriteResult(body=write.send(), warnings=warnings, diff=diff, is_change=True)
    change = audit.intend(write.action, write.name, request, before=write.before, diff=diff)
    try:
        written = write.send()
    except ServerError:
        raise
    except (KubeError, QueuesError):
        audit.withdraw(change)
        raise
    warnings = (*warnings, *_verified(write, written, change))
    if write.after is not None:
        diff = edits.differences(write.before, written)
    if not audit.complete(change, written if write.after is not None else None, diff):
        warnings = (*warnings, UNRECORDED)
    return WriteResult(body=written, warnings=warnings, diff=diff, is_change=True, is_written=True)


def _verified(write: _Write, written: Body, change: QuotaChange) -> tuple[Finding, ...]:
    """Return warnings about the tree after the write.

    Raises
    ------
    HierarchyError : the write was undone
    """
    try:
        if write.verify is not None:
            write.verify(written)
    except HierarchyError:
        audit.withdraw(change)
        raise
    except KubeError as error:
        # The write was made and must be reported as such, even if the cluster fails to answer later reads.
        log.warning("queue '%s': the tree could not be checked again: %s", write.name, error)
        return (UNVERIFIED,)
    return ()


def _one_at_a_time(
    gateway: Gateway, request: WriteRequest, *, is_structural: bool
) -> AbstractContextManager[None]:
    if is_structural and not request.dry_run:
        return tree_lock.lock_of(gateway).held()
    return nullcontext()


def _retry_on_conflict(name: str, attempt: Callable[[], WriteResult]) -> WriteResult:
    """Try again when the object changed between read and write; a competing edit raises `StaleQueueError`."""
    for _attempt in range(TRIES):
        try:
            return attempt()
        except ConflictError as error:
            log.debug("queue '%s' changed during an edit: %s", name, error)
    raise BusyError(f"queue '{name}' was written by others during each of {TRIES} attempts")


def _require_expected_tag(name: str, current: Body | None, request: WriteRequest) -> None:
    if not request.expected_tag:
        return
    if current is None:
        raise UnknownQueueError(name)
    if request.expected_tag != tag_of_body(current):
        raise StaleQueueError(name, expected=request.expected_tag, current=tag_of_body(current))

"""Write SchedulingShard objects: check the settings, announce the write in the audit log, write to the cluster.

The caller sends the edit tag that it has read, which status writes do not change. The patch carries the resourceVersion
read just before, and is computed again when a status write came in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from kaiweb.shards.items import CONNECTION, USAGE
from kaiweb.shards.reading import (
    Body,
    all_shards,
    find_shard,
    pool_of,
    problem_in,
    read_config,
    tag_of_shard,
)
from kube.errors import ConflictError, KubeError, ServerError
from kube.gateway import Gateway, PatchOptions
from kube.objects.config import ShardSpec
from kube.resources import SHARDS
from kube.values.pointers import pointer_part
from queues.editing.audit import withdraw
from queues.editing.audit_entries import finish, record
from queues.editing.bodies import resource_version_of
from queues.editing.edits import Difference, merge_patch
from queues.editing.repair import FIELD_MANAGER, TRIES
from queues.editing.write_requests import WriteRequest, WriteResult
from queues.errors import BusyError
from queues.models import AuditAction, AuditKind, ChangeState
from queues.tree.findings import Finding, Severity, shown
from queues.tree.shape import LABEL_LENGTH, NAME_PATTERN
from scheduler.settings.shard import DEFAULT_SHARD

#: Fields of the spec that only KAI reads.
FOREIGN_FIELDS = ("goMemLimit", "goMemLimitRatio")
SPEC_FIELDS = (*(field.encode_name for field in msgspec.structs.fields(ShardSpec)), *FOREIGN_FIELDS)
HIDDEN = "(hidden)"
SECRET_POINTER = f"/spec/{USAGE}/{CONNECTION}"


class InvalidShardError(Exception):
    """The settings would be refused."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        super().__init__("; ".join(finding.message for finding in findings))
        self.findings = findings


class StaleShardError(Exception):
    """The shard was edited since the caller read it.

    Attributes
    ----------
    current : the object as it is now
    """

    def __init__(self, expected: str, current: Body) -> None:
        name, tag = current["metadata"]["name"], tag_of_shard(current)
        super().__init__(
            f"shard '{name}' has changed: you edited version {expected}, it is now {tag}"
        )
        self.current = current


def create_shard(
    gateway: Gateway, name: object, spec: object, request: WriteRequest
) -> WriteResult:
    """Create a shard.

    Raises
    ------
    InvalidShardError, kube.errors.KubeError, django.db.DatabaseError
    """
    body = {
        "apiVersion": SHARDS.api_version,
        "kind": SHARDS.kind,
        "metadata": {"name": name},
        "spec": spec,
    }
    _check(gateway, None, body)
    return _carry_out(
        _Write(
            action=AuditAction.CREATE,
            before=None,
            after=body,
            send=lambda: gateway.create(SHARDS, body, dry_run=request.dry_run),
        ),
        request,
    )


def edit_shard(
    gateway: Gateway, name: str, edit: Callable[[Any], object], request: WriteRequest
) -> WriteResult:
    """Write the spec that `edit` makes of the present one.

    Raises
    ------
    UnknownShardError, StaleShardError, BusyError, and those of `create_shard`
    """

    def attempt(current: Body) -> WriteResult:
        after = {**current, "spec": edit(current.get("spec") or {})}
        _check(gateway, current, after)
        if not differences(current, after):
            return WriteResult(body=current)
        patch = merge_patch({"spec": current.get("spec") or {}}, {"spec": after["spec"]})
        patch["metadata"] = {"resourceVersion": resource_version_of(current)}
        options = PatchOptions(field_manager=FIELD_MANAGER, dry_run=request.dry_run)
        return _carry_out(
            _Write(
                action=AuditAction.UPDATE,
                before=current,
                after=after,
                send=lambda: gateway.patch(SHARDS, name, patch, options=options),
            ),
            request,
        )

    return _retry_on_conflict(gateway, name, request, attempt)


def delete_shard(gateway: Gateway, name: str, request: WriteRequest) -> WriteResult:
    """Delete a shard; its scheduler ends, that of `default` goes on with default settings.

    Raises
    ------
    UnknownShardError, StaleShardError, BusyError, kube.errors.KubeError, django.db.DatabaseError
    """

    def attempt(current: Body) -> WriteResult:
        def send() -> Body:
            if not request.dry_run:
                gateway.delete(SHARDS, name, resource_version=resource_version_of(current))
            return current

        write = _Write(action=AuditAction.DELETE, before=current, after=None, send=send)
        return _carry_out(write, request, (_effect_of_deletion(current),))

    return _retry_on_conflict(gateway, name, request, attempt)


def differences(before: Body | None, after: Body | None) -> list[Difference]:
    """Return the values of the spec that differ; a connection that may hold a password is not shown."""
    old, new = (dict(_flat("/spec", (body or {}).get("spec"))) for body in (before, after))
    return [
        Difference(pointer, *_visible(pointer, old.get(pointer), new.get(pointer)))
        for pointer in sorted({*old, *new})
        if old.get(pointer) != new.get(pointer)
    ]


def _visible(pointer: str, *values: object) -> tuple[object, ...]:
    if pointer != SECRET_POINTER:
        return values
    return tuple(None if value is None else HIDDEN for value in values)


def _flat(pointer: str, value: object) -> Iterator[tuple[str, object]]:
    if not isinstance(value, Mapping):
        if value is not None:
            yield pointer, value
        return
    for name, part in value.items():
        yield from _flat(f"{pointer}/{pointer_part(name)}", part)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Write:
    """One write that has passed all checks; `send` writes to the cluster, which may refuse."""

    action: AuditAction
    before: Body | None
    after: Body | None
    send: Callable[[], Body]

    @property
    def name(self) -> str:
        return str((self.before or self.after or {})["metadata"]["name"])


def _carry_out(
    write: _Write, request: WriteRequest, warnings: tuple[Finding, ...] = ()
) -> WriteResult:
    diff = differences(write.before, write.after)
    if request.dry_run:
        return WriteResult(body=write.send(), warnings=warnings, diff=diff, is_change=True)
    entry = record(
        AuditKind.SHARD, write.action, write.name, request, diff=diff, state=ChangeState.INTENDED
    )
    try:
        body = write.send()
    except ServerError:
        finish(entry, ChangeState.UNCLEAR)  # the write may have been made
        raise
    except KubeError:
        withdraw(entry)
        raise
    finish(entry, ChangeState.DONE)
    return WriteResult(body=body, warnings=warnings, diff=diff, is_change=True, is_written=True)


def _retry_on_conflict(
    gateway: Gateway, name: str, request: WriteRequest, attempt: Callable[[Body], WriteResult]
) -> WriteResult:
    for _attempt in range(TRIES):
        current = find_shard(gateway, name)
        if request.expected_tag != tag_of_shard(current):
            raise StaleShardError(request.expected_tag, current)
        try:
            return attempt(current)
        except ConflictError:
            continue
    raise BusyError(f"shard '{name}' was written by others during each of {TRIES} attempts")


def _check(gateway: Gateway, before: Body | None, after: Body) -> None:
    """Raise InvalidShardError if a scheduler would refuse the settings, or another one has the same nodes."""
    findings = [*_form_faults(after)]
    if not findings:
        problem = problem_in(after, read_config(gateway))
        if problem:
            findings.append(Finding(pointer="/spec", code="setting", message=problem))
        findings += _partition_faults(gateway, before, after)
    if findings:
        raise InvalidShardError(tuple(findings))


def _form_faults(body: Body) -> Iterator[Finding]:
    name, spec = body["metadata"]["name"], body["spec"]
    if not isinstance(name, str) or len(name) > LABEL_LENGTH or not NAME_PATTERN.fullmatch(name):
        text = f"name: expected at most {LABEL_LENGTH} lower-case letters, digits, '-' and '.', got {shown(name)!r}"
        yield Finding(pointer="/name", code="name", message=text, given=shown(name))
    if not isinstance(spec, Mapping):
        text = f"spec: expected an object, got {shown(spec)!r}"
        yield Finding(pointer="/spec", code="type", message=text, given=shown(spec))
        return
    for field in sorted(set(spec) - set(SPEC_FIELDS)):
        yield Finding(
            pointer=f"/spec/{pointer_part(shown(field))}",
            code="unknown-field",
            message=f"spec: expected {', '.join(SPEC_FIELDS)}, got '{shown(field)}'",
            given=shown(field),
            allowed=list(SPEC_FIELDS),
        )


def _partition_faults(gateway: Gateway, before: Body | None, after: Body) -> Iterator[Finding]:
    """Yield a fault if the edit gives the shard the nodes of another one."""
    value = pool_of(after)
    if before is not None and pool_of(before) == value:
        return
    for name, body in all_shards(gateway).items():
        if name != after["metadata"]["name"] and pool_of(body) == value:
            yield Finding(
                pointer="/spec/partitionLabelValue",
                code="partition",
                message=f"partitionLabelValue: shard '{name}' schedules the nodes of '{value}' already",
                given=value,
            )


def _effect_of_deletion(body: Body) -> Finding:
    name = body["metadata"]["name"]
    text = (
        "the scheduler of this shard goes on with default settings"
        if name == DEFAULT_SHARD
        else f"nobody schedules the nodes and workloads of '{pool_of(body)}' any more"
    )
    return Finding(pointer="", code="effect", message=text, severity=Severity.WARNING)

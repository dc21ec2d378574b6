"""Take a queue over from another manager, such as a GitOps controller, so that it can be edited here.

The values stay as they are. kaiweb applies them by force and so owns them; then the records of the other manager are
removed, because a field with two owners would still count as the other one's. The controller itself is not stopped:
it will object, or write its values again, until the queue is removed from its source.
"""

from __future__ import annotations

from typing import Any

from kube.errors import ConflictError, KubeError, ServerError
from kube.gateway import Gateway, PatchOptions, PatchType
from kube.objects.meta import convert
from kube.resources import QUEUES
from queues.editing import audit
from queues.editing.bodies import read_or_none, resource_version_of
from queues.editing.edits import Difference
from queues.editing.repair import FIELD_MANAGER
from queues.editing.write_requests import Body, WriteRequest
from queues.errors import BusyError, FieldOwnedError, MissingRightError, UnknownQueueError
from queues.mirror.views import QueueView
from queues.models import AuditAction

TRIES = 3


def take_over(gateway: Gateway, name: str, owner: str, request: WriteRequest) -> Body:
    """Make kaiweb the owner of a queue's fields; return the queue.

    Parameters
    ----------
    owner : the manager that the user believes to own the queue

    Raises
    ------
    MissingRightError : the caller is no admin
    FieldOwnedError : another manager owns the queue now
    UnknownQueueError, BusyError, kube.errors.KubeError, django.db.DatabaseError
    """
    if not request.rights.is_admin:
        raise MissingRightError("taking a queue over needs the right 'admin'")
    current = read_or_none(gateway, name)
    if current is None:
        raise UnknownQueueError(name)
    manager = convert(current, QueueView).manager
    if manager != owner or owner == FIELD_MANAGER:
        raise FieldOwnedError(f"queue '{name}' is managed by '{manager}', not by '{owner}'")
    if request.dry_run:
        return current
    diff = [Difference("/managedBy", owner, FIELD_MANAGER)]
    entry = audit.intend(AuditAction.TAKE_OVER, name, request, before=current, diff=diff)
    try:
        body = _take_ownership(gateway, name, owner)
    except ServerError:
        raise  # it may have been made; the entry is settled later
    except KubeError:
        audit.withdraw(entry)
        raise
    audit.complete(entry, body, diff)
    return body


def _take_ownership(gateway: Gateway, name: str, owner: str) -> Body:
    """Apply the present values by force, and remove the records of the owner."""
    for _attempt in range(TRIES):
        current = read_or_none(gateway, name)
        if current is None:
            raise UnknownQueueError(name)
        desired = {
            "apiVersion": QUEUES.api_version,
            "kind": QUEUES.kind,
            "metadata": {"name": name, "resourceVersion": resource_version_of(current)},
            "spec": current["spec"],
        }
        options = PatchOptions(field_manager=FIELD_MANAGER, force=True)
        try:
            applied = gateway.patch(
                QUEUES, name, desired, patch_type=PatchType.APPLY, options=options
            )
            metadata = {
                "resourceVersion": resource_version_of(applied),
                "managedFields": _without(applied, owner),
            }
            return gateway.patch(
                QUEUES,
                name,
                {"metadata": metadata},
                options=PatchOptions(field_manager=FIELD_MANAGER),
            )
        except ConflictError:
            continue  # another client, for example a controller of statuses, wrote in between
    raise BusyError(f"queue '{name}' was written by others during each of {TRIES} attempts")


def _without(body: Body, owner: str) -> list[dict[str, Any]]:
    """Return the records of all managers but one; those of subresources stay."""
    entries: list[dict[str, Any]] = body["metadata"].get("managedFields") or []
    return [entry for entry in entries if entry.get("manager") != owner or entry.get("subresource")]

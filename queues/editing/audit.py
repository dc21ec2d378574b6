"""The audit log of writes to queues: an entry is written before the cluster is changed and completed afterwards.

If the entry cannot be written, the cluster is not changed. If it cannot be completed, it stays `intended`, and
`settle` later reads from the cluster whether the change was made. So every change of ours has an entry, whatever
fails in between.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError
from django.db.models import QuerySet

from kube.errors import NotFoundError
from kube.gateway import Gateway
from kube.resources import QUEUES
from queues.editing import edits
from queues.editing.edits import Difference
from queues.editing.write_requests import Body, WriteRequest
from queues.models import AuditKind, ChangeState, QuotaChange

log = logging.getLogger(__name__)

# Younger entries may belong to requests that are still running.
SETTLE_AFTER = timedelta(seconds=15)
# By then the request that wrote an entry has ended, so it can no longer change the cluster.
GIVE_UP_AFTER = timedelta(minutes=2)


def intend(
    action: str,
    name: str,
    request: WriteRequest,
    *,
    before: Body | None,
    diff: Sequence[Difference],
) -> QuotaChange:
    """Write the entry of a change that is about to be made.

    Raises
    ------
    django.db.DatabaseError : it could not be written, so the change must not be made
    """
    metadata = before["metadata"] if before else {}
    return QuotaChange.objects.create(
        queue=name,
        action=action,
        state=ChangeState.INTENDED,
        actor=request.rights.username,
        at=request.now,
        diff=_entries(diff),
        reason=request.reason,
        request_id=request.request_id,
        version_before=str(metadata.get("resourceVersion", "")),
        generation_before=int(metadata.get("generation", 0)),
        uid=str(metadata.get("uid", "")),
    )


def complete(change: QuotaChange, after: Body | None, diff: Sequence[Difference]) -> bool:
    """Complete the entry of a change that was made; return False if the database write failed.

    Parameters
    ----------
    after : the queue as written; None for a deletion
    """
    metadata = after["metadata"] if after else {}
    try:
        _unfinished(change).update(
            state=ChangeState.DONE,
            diff=_entries(diff),
            version_after=str(metadata.get("resourceVersion", "")),
        )
    except DatabaseError as error:
        log.warning("%s was made, its entry will be completed later: %s", change, error)
        return False
    return True


def withdraw(change: QuotaChange) -> None:
    """Delete the entry of a change that was not made; if that fails, `settle` will mark it as failed."""
    try:
        _unfinished(change).delete()
    except DatabaseError as error:
        log.warning("%s was not made, its entry could not be deleted: %s", change, error)


def settle(gateway: Gateway, now: datetime) -> int:
    """Complete old entries from the state of the cluster; return how many entries were completed.

    Raises
    ------
    kube.errors.KubeError : the cluster does not answer; the next call tries again
    """
    settled = 0
    unsettled = QuotaChange.objects.filter(
        kind=AuditKind.QUEUE, state=ChangeState.INTENDED, at__lt=now - SETTLE_AFTER
    )
    for change in unsettled.order_by("id"):
        current = _read(gateway, change.queue)
        state = _outcome(change, current, is_request_over=change.at < now - GIVE_UP_AFTER)
        if state is None:
            continue
        # The request itself may have completed the entry meanwhile.
        settled += _unfinished(change).update(state=state)
        log.info("%s: settled as %s", change, state)
    return settled


def _unfinished(change: QuotaChange) -> QuerySet[QuotaChange]:
    """Return the entry unless it has been completed, after which the database refuses edits."""
    return QuotaChange.objects.filter(pk=change.pk, state=ChangeState.INTENDED)


def _read(gateway: Gateway, name: str) -> Body | None:
    try:
        return gateway.get(QUEUES, name, as_type=dict)
    except NotFoundError:
        return None


def _outcome(
    change: QuotaChange, current: Body | None, *, is_request_over: bool
) -> ChangeState | None:
    """Return the final state of a change, None while its request may still carry it out."""
    if _was_made(change, current):
        return ChangeState.DONE
    if not is_request_over:
        return None
    is_untouched = current is not None and (
        change.action == "delete"
        or str(current["metadata"].get("resourceVersion")) == change.version_before
        or int(current["metadata"].get("generation", 0)) == change.generation_before
    )
    if is_untouched or change.action == "create":
        return ChangeState.FAILED
    # The queue was written or deleted since, so it cannot be seen whether our change was made.
    return ChangeState.UNCLEAR


def _was_made(change: QuotaChange, current: Body | None) -> bool:
    """Return whether the queue in the cluster now is as the change would have left it."""
    if change.action == "delete":
        return current is None or current["metadata"].get("uid") != change.uid
    if current is None:
        return False
    is_same_queue = not change.uid or current["metadata"].get("uid") == change.uid
    fields = edits.flat(current)
    return is_same_queue and all(
        fields.get(pointer) == value for pointer, value in _new_values(change.diff)
    )


def _new_values(diff: Iterable[Mapping[str, Any]]) -> Iterable[tuple[str, Any]]:
    """Return the pointer and the new value of each changed field."""
    return ((entry["pointer"], entry["after"]) for entry in diff)


def _entries(diff: Sequence[Difference]) -> list[dict[str, Any]]:
    return [entry.as_dict() for entry in diff]

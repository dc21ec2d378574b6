"""The change log of writes to queues: the intent goes in before the cluster is asked, the result after.

A write that the log cannot take beforehand is not made at all. One that was made and could not be completed in
the log stays `intended`, and `settle` finds out later from the cluster what became of it. So no change of ours
is in the cluster without an entry, whatever fails in between.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError

from kube.errors import NotFoundError
from kube.gateway import Gateway
from kube.resources import QUEUES
from queues.editing import edits
from queues.editing.edits import Difference
from queues.editing.write_requests import Body, WriteRequest
from queues.models import ChangeState, QuotaChange

log = logging.getLogger(__name__)

# Requests that are still at work are left alone so long.
SETTLE_AFTER = timedelta(seconds=15)
# By then no request of that time can still reach the cluster.
GIVE_UP_AFTER = timedelta(minutes=2)


def intend(
    action: str,
    name: str,
    request: WriteRequest,
    *,
    before: Body | None,
    diff: Sequence[Difference],
) -> QuotaChange:
    """Write down what is about to be done.

    Raises
    ------
    django.db.DatabaseError : the database does not take it, so it must not be done
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
    """Note that it was done; False if the database does not take it now.

    after : the object as written; None for a deletion
    """
    metadata = after["metadata"] if after else {}
    try:
        QuotaChange.objects.filter(pk=change.pk).update(
            state=ChangeState.DONE,
            diff=_entries(diff),
            version_after=str(metadata.get("resourceVersion", "")),
        )
    except DatabaseError as error:
        log.warning("%s is done, its entry will be completed later: %s", change, error)
        return False
    return True


def withdraw(change: QuotaChange) -> None:
    """Drop an intent that came to nothing; if the database is away, `settle` will mark it as failed."""
    try:
        QuotaChange.objects.filter(pk=change.pk).delete()
    except DatabaseError as error:
        log.warning("%s was not done, its entry could not be dropped: %s", change, error)


def settle(gateway: Gateway, now: datetime) -> int:
    """Decide from the cluster what became of intents whose requests ended without a word; return how many.

    Raises
    ------
    kube.errors.KubeError : the cluster does not answer; nothing is lost, the next call tries again
    """
    settled = 0
    waiting = QuotaChange.objects.filter(state=ChangeState.INTENDED, at__lt=now - SETTLE_AFTER)
    for change in waiting.order_by("id"):
        current = _read(gateway, change.queue)
        state = _judged(change, current, is_over=change.at < now - GIVE_UP_AFTER)
        if state is None:
            continue
        # Only what is still open: the request itself may have completed it meanwhile.
        rows = QuotaChange.objects.filter(pk=change.pk, state=ChangeState.INTENDED)
        settled += rows.update(state=state)
        log.info("%s is settled as %s", change, state)
    return settled


def _read(gateway: Gateway, name: str) -> Body | None:
    try:
        return gateway.get(QUEUES, name, as_type=dict)
    except NotFoundError:
        return None


def _judged(change: QuotaChange, current: Body | None, *, is_over: bool) -> ChangeState | None:
    """Return the state of an intent, None while it may still be carried out."""
    if _is_visible(change, current):
        return ChangeState.DONE
    if not is_over:
        return None
    is_untouched = current is not None and (
        change.action == "delete"
        or str(current["metadata"].get("resourceVersion")) == change.version_before
        or int(current["metadata"].get("generation", 0)) == change.generation_before
    )
    if is_untouched or change.action == "create":
        return ChangeState.FAILED
    # Somebody has written or deleted the queue since: ours may have been there or not.
    return ChangeState.UNCLEAR


def _is_visible(change: QuotaChange, current: Body | None) -> bool:
    if change.action == "delete":
        return current is None or current["metadata"].get("uid") != change.uid
    if current is None:
        return False
    is_same = not change.uid or current["metadata"].get("uid") == change.uid
    shown = edits.flat(current)
    return is_same and all(shown.get(pointer) == value for pointer, value in _wanted(change.diff))


def _wanted(diff: Iterable[Mapping[str, Any]]) -> Iterable[tuple[str, Any]]:
    return ((entry["pointer"], entry["after"]) for entry in diff)


def _entries(diff: Sequence[Difference]) -> list[dict[str, Any]]:
    return [entry.as_dict() for entry in diff]

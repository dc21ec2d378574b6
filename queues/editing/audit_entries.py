"""Entries of the audit log about other objects than queues: workloads, users, role bindings and tokens.

Writes to the database are recorded in the transaction of the write. A write to the cluster is announced before,
like that of a queue; an entry whose process died in between stays `intended` until `give_up` marks it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import DatabaseError

from queues.editing.edits import Difference
from queues.editing.write_requests import WriteRequest
from queues.models import AuditAction, AuditKind, ChangeState, QuotaChange

log = logging.getLogger(__name__)

GIVE_UP_AFTER = timedelta(minutes=2)


def record(
    kind: AuditKind,
    action: AuditAction,
    target: str,
    request: WriteRequest,
    *,
    queue: str = "",
    diff: Sequence[Difference] = (),
    state: ChangeState = ChangeState.DONE,
) -> QuotaChange:
    """Write an entry about one object.

    Raises
    ------
    django.db.DatabaseError : it could not be written, so what it is about must not be done
    """
    return QuotaChange.objects.create(
        kind=kind,
        action=action,
        target=target,
        queue=queue,
        state=state,
        actor=request.rights.username,
        at=request.now,
        diff=[entry.as_dict() for entry in diff],
        reason=request.reason,
        request_id=request.request_id,
    )


def finish(entry: QuotaChange, state: ChangeState) -> None:
    """Set how an announced write ended; if that fails, `give_up` marks it as unclear later."""
    try:
        QuotaChange.objects.filter(pk=entry.pk, state=ChangeState.INTENDED).update(state=state)
    except DatabaseError as error:
        log.warning("%s: its entry could not be completed: %s", entry, error)


def give_up(now: datetime) -> int:
    """Mark announced writes whose request has ended without a result as unclear; return how many."""
    rows = QuotaChange.objects.filter(state=ChangeState.INTENDED, at__lt=now - GIVE_UP_AFTER)
    return rows.exclude(kind=AuditKind.QUEUE).update(state=ChangeState.UNCLEAR)

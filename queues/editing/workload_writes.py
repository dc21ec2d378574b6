"""Write annotations of a pod group, with an entry in the audit log before and its result after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kube.errors import KubeError, ServerError
from kube.gateway import Gateway, PatchOptions
from kube.resources import PODGROUPS
from kube.values.pointers import pointer_part
from queues.editing.audit_entries import finish, record
from queues.editing.edits import Difference
from queues.editing.write_requests import Body, WriteRequest
from queues.models import AuditAction, AuditKind, ChangeState, PodGroup


def annotate(
    gateway: Gateway,
    row: PodGroup,
    action: AuditAction,
    annotations: Mapping[str, Any],
    request: WriteRequest,
) -> Body:
    """Patch a pod group; return it as it is now, or in a dry run as it would be.

    Raises
    ------
    kube.errors.KubeError, django.db.DatabaseError
    """
    body = {"metadata": {"annotations": dict(annotations)}}
    options = PatchOptions(dry_run=request.dry_run)
    if request.dry_run:
        return gateway.patch(PODGROUPS, row.name, body, namespace=row.namespace, options=options)
    entry = record(
        AuditKind.WORKLOAD,
        action,
        row.key,
        request,
        queue=row.queue,
        diff=[
            Difference(f"/annotations/{pointer_part(name)}", None, value)
            for name, value in annotations.items()
        ],
        state=ChangeState.INTENDED,
    )
    try:
        answer = gateway.patch(PODGROUPS, row.name, body, namespace=row.namespace)
    except KubeError as error:
        # After an error of the server, the write may have been made.
        is_open = isinstance(error, ServerError)
        finish(entry, ChangeState.UNCLEAR if is_open else ChangeState.FAILED)
        raise
    finish(entry, ChangeState.DONE)
    return answer

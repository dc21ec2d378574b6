"""Writes that change nothing but our own database, such as users, tokens and drafts, and their dry run.

A dry run makes the write in a transaction and takes it back. So it finds every fault that the write would find, the
unique names and the last admin included, and answers with the same status.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import transaction
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api import idempotency
from kaiweb.api.base import flag

#: What the answer to the dry run of a creation shows instead of the number and the secret of the new row.
UNDECIDED = {"id": 0, "token": ""}


def write_database(
    request: Request, write: Callable[[], Response], *, is_kept: bool = True
) -> Response:
    """Make a write once for each `Idempotency-Key`; with `dryRun` find out how it would end, and leave no trace.

    Parameters
    ----------
    is_kept : whether the answer may be stored for a repeated request; an answer with a secret may not
    """
    if not is_kept:
        idempotency.refuse_key(request)
    if flag(request, "dryRun"):
        return _tried(write)
    return idempotency.answer_once(request, write)


def _tried(write: Callable[[], Response]) -> Response:
    with transaction.atomic():
        response = write()
        transaction.set_rollback(True)
    if response.status_code != status.HTTP_201_CREATED:
        return response
    body: dict[str, Any] = response.data
    shown = {name: UNDECIDED.get(name, value) for name, value in body.items()}
    return Response(shown, status=response.status_code)

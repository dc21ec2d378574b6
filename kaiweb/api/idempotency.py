"""`Idempotency-Key`: a repeated request gets the answer of the first one, for a day.

A pipeline that lost an answer cannot know whether its request was carried out. With the same key it can repeat
the request: nothing is done twice, and the answer is the same. Refusals are not stored, because they changed
nothing.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import DatabaseError
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api.errors import Problem
from kaiweb.models import IdempotentAnswer
from queues.models import ApiToken
from queues.tree.shape import shown

log = logging.getLogger(__name__)

HEADER = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"
KEY = re.compile(r"[\x21-\x7e]{1,255}")
STORED_FOR = timedelta(days=1)
# A request without an answer after this time died with its process.
STUCK_AFTER = timedelta(minutes=2)


def answer_once(request: Request, work: Callable[[], Response]) -> Response:
    """Return the stored answer of this key, or do the work and store its answer.

    Raises
    ------
    Problem : the key is malformed, belongs to another request, or its request is still running
    """
    key = request.headers.get(HEADER)
    if key is None:
        return work()
    if not KEY.fullmatch(key):
        raise Problem(
            "bad-request", f"{HEADER}: expected 1 to 255 visible characters, got '{shown(key)}'"
        )
    row = _claim(request, key)
    if row.status is not None:
        return Response(row.body, status=row.status, headers={**row.headers, REPLAYED: "true"})
    response: Response | None = None
    try:
        response = work()
    finally:
        if response is None:
            _release(row)
    _store(row, response)
    return response


def refuse_key(request: Request) -> None:
    """Refuse the header for a call whose answer holds a secret, which must not be stored.

    Raises
    ------
    Problem : the header was sent
    """
    if HEADER in request.headers:
        raise Problem("bad-request", f"{HEADER}: expected none, since this answer is never kept")


def trim() -> int:
    """Delete answers older than a day; return how many."""
    count, _by_model = IdempotentAnswer.objects.filter(at__lt=timezone.now() - STORED_FOR).delete()
    return count


def _claim(request: Request, key: str) -> IdempotentAnswer:
    """Return the row of the key: with a status it is an answer, without one this request does the work."""
    assert isinstance(request.user, User)
    now, digest = timezone.now(), _digest(request)
    row, is_new = IdempotentAnswer.objects.get_or_create(
        user=request.user, key=key, defaults={"digest": digest, "at": now}
    )
    if is_new:
        return row
    age = now - row.at
    if age > STORED_FOR or (row.status is None and age > STUCK_AFTER):
        unchanged = IdempotentAnswer.objects.filter(pk=row.pk, at=row.at)
        if unchanged.update(digest=digest, at=now, status=None):
            row.status = None
            return row
    if row.digest != digest:
        raise Problem("idempotency-mismatch", f"{HEADER} '{key}' belongs to another request")
    if row.status is None:
        text = f"the first request with {HEADER} '{key}' is still at work"
        raise Problem("unavailable", text, headers={"Retry-After": "1"})
    return row


def _digest(request: Request) -> str:
    token = request.auth.pk if isinstance(request.auth, ApiToken) else None
    parts: list[Any] = [request.method, request.get_full_path(), token, request.data]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _release(row: IdempotentAnswer) -> None:
    try:
        IdempotentAnswer.objects.filter(pk=row.pk, status=None).delete()
    except DatabaseError as error:
        log.warning("cannot release %s, it counts as stuck later: %s", row, error)


def _store(row: IdempotentAnswer, response: Response) -> None:
    headers = {name: value for name, value in response.items() if name != "Content-Type"}
    try:
        IdempotentAnswer.objects.filter(pk=row.pk).update(
            status=response.status_code, headers=headers, body=response.data
        )
    except DatabaseError as error:
        log.warning("cannot store the answer to %s: %s", row, error)

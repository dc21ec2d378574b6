"""Lists in pages that stay right while rows come and go: a cursor names the last row, not a number.

The cursor is opaque to clients; it holds the sort value and the key of the last row shown.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
from django.db.models import Model, Q, QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from frontend.items.amounts import moment
from frontend.items.cluster import mirror_moment
from kaiweb.api.errors import Problem
from queues import live
from scheduler.models import Cycle

DEFAULT_LIMIT = 100
MAX_LIMIT = 1000
PARAMETERS = ("limit", "cursor", "count", "sort")


@dataclass(frozen=True, slots=True)
class Sorting:
    """How a list may be ordered: public name -> column; every order ends with the key."""

    key: str
    columns: Mapping[str, str]
    default: str

    def read(self, request: Request) -> tuple[str, bool]:
        """Return the column and whether it goes down."""
        asked = request.query_params.get("sort") or self.default
        name, is_down = asked.removeprefix("-"), asked.startswith("-")
        if name not in self.columns:
            known = ", ".join(f"{one}, -{one}" for one in self.columns)
            raise Problem("bad-request", f"sort: expected one of {known}, got '{asked}'")
        return self.columns[name], is_down


def as_of() -> dict[str, Any]:
    """Return the time, session and log position that an answer is about."""
    last = Cycle.objects.order_by("-id").values_list("id", flat=True).first()
    return {"time": moment(mirror_moment()), "session": last, "rv": str(live.position())}


def answer(
    request: Request,
    rows: QuerySet[Any],
    sorting: Sorting,
    to_items: Callable[[Sequence[Any]], list[dict[str, Any]]],
) -> Response:
    """Return one page of the list, or 304 if nothing has changed since the caller's ETag."""
    limit = _limit(request)
    column, is_down = sorting.read(request)
    tag = f'W/"{live.epoch()}-{live.position()}"'
    if request.headers.get("If-None-Match") == tag:
        return Response(status=304, headers={"ETag": tag})
    page = rows.order_by(f"-{column}" if is_down else column, sorting.key)
    cursor = request.query_params.get("cursor")
    if cursor:
        page = page.filter(_after(cursor, column, sorting.key, is_down))
    found = list(page[: limit + 1])
    more = len(found) > limit
    found = found[:limit]
    body: dict[str, Any] = {
        "items": to_items(found),
        "next": _cursor(found[-1], column, sorting.key) if more else None,
        "asOf": as_of(),
    }
    counted = request.query_params.get("count")
    if counted == "exact":
        body["count"] = rows.count()
    elif counted is not None:
        raise Problem("bad-request", f"count: expected exact, got '{counted}'")
    headers = {"ETag": tag}
    if body["next"]:
        headers["Link"] = f'<{_next_url(request, body["next"])}>; rel="next"'
    return Response(body, headers=headers)


def _limit(request: Request) -> int:
    raw = request.query_params.get("limit", str(DEFAULT_LIMIT))
    if not raw.isdecimal() or not 1 <= int(raw) <= MAX_LIMIT:
        raise Problem("bad-request", f"limit: expected 1 to {MAX_LIMIT}, got '{raw}'")
    return int(raw)


def _cursor(row: Model, column: str, key: str) -> str:
    value = getattr(row, column)
    text = value.isoformat() if isinstance(value, datetime) else value
    return base64.urlsafe_b64encode(orjson.dumps([text, getattr(row, key)])).decode().rstrip("=")


def _after(cursor: str, column: str, key: str, is_down: bool) -> Q:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        value, last = orjson.loads(base64.urlsafe_b64decode(padded))
        if column.endswith("_at"):
            value = datetime.fromisoformat(value)
    except (binascii.Error, orjson.JSONDecodeError, ValueError, TypeError) as error:
        raise Problem(
            "bad-request", f"cursor: expected one from an earlier answer, got '{cursor[:40]}'"
        ) from error
    beyond = Q(**{f"{column}__{'lt' if is_down else 'gt'}": value})
    return beyond | Q(**{column: value, f"{key}__gt": last})


def _next_url(request: Request, cursor: str) -> str:
    query = request.query_params.copy()
    query["cursor"] = cursor
    return f"{request.path}?{query.urlencode()}"

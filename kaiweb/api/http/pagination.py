"""Lists in pages. A cursor names the last row instead of an offset, so that pages stay right while rows change.

The cursor is opaque to clients; it holds the sort value and the key of the last row shown.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from django.db.models import Q, QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api.base import caller_visibility
from kaiweb.api.errors import bad_parameter
from kaiweb.api.http import cursors
from kaiweb.api.http.conditional import is_current, weak_tag
from kaiweb.api.http.renderers import OPTIONS
from kaiweb.items.amounts import timestamp
from kaiweb.items.cluster import mirror_time
from queues import live
from queues.models import Node, PodGroup, Queue
from scheduler.models import SessionRecord

DEFAULT_LIMIT = 100
MAX_LIMIT = 1000
#: Each change of their rows is in the live log, so its position is the version of their lists.
LOGGED = (Queue, PodGroup, Node, SessionRecord)
PARAMETERS = ("limit", "cursor", "count", "sort", "fields")


@dataclass(frozen=True, slots=True)
class Sorting:
    """The orders of a list: public name -> column; every order ends with the key."""

    key: str
    #: Name in the API -> column of the database.
    columns: Mapping[str, str]
    default: str

    def read(self, request: Request) -> str:
        """Return the requested order: a public name, `-` before it for descending."""
        order = request.query_params.get("sort") or self.default
        first, _comma, second = order.partition(",")
        if second and self.columns.get(second) == self.key:
            order = first  # every order ends with the key
        if order.removeprefix("-") not in self.columns:
            allowed = [name for column in self.columns for name in (column, f"-{column}")]
            raise bad_parameter("sort", f"expected one of {', '.join(allowed)}", order, allowed)
        return order


def as_of() -> dict[str, Any]:
    """Return the time, the session and the log position that an answer describes."""
    last = SessionRecord.objects.order_by("-id").values_list("id", flat=True).first()
    return {"time": timestamp(mirror_time()), "session": last, "rv": str(live.position())}


def answer(
    request: Request,
    rows: QuerySet[Any],
    sorting: Sorting,
    to_items: Callable[[Sequence[Any]], list[dict[str, Any]]],
) -> Response:
    """Return one page of the list, or 304 if nothing has changed since the caller's ETag."""
    limit = limit_of(request)
    has_count = is_counted(request)
    order = sorting.read(request)
    column = sorting.columns[order.removeprefix("-")]
    page = rows.order_by(f"-{column}" if order.startswith("-") else column, sorting.key)
    cursor = request.query_params.get("cursor")
    if cursor:
        page = page.filter(_after(cursor, order, rows, sorting))
    tag = _log_tag(request) if rows.model in LOGGED else ""
    if tag and is_current(request, tag):
        return Response(status=304, headers={"ETag": tag})
    selected = list(page[: limit + 1])
    items = only_fields(request, to_items(selected[:limit]))
    body: dict[str, Any] = {"items": items, "next": None, "asOf": as_of()}
    if len(selected) > limit:
        last = selected[limit - 1]
        body["next"] = cursors.encode(order, getattr(last, column), getattr(last, sorting.key))
    if has_count:
        body["count"] = rows.count()
    headers = {"ETag": tag or _content_tag(body)}
    if body["next"]:
        headers["Link"] = f'<{_next_url(request, body["next"])}>; rel="next"'
    return Response(body, headers=headers)


def only_fields(request: Request, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the items with the fields that the parameter `fields` names, all if it names none."""
    names = [name for name in request.query_params.get("fields", "").split(",") if name]
    if not names or not items:
        return items
    unknown = [name for name in names if name not in items[0]]
    if unknown:
        field_names = sorted(items[0])
        raise bad_parameter(
            "fields", f"expected of {', '.join(field_names)}", unknown[0], field_names
        )
    return [{name: item[name] for name in names} for item in items]


def _log_tag(request: Request) -> str:
    """Return an ETag that is known before the rows are read."""
    return f'W/"{live.epoch()}-{live.position()}{_view_of(request)}"'


def _content_tag(body: Mapping[str, Any]) -> str:
    """Return an ETag of what a page shows, whatever its age."""
    return weak_tag(orjson.dumps({**body, "asOf": None}, option=OPTIONS))


def _view_of(request: Request) -> str:
    """Return what tells the lists of callers apart who see only some queues."""
    queues = caller_visibility(request).queues
    if queues is None:
        return ""
    return f"-{hashlib.sha256(','.join(sorted(queues)).encode()).hexdigest()[:12]}"


def limit_of(request: Request) -> int:
    """Return the number of rows of a page."""
    raw = request.query_params.get("limit", str(DEFAULT_LIMIT))
    is_number = raw.isascii() and raw.isdecimal() and len(raw) <= len(str(MAX_LIMIT))
    if not is_number or not 1 <= int(raw) <= MAX_LIMIT:
        raise bad_parameter("limit", f"expected 1 to {MAX_LIMIT}", raw, f"1..{MAX_LIMIT}")
    return int(raw)


def is_counted(request: Request) -> bool:
    """Return whether the caller asks for the number of all rows."""
    raw = request.query_params.get("count")
    if raw not in (None, "exact"):
        raise bad_parameter("count", "expected exact", raw, ["exact"])
    return raw is not None


def _after(cursor: str, order: str, rows: QuerySet[Any], sorting: Sorting) -> Q:
    column = sorting.columns[order.removeprefix("-")]
    fields = rows.model._meta
    value, key = cursors.decode(
        cursor, order, fields.get_field(column), fields.get_field(sorting.key)
    )
    beyond = Q(**{f"{column}__{'lt' if order.startswith('-') else 'gt'}": value})
    return beyond | Q(**{column: value, f"{sorting.key}__gt": key})


def _next_url(request: Request, cursor: str) -> str:
    query = request.query_params.copy()
    query["cursor"] = cursor
    return f"{request.path}?{query.urlencode()}"

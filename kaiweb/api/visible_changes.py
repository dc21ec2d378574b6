"""Which change sets a caller may see: all, or those whose queues may all be seen."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.db.models import QuerySet
from rest_framework.request import Request

from kaiweb.api.base import caller_visibility
from kaiweb.items.visibility import Visibility
from kaiweb.models import ChangeSet
from queues import selectors


def visible_changes(request: Request) -> QuerySet[ChangeSet]:
    """Return the change sets that the caller may see."""
    rows = ChangeSet.objects.select_related("author", "decided_by")
    visibility = caller_visibility(request)
    if not visibility.is_partial:
        return rows
    existing_queues = selectors.tree().keys()
    visible = [
        pk
        for pk, author, edits in ChangeSet.objects.order_by().values_list("pk", "author", "edits")
        if _is_visible(edits, visibility, existing_queues, is_own=author == request.user.pk)
    ]
    return rows.filter(pk__in=visible)


def _is_visible(
    edits: Sequence[Mapping[str, Any]],
    visibility: Visibility,
    existing_queues: Collection[str],
    *,
    is_own: bool,
) -> bool:
    """Return whether all queues may be seen; one that does not exist belongs to the author, or to its parent."""
    return all(
        visibility.shows(edit["name"])
        or (
            edit["name"] not in existing_queues
            and (is_own or visibility.shows(str(edit.get("edit", {}).get("parent") or "")))
        )
        for edit in edits
    )

"""What every REST write has in common: who requests it, when and why; its answer; and its refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from django.utils import timezone
from rest_framework.request import Request

from kaiweb import request_id
from kaiweb.api.base import caller, flag
from kaiweb.api.errors import Problem, bad_parameter
from queues.editing.write_requests import StaleRowError, WriteRequest, WriteResult

T = TypeVar("T")
Item = dict[str, Any]
MAX_REASON_LENGTH = 1024


def write_request(
    request: Request, *, expected_tag: str = "", reason: str | None = None
) -> WriteRequest:
    """Return who requests a write, and how it is to be done; the reason is by default that of the query."""
    return WriteRequest(
        rights=caller(request),
        now=timezone.now(),
        expected_tag=expected_tag,
        dry_run=flag(request, "dryRun"),
        reason=reason_of(request) if reason is None else reason,
        request_id=request_id.current.get(),
    )


def stale_problem(error: Exception, current: Item) -> Problem:
    """Return the problem 412 of an edit whose ETag is outdated; `current` is the item with the present ETag."""
    return Problem(
        "precondition-failed",
        str(error),
        extra={"current": current},
        headers={"ETag": current["etag"]},
    )


def unless_stale(write: Callable[[], T], item_of: Callable[[Any], Item]) -> T:
    """Return the result of a write; refuse it with the item of the present row if that was edited meanwhile."""
    try:
        return write()
    except StaleRowError as error:
        raise stale_problem(error, item_of(error.current)) from error


def written_answer(kind: str, item: Item, result: WriteResult, *, is_dry: bool) -> Item:
    """Return the answer to a write: the item under the key `kind` (such as "queue"), and what changed."""
    return {
        kind: item,
        "changed": result.is_change,
        "dryRun": is_dry,
        "warnings": [finding.as_dict() for finding in result.warnings],
        "diff": [difference.as_dict() for difference in result.diff],
    }


def reason_of(request: Request) -> str:
    """Return the query parameter `reason`, which the audit log keeps.

    Raises
    ------
    Problem : it is longer than `MAX_REASON_LENGTH`
    """
    reason = request.query_params.get("reason", "")
    if len(reason) > MAX_REASON_LENGTH:
        expected = f"expected at most {MAX_REASON_LENGTH} characters, got {len(reason)}"
        raise bad_parameter("reason", expected, reason, MAX_REASON_LENGTH)
    return reason


def require_admin(request: Request, what: str) -> None:
    """Refuse callers who are not admins; `what` names the request in the text, such as "listing users"."""
    if not caller(request).is_admin:
        raise Problem("forbidden", f"{what} needs the right 'admin'")

"""Every refusal of the REST API is a problem document (RFC 9457): here each room's errors get theirs.

A type is a stable URI whose last part is the slug; clients branch on it, people read `detail`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404
from rest_framework import exceptions as drf
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import set_rollback

from kaiweb import request_id
from kube import errors as kube
from queues import errors as queues

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
BASE = "https://kaiweb.dev/problems/"
# slug -> (status, title)
TYPES: Mapping[str, tuple[int, str]] = {
    "validation": (422, "The request is not valid"),
    "bad-request": (400, "The request cannot be understood"),
    "unauthenticated": (401, "Log in or send a token"),
    "forbidden": (403, "You may not do this"),
    "not-found": (404, "There is no such thing"),
    "method-not-allowed": (405, "This method is not supported here"),
    "not-acceptable": (406, "No such representation"),
    "conflict": (409, "It exists already"),
    "field-owned": (409, "Another manager owns a field"),
    "gone": (410, "It is no longer there"),
    "precondition-failed": (412, "The object has changed since you read it"),
    "request-timeout": (408, "The request took too long to arrive"),
    "payload-too-large": (413, "The body is too large"),
    "unsupported-media-type": (415, "This body cannot be read"),
    "hierarchy": (422, "The queue tree would break a rule"),
    "precondition-required": (428, "Say which version you edit"),
    "rate-limited": (429, "Slow down"),
    "internal": (500, "Something went wrong on our side"),
    "overloaded": (503, "The server has too much to do"),
    "cluster-unreachable": (503, "The cluster does not answer"),
}


class Problem(Exception):
    """A refusal raised by a view.

    Parameters
    ----------
    slug : a key of `TYPES`
    detail : one sentence for people
    errors : entries `{pointer, code, message, given, allowed}`
    extra : further members of the document, e.g. `current`
    """

    def __init__(
        self,
        slug: str,
        detail: str,
        *,
        errors: Sequence[Mapping[str, Any]] = (),
        extra: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.slug = slug
        self.detail = detail
        self.errors = list(errors)
        self.extra = dict(extra or {})
        self.headers = dict(headers or {})

    @property
    def status(self) -> int:
        return TYPES[self.slug][0]

    def body(self, instance: str) -> dict[str, Any]:
        """Return the problem document."""
        status, title = TYPES[self.slug]
        return {
            "type": BASE + self.slug,
            "title": title,
            "status": status,
            "detail": self.detail,
            "instance": instance,
            "requestId": request_id.current.get(),
            "errors": self.errors,
            **self.extra,
        }


def problem_response(error: Exception, context: Mapping[str, Any]) -> Response:
    """Answer for DRF: turn whatever a view raised into a problem document."""
    set_rollback()
    problem = problem_of(error)
    if problem.status >= 500 and problem.slug == "internal":
        log.error("unhandled error in a view", exc_info=error)
    request: Request = context["request"]
    response = Response(problem.body(request.path), status=problem.status, content_type=MEDIA_TYPE)
    for name, value in problem.headers.items():
        response[name] = value
    return response


def problem_of(error: Exception) -> Problem:
    """Return the problem that describes an error; unknown ones become `internal` and tell nothing."""
    if isinstance(error, Problem):
        return error
    for kind, describe in MAPPING:
        if isinstance(error, kind):
            return describe(error)
    return Problem("internal", "The request could not be completed; the log has the details.")


def _hierarchy(error: Exception) -> Problem:
    assert isinstance(error, queues.HierarchyError)
    return Problem(
        "validation" if all(f.code in VALIDATION_CODES for f in error.findings) else "hierarchy",
        str(error),
        errors=[finding.as_dict() for finding in error.findings],
    )


# Faults of a single field; the others concern the tree around the queue.
VALIDATION_CODES = frozenset(
    {
        "type",
        "name",
        "required",
        "priority",
        "duration",
        "number",
        "negative",
        "places",
        "immutable",
    }
)


def _slug(slug: str) -> Callable[[Exception], Problem]:
    return lambda error: Problem(slug, str(error))


def _unauthenticated(error: Exception) -> Problem:
    assert isinstance(error, drf.APIException)
    challenge = getattr(error, "auth_header", None)
    headers = {"WWW-Authenticate": challenge} if challenge else {}
    return Problem("unauthenticated", str(error.detail), headers=headers)


def _drf(error: Exception) -> Problem:
    assert isinstance(error, drf.APIException)
    slugs = {
        400: "bad-request", 403: "forbidden", 404: "not-found", 405: "method-not-allowed",
        406: "not-acceptable", 415: "unsupported-media-type", 429: "rate-limited",
    }  # fmt: skip
    slug = slugs.get(error.status_code)
    if slug is None:
        return Problem("internal", "The request could not be completed.")
    return Problem(slug, str(error.detail))


def _too_many(error: Exception) -> Problem:
    assert isinstance(error, kube.TooManyRequestsError)
    wait = str(max(1, round(error.retry_after_s)))
    return Problem("rate-limited", str(error), headers={"Retry-After": wait})


MAPPING: Sequence[tuple[type[Exception], Callable[[Exception], Problem]]] = (
    (queues.HierarchyError, _hierarchy),
    (queues.UnknownQueueError, _slug("not-found")),
    (queues.StaleQueueError, _slug("precondition-failed")),
    (queues.FieldOwnedError, _slug("field-owned")),
    (queues.MissingRightError, _slug("forbidden")),
    (kube.TooManyRequestsError, _too_many),
    (kube.NotFoundError, _slug("not-found")),
    (kube.AlreadyExistsError, _slug("conflict")),
    (kube.ConflictError, _slug("precondition-failed")),
    (kube.InvalidError, _slug("validation")),
    (kube.BadRequestError, _slug("validation")),
    (kube.ForbiddenError, _slug("forbidden")),
    (kube.KubeError, _slug("cluster-unreachable")),
    (drf.NotAuthenticated, _unauthenticated),
    (drf.AuthenticationFailed, _unauthenticated),
    (drf.APIException, _drf),
    (RecursionError, lambda _error: Problem("bad-request", "the body is nested too deeply")),
    (Http404, lambda error: Problem("not-found", str(error) or "Not found.")),
    (PermissionDenied, lambda error: Problem("forbidden", str(error) or "Not allowed.")),
)

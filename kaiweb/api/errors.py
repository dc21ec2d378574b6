"""Problem documents (RFC 9457): the body of every refusal of the REST API, and which exception leads to which.

The type of a problem is a stable URI that ends with its slug, a key of `TYPES`. Clients branch on the type,
people read `detail`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from rest_framework import exceptions as drf
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import set_rollback

from kaiweb import request_id
from kaiweb.api.cluster_refusals import Refusal, refused_by_rights, refused_by_schema
from kaiweb.notifications.webhook_writes import UnknownWebhookError, WebhookExistsError
from kaiweb.planning.change_sets import StateError
from kaiweb.shards.reading import UnknownShardError
from kaiweb.shards.writes import InvalidShardError
from kaiweb.usage.price_writes import PriceExistsError, UnknownPriceError
from kube import errors as kube
from queues import errors as queues
from queues.editing import accounts
from queues.tree.shape import shown
from scheduler.tools.simulate.what_if.question import QuestionError

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
    "approval-needed": (409, "An admin must approve this first"),
    "preview-stale": (409, "The preview is too old"),
    "wrong-state": (409, "Its state does not allow this"),
    "impossible": (409, "It can no longer happen"),
    "gone": (410, "It is no longer there"),
    "precondition-failed": (412, "The object has changed since you read it"),
    "request-timeout": (408, "The request took too long to arrive"),
    "payload-too-large": (413, "The body is too large"),
    "unsupported-media-type": (415, "This body cannot be read"),
    "idempotency-mismatch": (422, "The key belongs to another request"),
    "hierarchy": (422, "The queue tree would break a rule"),
    "precondition-required": (428, "Say which version you edit"),
    "rate-limited": (429, "Slow down"),
    "internal": (500, "Something went wrong on our side"),
    "overloaded": (503, "The server has too much to do"),
    "cluster-unreachable": (503, "The cluster does not answer"),
    "unavailable": (503, "Not now; nothing was changed, try again in a moment"),
}


class Problem(Exception):
    """A refusal raised by a view.

    Parameters
    ----------
    slug : a key of `TYPES`
    detail : one sentence for people
    errors : entries `{pointer, code, message, given, allowed}`
    extra : further members of the document, e.g. `current`
    headers : further headers of the response, e.g. `Retry-After`
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


def bad_parameter(name: str, expected: str, value: str, allowed: object = None) -> Problem:
    """Return the refusal of one query parameter or header."""
    shown_value = shown(value)
    detail = f"{name}: {expected}, got '{shown_value}'"
    entry = {
        "pointer": f"?{name}",
        "code": "parameter",
        "message": detail,
        "given": shown_value,
        "allowed": allowed,
    }
    return Problem("bad-request", detail, errors=[entry])


def problem_response(error: Exception, context: Mapping[str, Any]) -> Response:
    """Turn the exception of a view into a problem document (exception handler of DRF)."""
    set_rollback()
    problem = problem_of(error)
    if problem.slug == "internal":
        log.error("unhandled error in a view", exc_info=error)
    elif problem.slug == "unavailable":
        log.warning("%s %s: %s", context["request"].method, context["request"].path, error)
    request: Request = context["request"]
    response = Response(problem.body(request.path), status=problem.status, content_type=MEDIA_TYPE)
    for name, value in problem.headers.items():
        response[name] = value
    return response


def problem_of(error: Exception) -> Problem:
    """Return the problem that describes an error; an unknown error becomes `internal` without details."""
    if isinstance(error, Problem):
        return error
    for kind, describe in DESCRIPTIONS:
        if isinstance(error, kind):
            return describe(error)
    return Problem("internal", "The request could not be completed; the log has the details.")


def _hierarchy(error: Exception) -> Problem:
    assert isinstance(error, queues.HierarchyError)
    codes = {finding.code for finding in error.findings}
    if "exists" in codes:
        slug = "conflict"
    elif codes <= SINGLE_FIELD_CODES:
        slug = "validation"
    else:
        slug = "hierarchy"
    return Problem(slug, str(error), errors=[finding.as_dict() for finding in error.findings])


# Codes of findings in a single field; the others concern the tree around the queue.
SINGLE_FIELD_CODES = frozenset(
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
        "unknown-field",
        "length",
        "too-many",
        "label-key",
        "label-value",
    }
)


def _with_findings(error: Exception) -> Problem:
    assert isinstance(error, QuestionError | InvalidShardError)
    entries = [finding.as_dict() for finding in error.findings]
    return Problem("validation", str(error), errors=entries)


def _account_field(error: Exception) -> Problem:
    assert isinstance(error, accounts.AccountFieldError)
    entry = {
        "pointer": f"/{error.field}",
        "code": "account",
        "message": str(error),
        "given": None,
        "allowed": None,
    }
    return Problem("validation", str(error), errors=[entry])


def _with_slug(slug: str) -> Callable[[Exception], Problem]:
    return lambda error: Problem(slug, str(error))


def _unauthenticated(error: Exception) -> Problem:
    assert isinstance(error, drf.APIException)
    challenge = getattr(error, "auth_header", None)
    headers = {"WWW-Authenticate": challenge} if challenge else {}
    return Problem("unauthenticated", str(error.detail), headers=headers)


def _api_exception(error: Exception) -> Problem:
    assert isinstance(error, drf.APIException)
    slugs = {
        400: "bad-request", 403: "forbidden", 404: "not-found", 405: "method-not-allowed",
        406: "not-acceptable", 415: "unsupported-media-type", 429: "rate-limited",
    }  # fmt: skip
    slug = slugs.get(error.status_code)
    if slug is None:
        return Problem("internal", "The request could not be completed.")
    return Problem(slug, str(error.detail))


def _from_refusal(read: Callable[[Exception], Refusal]) -> Callable[[Exception], Problem]:
    def describe(error: Exception) -> Problem:
        refusal = read(error)
        return Problem(refusal.slug, refusal.detail, errors=refusal.errors)

    return describe


def _database(error: Exception) -> Problem:
    # The message of the database may hold file names and statements, so it only goes to the log.
    return Problem(
        "unavailable",
        "The database does not answer in time; nothing was changed.",
        headers={"Retry-After": "2"},
    )


def _body_too_large(error: Exception) -> Problem:
    return Problem(
        "payload-too-large",
        f"the body: expected at most {settings.DATA_UPLOAD_MAX_MEMORY_SIZE} bytes, got more",
    )


def _too_many_requests(error: Exception) -> Problem:
    assert isinstance(error, kube.TooManyRequestsError)
    # The API server does not tell its limit, only when to ask again.
    wait = str(max(1, round(error.retry_after_s)))
    headers = {"Retry-After": wait, "RateLimit": f'"cluster";r=0;t={wait}'}
    return Problem("rate-limited", str(error), headers=headers)


# The first entry that fits an exception describes it, so a class stands above its base classes.
DESCRIPTIONS: Sequence[tuple[type[Exception], Callable[[Exception], Problem]]] = (
    (queues.HierarchyError, _hierarchy),
    (QuestionError, _with_findings),
    (InvalidShardError, _with_findings),
    (UnknownShardError, _with_slug("not-found")),
    (StateError, _with_slug("wrong-state")),
    (accounts.LastAdminError, _with_slug("wrong-state")),
    (accounts.AccountExistsError, _with_slug("conflict")),
    (accounts.AccountFieldError, _account_field),
    (WebhookExistsError, _with_slug("conflict")),
    (UnknownWebhookError, _with_slug("not-found")),
    (PriceExistsError, _with_slug("conflict")),
    (UnknownPriceError, _with_slug("not-found")),
    (queues.UnknownQueueError, _with_slug("not-found")),
    (queues.StaleQueueError, _with_slug("precondition-failed")),
    (queues.FieldOwnedError, _with_slug("field-owned")),
    (queues.ApprovalNeededError, _with_slug("approval-needed")),
    (queues.MissingRightError, _with_slug("forbidden")),
    (
        queues.BusyError,
        lambda error: Problem("unavailable", str(error), headers={"Retry-After": "1"}),
    ),
    (kube.TooManyRequestsError, _too_many_requests),
    (kube.NotFoundError, _with_slug("not-found")),
    (kube.AlreadyExistsError, _with_slug("conflict")),
    (kube.ConflictError, _with_slug("precondition-failed")),
    (kube.InvalidError, _from_refusal(refused_by_schema)),
    (kube.BadRequestError, _from_refusal(refused_by_schema)),
    (kube.ForbiddenError, _from_refusal(refused_by_rights)),
    (kube.KubeError, _with_slug("cluster-unreachable")),
    (drf.NotAuthenticated, _unauthenticated),
    (drf.AuthenticationFailed, _unauthenticated),
    (drf.APIException, _api_exception),
    (OperationalError, _database),
    (InterfaceError, _database),
    (RequestDataTooBig, _body_too_large),
    (SuspiciousOperation, lambda _error: Problem("bad-request", "the request is malformed")),
    (MultiPartParserError, lambda _error: Problem("bad-request", "the form cannot be read")),
    (UnreadablePostError, lambda _error: Problem("bad-request", "the body ended too early")),
    (RecursionError, lambda _error: Problem("bad-request", "the body is nested too deeply")),
    (Http404, lambda error: Problem("not-found", str(error) or "Not found.")),
    (PermissionDenied, lambda error: Problem("forbidden", str(error) or "Not allowed.")),
)

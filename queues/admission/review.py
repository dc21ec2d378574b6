"""Decode an AdmissionReview, call a handler, and encode its `Verdict` as the response."""

from __future__ import annotations

import base64
import copy
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jsonpatch

from queues.admission.bodies import Json

log = logging.getLogger(__name__)

API_VERSION = "admission.k8s.io/v1"


class DeniedError(Exception):
    """The object is refused; users read the text."""


class BadReviewError(ValueError):
    """The body is not an AdmissionReview."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewRequest:
    """The request of an AdmissionReview."""

    uid: str
    operation: str
    namespace: str
    name: str
    object: Json
    old_object: Json
    is_dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of a handler; a changed object becomes a JSON patch."""

    message: str = ""
    warnings: tuple[str, ...] = ()
    changed: Json | None = None

    @property
    def is_allowed(self) -> bool:
        return not self.message


ALLOWED = Verdict()
Handler = Callable[[ReviewRequest], Verdict]


def denied(message: str, warnings: tuple[str, ...] = ()) -> Verdict:
    return Verdict(message=message, warnings=warnings)


def respond(body: bytes, handler: Handler) -> bytes:
    """Return the response to an AdmissionReview.

    Raises
    ------
    BadReviewError : the body is not an AdmissionReview v1 with a request, or is nested too deeply
    """
    try:
        return _responded(body, handler)
    except RecursionError as error:
        raise BadReviewError("the review is nested too deeply") from error


def _responded(body: bytes, handler: Handler) -> bytes:
    request = read_request(body)
    try:
        # Handlers change the object in place; the patch needs the original.
        verdict = handler(_copied(request))
    except DeniedError as error:
        verdict = denied(str(error))
    return json.dumps(_answer(request, verdict)).encode()


def read_request(body: bytes) -> ReviewRequest:
    """Return the request of a review."""
    try:
        review = json.loads(body)
    except ValueError as error:
        raise BadReviewError(f"the body is not JSON: {error}") from error
    request = review.get("request") if isinstance(review, dict) else None
    if not isinstance(request, dict) or not isinstance(request.get("uid"), str):
        raise BadReviewError("expected an AdmissionReview with a request that has a uid")
    return ReviewRequest(
        uid=request["uid"],
        operation=str(request.get("operation", "")),
        namespace=str(request.get("namespace") or ""),
        name=str(request.get("name") or ""),
        object=_object(request.get("object")),
        old_object=_object(request.get("oldObject")),
        is_dry_run=request.get("dryRun") is True,
    )


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _copied(request: ReviewRequest) -> ReviewRequest:
    return replace(request, object=copy.deepcopy(request.object))


def _answer(request: ReviewRequest, verdict: Verdict) -> Json:
    response: Json = {"uid": request.uid, "allowed": verdict.is_allowed}
    if verdict.message:
        response["status"] = {"code": 403, "reason": "Forbidden", "message": verdict.message}
    if verdict.warnings:
        response["warnings"] = list(verdict.warnings)
    if verdict.is_allowed and verdict.changed is not None:
        patch = jsonpatch.make_patch(request.object, verdict.changed).patch
        if patch:
            response["patchType"] = "JSONPatch"
            response["patch"] = base64.b64encode(json.dumps(patch).encode()).decode()
    return {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response}

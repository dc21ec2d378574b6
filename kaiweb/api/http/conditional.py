"""Conditional GET: an answer that the caller has already is a 304 without a body.

Every answer to a GET gets an ETag of its content. Where the view has set a strong ETag, the version that people edit, the
digest of the content follows it after a dot: `"7-0a1b2c3d4e5f.9f8e7d6c5b4a3f2e"`. `If-None-Match` compares the
whole tag, `If-Match` only what stands before the dot (`kaiweb.api.versions`), so that a new status makes a
new answer and no conflict.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponseNotModified
from django.http.response import HttpResponseBase
from django.utils.http import parse_etags
from rest_framework.response import Response

DIGEST_LENGTH = 16
#: The caller's CSRF token is in one, and the other does not end.
UNCONDITIONAL = frozenset({"getMe", "streamEvents"})
HEADER: dict[str, Any] = {
    "in": "header",
    "name": "If-None-Match",
    "schema": {"type": "string"},
    "description": "ETag of an earlier answer; if the answer is still the same, it is a 304 without a body.",
}
NOT_MODIFIED = {"description": "The answer is the one whose ETag was sent."}
ETAG = {"ETag": {"description": "The version of the answer.", "schema": {"type": "string"}}}


def weak_tag(content: bytes) -> str:
    """Return the ETag of some content."""
    return f'W/"{_digest(content)}"'


def is_current(request: HttpRequest, tag: str) -> bool:
    """Return whether the caller has the answer with this ETag already."""
    tags = parse_etags(request.headers.get("If-None-Match", ""))
    return tags == ["*"] or tag.removeprefix("W/") in (sent.removeprefix("W/") for sent in tags)


class ConditionalGetMiddleware:
    """Set the ETag of answers of REST, and send no body to a caller who has it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self._get_response(request)
        is_complete = request.method == "GET" and response.status_code == 200
        if not is_complete or not isinstance(response, Response) or _is_unstored(response):
            return response
        tag = response.get("ETag", "")
        if not tag:
            response["ETag"] = weak_tag(response.content)
        elif tag.startswith('"'):
            response["ETag"] = f'{tag[:-1]}.{_digest(response.content)}"'
        if not is_current(request, response["ETag"]):
            return response
        return HttpResponseNotModified(headers={"ETag": response["ETag"]})


def describe(
    result: dict[str, Any], generator: object, request: object, public: bool
) -> dict[str, Any]:
    """Add the header and the answer 304 to each GET of the OpenAPI document."""
    for operations in result["paths"].values():
        operation = operations.get("get")
        if operation is None or operation["operationId"] in UNCONDITIONAL:
            continue
        operation.setdefault("parameters", []).append(HEADER)
        operation["responses"]["200"]["headers"] = ETAG
        operation["responses"]["304"] = NOT_MODIFIED
    return result


def _is_unstored(response: Response) -> bool:
    return response.streaming or "no-store" in response.get("Cache-Control", "")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:DIGEST_LENGTH]

"""Give every request an id, which appears in its answer, in problem bodies, in the audit log and in the log.

It is that of the header Request-Id, or the trace id of `traceparent` (W3C Trace Context), or a new one.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from contextvars import ContextVar

from django.http import HttpRequest, HttpResponse

HEADER = "Request-Id"
ACCEPTABLE = re.compile(r"[A-Za-z0-9._-]{1,64}")
TRACEPARENT = re.compile(r"[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
current: ContextVar[str] = ContextVar("request_id", default="")


class RequestIdMiddleware:
    """Takes the id of the caller if it is harmless, else a new one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request_id = _sent_id(request) or uuid.uuid4().hex
        token = current.set(request_id)
        try:
            response = self._get_response(request)
        finally:
            current.reset(token)
        response[HEADER] = request_id
        return response


def _sent_id(request: HttpRequest) -> str:
    """Return the id that the caller sent; empty if there is none that can be used."""
    sent_id = request.headers.get(HEADER, "")
    if ACCEPTABLE.fullmatch(sent_id):
        return sent_id
    trace = TRACEPARENT.fullmatch(request.headers.get("traceparent", ""))
    return trace[1] if trace else ""

"""Give every request an id, which appears in its answer, in problem bodies and in the log."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from contextvars import ContextVar

from django.http import HttpRequest, HttpResponse

HEADER = "Request-Id"
ACCEPTABLE = re.compile(r"[A-Za-z0-9._-]{1,64}")
current: ContextVar[str] = ContextVar("request_id", default="")


class RequestIdMiddleware:
    """Takes the id of the caller if it is harmless, else a new one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        sent_id = request.headers.get(HEADER, "")
        request_id = sent_id if ACCEPTABLE.fullmatch(sent_id) else uuid.uuid4().hex
        token = current.set(request_id)
        try:
            response = self._get_response(request)
        finally:
            current.reset(token)
        response[HEADER] = request_id
        return response

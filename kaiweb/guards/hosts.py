"""Refuse requests for hosts that are not in ALLOWED_HOSTS, before any other middleware reads the host.

Django refuses them too, but with a page and a kilobyte of log for each.
"""

from __future__ import annotations

from collections.abc import Callable

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, JsonResponse

from kaiweb.api.errors import MEDIA_TYPE, Problem
from queues.access.http_guard import RareLog

LOGGED_HOST_LENGTH = 60
DETAIL = "this host is not served here; KAIWEB_HOSTS lists those that are"


class AllowedHostMiddleware:
    """Answer 400 unless the Host header is among `ALLOWED_HOSTS`."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response
        self._refused = RareLog("requests for a host that is not in KAIWEB_HOSTS")

    def __call__(self, request: HttpRequest) -> HttpResponse:
        try:
            request.get_host()
        except DisallowedHost:
            self._refused.note(ascii(request.META.get("HTTP_HOST", "")[:LOGGED_HOST_LENGTH]))
            return _refusal(request)
        return self._get_response(request)


def _refusal(request: HttpRequest) -> HttpResponse:
    if request.path.startswith("/api/"):
        body = Problem("bad-request", DETAIL).body(request.path)
        return JsonResponse(body, status=400, content_type=MEDIA_TYPE)
    return HttpResponse(f"Bad request: {DETAIL}.\n", content_type="text/plain", status=400)

"""Set the headers that tell caches what an answer of the API depends on, and that it is private."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers

PREFIX = "/api/"


class ApiHeadersMiddleware:
    """Set Vary and, unless the view chose its own, Cache-Control.

    The caller may keep an answer with an ETag, but must ask whether it is still valid.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        if not request.path.startswith(PREFIX) or "Cache-Control" in response:
            return response
        patch_vary_headers(response, ("Accept", "Authorization", "Cookie"))
        response["Cache-Control"] = "private, no-cache" if "ETag" in response else "no-store"
        return response

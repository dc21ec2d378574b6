"""Compress the JSON of the API."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware


class JsonGZipMiddleware(GZipMiddleware):
    """Compress JSON; nothing else, and no answer with a strong ETag.

    Pages carry a CSRF token, whose length must not be measurable, and event streams must not be held back. Compression
    would make a strong ETag weak, but the If-Match of a later write must name the strong one.
    """

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        is_json = response.get("Content-Type", "").partition(";")[0].endswith("json")
        has_strong_etag = response.get("ETag", "").startswith('"')
        if not isinstance(response, HttpResponse) or not is_json or has_strong_etag:
            return response
        compressed: HttpResponseBase = super().process_response(request, response)
        return compressed

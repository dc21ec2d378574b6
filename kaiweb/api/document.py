"""Serve `/api/v1/openapi.json`, which each process generates once and then keeps in memory.

The document is generated under a lock, because drf-spectacular does not lock while it loads its extensions:
it fails if two threads make the first call at the same time.
"""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import condition, require_safe
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer

CACHE_CONTROL = "public, max-age=300"


@dataclass(frozen=True, slots=True)
class OpenApiDocument:
    """The rendered document and its ETag."""

    body: bytes
    etag: str


_lock = threading.Lock()
_document: OpenApiDocument | None = None


def document() -> OpenApiDocument:
    """Return the document; generate it at the first call."""
    global _document
    with _lock:
        if _document is None:
            schema = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
            body = OpenApiJsonRenderer().render(schema)
            _document = OpenApiDocument(body, f'"{hashlib.sha256(body).hexdigest()[:32]}"')
        return _document


@require_safe
@condition(etag_func=lambda _request: document().etag)
def openapi(_request: HttpRequest) -> HttpResponse:
    """Answer with the document, which is the same for every caller."""
    response = HttpResponse(document().body, content_type=OpenApiJsonRenderer.media_type)
    response["Cache-Control"] = CACHE_CONTROL
    return response

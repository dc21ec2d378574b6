"""Choose the representation of an answer: JSON, also for clients that accept only the problem format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rest_framework.exceptions import NotAcceptable
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from kaiweb.api.http.renderers import ProblemRenderer


class JsonNegotiation(DefaultContentNegotiation):
    """Accepts `application/problem+json` as a way to ask for JSON; only refusals then carry that type."""

    def select_renderer(
        self,
        request: Request,
        renderers: Iterable[BaseRenderer],
        format_suffix: str | None = None,
    ) -> tuple[BaseRenderer, str]:
        """Return the renderer and its media type."""
        candidates: Sequence[Any] = list(renderers)
        try:
            choice: tuple[BaseRenderer, str] = super().select_renderer(
                request, candidates, format_suffix
            )
            return choice
        except NotAcceptable:
            accepted = (part.split(";")[0].strip() for part in self._header(request).split(","))
            if ProblemRenderer.media_type not in accepted:
                raise
            return candidates[0], candidates[0].media_type

    def _header(self, request: Request) -> str:
        return request.headers.get("Accept", "")

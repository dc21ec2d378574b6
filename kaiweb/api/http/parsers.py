"""Parse request bodies: JSON by RFC 8259, each key at most once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser


class StrictJSONParser(BaseParser):
    """JSON in UTF-8 without NaN, Infinity and repeated keys (the first value would be lost silently)."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the decoded body.

        Raises
        ------
        ParseError : the body is not such JSON
        RequestDataTooBig : the body is larger than Django reads into memory
        """
        max_bytes = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        raw = stream.read(max_bytes + 1)
        if len(raw) > max_bytes:
            raise RequestDataTooBig(f"expected at most {max_bytes} bytes, got more")
        try:
            return json.loads(raw.decode(), parse_constant=_constant, object_pairs_hook=_object)
        except ValueError as error:
            raise ParseError(f"the body is not JSON that can be read: {error}") from error


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"the key '{key[:40]}' occurs twice in one object")
        result[key] = value
    return result

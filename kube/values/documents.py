"""JSON that users put into annotations and ConfigMaps, decoded in bounded time and depth."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from kube.errors import BadValueError

T = TypeVar("T")

#: All annotations of an object together may have 256 KiB; a ConfigMap has one MiB.
MAX_LENGTH = 1 << 20


def parse_json(text: str, as_type: type[T] | Any = Any) -> Any:
    """Return a document, of a type if one is named.

    Raises
    ------
    BadValueError : too long, too deep, no JSON, or of another shape
    """
    if len(text) > MAX_LENGTH:
        raise BadValueError(f"expected JSON of at most {MAX_LENGTH} characters, got {len(text)}")
    try:
        return msgspec.json.decode(text, type=as_type)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise BadValueError(f"expected JSON: {error}") from error
    except RecursionError as error:
        raise BadValueError("expected JSON, got one that is nested too deeply") from error

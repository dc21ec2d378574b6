"""Parts of JSON pointers (RFC 6901)."""

from __future__ import annotations


def pointer_part(key: str) -> str:
    """Return a key as one part of a pointer, such as `a~1b` for `a/b`."""
    return key.replace("~", "~0").replace("/", "~1")


def key_of_part(part: str) -> str:
    """Return the key that one part of a pointer stands for."""
    return part.replace("~1", "/").replace("~0", "~")

"""The condition `If-Match` of a write: the version that the caller edits."""

from __future__ import annotations

import re

from rest_framework.request import Request

from kaiweb.api.errors import Problem
from queues.tree.shape import shown

# After the dot follows the digest of the answer (`kaiweb.api.http.conditional`), which an edit does not depend on.
TAG = re.compile(r'"([0-9A-Za-z_-]+)(?:\.[0-9a-f]+)?"')


def expected_tag(request: Request, kind_text: str, *, is_needed: bool = True) -> str:
    """Return the tag of `If-Match`; empty without one, if none is needed.

    Raises
    ------
    Problem : there is none and one is needed, or it is no quoted ETag
    """
    condition = request.headers.get("If-Match", "")
    if not condition:
        if is_needed:
            text = f"send If-Match with the ETag of the {kind_text} that you have read"
            raise Problem("precondition-required", text)
        return ""
    match = TAG.fullmatch(condition)
    if match is None:
        raise Problem("bad-request", f"If-Match: expected a quoted ETag, got '{shown(condition)}'")
    return match[1]

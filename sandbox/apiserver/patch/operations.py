"""JSON patch (RFC 6902): a list of operations, applied in order, all or nothing."""

from __future__ import annotations

from typing import Any

import jsonpatch

from sandbox.apiserver.model import errors

Obj = dict[str, Any]


def apply_operations(obj: Obj, operations: Any) -> Obj:
    """Return the patched object; `obj` is not changed.

    Raises
    ------
    ApiError : 400 for a malformed patch, 422 when a `test` fails or a path does not exist
    """
    if not isinstance(operations, list):
        raise errors.bad_request(
            "error decoding patch: json: cannot unmarshal object into Go value of type "
            "[]handlers.jsonPatchOp"
        )
    try:
        patched: Obj = jsonpatch.JsonPatch(operations).apply(obj)
    except jsonpatch.InvalidJsonPatch as error:
        raise errors.bad_request(f"error decoding patch: {error}") from error
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
        raise _refused() from error
    if not isinstance(patched, dict):
        raise _refused()
    return patched


def _refused() -> errors.ApiError:
    message = "the server rejected our request due to an error in our request"
    return errors.ApiError(422, "Invalid", message, details={})

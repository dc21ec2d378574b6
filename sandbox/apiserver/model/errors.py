"""Errors in the wording of the Kubernetes API: a `Status` object with code, reason, message and causes.

Clients branch on `reason` and people read `message`, so both are copied from the real server literally.
The contract tests compare them with a real kube-apiserver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

Obj = dict[str, Any]

# The reason of an error that is sent as its bare message.
PLAIN_TEXT = "PlainText"


@dataclass(frozen=True, slots=True)
class Cause:
    """One invalid field of a request."""

    field: str
    reason: str
    message: str

    @property
    def sentence(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


def required(field: str, detail: str = "") -> Cause:
    return Cause(field, "FieldValueRequired", "Required value" + (f": {detail}" if detail else ""))


def invalid_value(field: str, value: object, detail: str) -> Cause:
    return Cause(field, "FieldValueInvalid", f"Invalid value: {quoted(value)}: {detail}")


def wrong_type(field: str, value: object, detail: str) -> Cause:
    return Cause(field, "FieldValueTypeInvalid", f"Invalid value: {quoted(value)}: {detail}")


def unsupported(field: str, value: object, allowed: Sequence[object]) -> Cause:
    listing = ", ".join(quoted(choice) for choice in allowed)
    message = f"Unsupported value: {quoted(value)}: supported values: {listing}"
    return Cause(field, "FieldValueNotSupported", message)


def field_forbidden(field: str, detail: str) -> Cause:
    return Cause(field, "FieldValueForbidden", f"Forbidden: {detail}")


def duplicate(field: str, value: object) -> Cause:
    return Cause(field, "FieldValueDuplicate", f"Duplicate value: {quoted(value)}")


def too_many_items(field: str, count: int, most: int) -> Cause:
    message = f"Too many: {count}: must have at most {most} items"
    return Cause(field, "FieldValueTooMany", message)


def quoted(value: object) -> str:
    """Return a value as field errors show it: strings in quotes, the rest as JSON."""
    if isinstance(value, (dict, list)):
        return orjson.dumps(value).decode()
    return orjson.dumps(value, default=str).decode()


class ApiError(Exception):
    """A request that is refused; `status` is the body that the client receives."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Obj | None = None,
        headers: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.details = details
        self.headers = tuple(headers)

    @property
    def status(self) -> Obj:
        body: Obj = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": str(self),
        }
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = self.details
        body["code"] = self.code
        return body


def _qualified(plural: str, group: str) -> str:
    return f"{plural}.{group}" if group else plural


def _details(name: str, group: str, plural: str) -> Obj:
    details: Obj = {"name": name} if name else {}
    if group:
        details["group"] = group
    details["kind"] = plural
    return details


def not_found(group: str, plural: str, name: str) -> ApiError:
    message = f'{_qualified(plural, group)} "{name}" not found'
    return ApiError(404, "NotFound", message, details=_details(name, group, plural))


def no_such_path(*, is_known: bool = True) -> ApiError:
    """Return the 404 of an unknown path: a Status below a served group version, else plain text."""
    if not is_known:
        return ApiError(404, PLAIN_TEXT, "404 page not found\n")
    message = "the server could not find the requested resource"
    return ApiError(404, "NotFound", message, details={})


def already_exists(group: str, plural: str, name: str, *, is_terminating: bool = False) -> ApiError:
    message = f'{_qualified(plural, group)} "{name}" already exists'
    if is_terminating:
        message = f"object is being deleted: {message}"
    return ApiError(409, "AlreadyExists", message, details=_details(name, group, plural))


def conflict(group: str, plural: str, name: str, why: str) -> ApiError:
    message = f'Operation cannot be fulfilled on {_qualified(plural, group)} "{name}": {why}'
    return ApiError(409, "Conflict", message, details=_details(name, group, plural))


def stale(group: str, plural: str, name: str) -> ApiError:
    return conflict(
        group,
        plural,
        name,
        "the object has been modified; please apply your changes to the latest version and try again",
    )


def invalid(group: str, kind: str, name: str, causes: Sequence[Cause]) -> ApiError:
    sentences = list(dict.fromkeys(cause.sentence for cause in causes))
    text = sentences[0] if len(sentences) == 1 else f"[{', '.join(sentences)}]"
    details = _details(name, group, kind)
    if not kind:
        del details["kind"]
    details["causes"] = [
        {"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in causes
    ]
    message = f'{_qualified(kind, group)} "{name}" is invalid: {text}'
    return ApiError(422, "Invalid", message, details=details)


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def forbidden(group: str, plural: str, name: str, why: str) -> ApiError:
    quoted_name = f' "{name}"' if name else ""
    message = f"{_qualified(plural, group)}{quoted_name} is forbidden: {why}"
    return ApiError(403, "Forbidden", message, details=_details(name, group, plural))


def unclassified(message: str) -> ApiError:
    """Return a 500 without a reason, as the real server reports errors its code does not expect."""
    return ApiError(500, "", message)


def expired(message: str) -> ApiError:
    return ApiError(410, "Expired", message)


def method_not_allowed() -> ApiError:
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message, details={})


def unsupported_body(accepted: Sequence[str]) -> ApiError:
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        f"{', '.join(accepted)}"
    )
    return ApiError(415, "UnsupportedMediaType", message)


def not_acceptable(accepted: Sequence[str]) -> ApiError:
    message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(accepted)}"
    return ApiError(406, "NotAcceptable", message, details={})


def too_many(message: str, causes: Sequence[Obj] = (), retry_after_s: int = 0) -> ApiError:
    details: Obj = {"causes": list(causes)} if causes else {}
    headers: list[tuple[bytes, bytes]] = []
    if retry_after_s:
        details["retryAfterSeconds"] = retry_after_s
        headers.append((b"retry-after", str(retry_after_s).encode()))
    return ApiError(429, "TooManyRequests", message, details=details, headers=headers)


def internal(message: str) -> ApiError:
    return ApiError(500, "InternalError", f"Internal error occurred: {message}")

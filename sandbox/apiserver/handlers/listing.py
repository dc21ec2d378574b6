"""The options of a list or a watch: which combinations a real server refuses."""

from __future__ import annotations

from sandbox.apiserver.model import errors
from sandbox.apiserver.model.errors import Cause
from sandbox.apiserver.wire.request import Request

MATCH = "resourceVersionMatch"
INITIAL = "sendInitialEvents"


def check_options(request: Request, *, is_watch: bool) -> None:
    """Refuse options that contradict each other.

    Raises
    ------
    ApiError : 422 that names every option and what it needs
    """
    causes = _watch_causes(request) if is_watch else _list_causes(request)
    if causes:
        raise errors.invalid("meta.k8s.io", "ListOptions", "", causes)


def _list_causes(request: Request) -> list[Cause]:
    params = request.params
    match, version = params.get(MATCH, ""), params.get("resourceVersion", "")
    causes = []
    if match:
        if not version:
            detail = f"{MATCH} is forbidden unless resourceVersion is provided"
            causes.append(errors.field_forbidden(MATCH, detail))
        if params.get("continue"):
            detail = f"{MATCH} is forbidden when continue is provided"
            causes.append(errors.field_forbidden(MATCH, detail))
        if match not in ("Exact", "NotOlderThan"):
            causes.append(errors.unsupported(MATCH, match, ("Exact", "NotOlderThan", "")))
        elif match == "Exact" and version == "0":
            detail = f'{MATCH} "exact" is forbidden for resourceVersion "0"'
            causes.append(errors.field_forbidden(MATCH, detail))
    if INITIAL in params:
        causes.append(errors.field_forbidden(INITIAL, f"{INITIAL} is forbidden for list"))
    return causes


def _watch_causes(request: Request) -> list[Cause]:
    match = request.params.get(MATCH, "")
    if INITIAL in request.params:
        if match != "NotOlderThan":
            detail = f"{INITIAL} requires setting {MATCH} to NotOlderThan"
            return [errors.field_forbidden(MATCH, detail)]
    elif match:
        detail = f"{MATCH} is forbidden for watch unless {INITIAL} is provided"
        return [errors.field_forbidden(MATCH, detail)]
    return []

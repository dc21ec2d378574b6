"""What all views share: who asks, and which query parameters they may use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rest_framework.request import Request
from rest_framework.views import APIView

from kaiweb.api.errors import Problem
from queues.models import ApiToken
from queues.rights import Rights, rights_of


class View(APIView):
    """An API view that refuses query parameters it does not know, for each method.

    `accepts` maps a method to the names it accepts; a misspelt filter that is silently ignored
    returns the wrong rows, so it is an error.
    """

    accepts: ClassVar[Mapping[str, Sequence[str]]] = {}

    def initial(self, request: Request, *args: object, **kwargs: object) -> None:
        """Authenticate first, so that strangers learn nothing about parameters."""
        super().initial(request, *args, **kwargs)
        if "\x00" in request.path or any("\x00" in text for text in _texts(request)):
            raise Problem("bad-request", "a NUL character is in no name and no filter")
        allowed = self.accepts.get((request.method or "").lower(), ())
        unknown = sorted(set(request.query_params) - set(allowed))
        if unknown:
            known = ", ".join(sorted(allowed)) or "none"
            raise Problem(
                "bad-request",
                f"unknown query parameter '{unknown[0]}'; known here: {known}",
                errors=[
                    {
                        "pointer": f"?{name}",
                        "code": "unknown-parameter",
                        "message": f"'{name}' is not a parameter of this call",
                        "given": name,
                        "allowed": sorted(allowed),
                    }
                    for name in unknown
                ],
            )


def _texts(request: Request) -> list[str]:
    return [text for values in request.query_params.lists() for text in (values[0], *values[1])]


def caller(request: Request) -> Rights:
    """Return the rights of whoever sent the request."""
    token = request.auth if isinstance(request.auth, ApiToken) else None
    return rights_of(request.user, token)


def flag(request: Request, name: str) -> bool:
    """Read a yes/no query parameter; absent means no."""
    raw = request.query_params.get(name)
    if raw is None or raw == "false":
        return False
    if raw in ("true", ""):
        return True
    raise Problem("bad-request", f"{name}: expected true or false, got '{raw}'")


def words(request: Request, name: str) -> list[str]:
    """Read a comma separated parameter that may also be repeated."""
    values = request.query_params.getlist(name)
    return [part for value in values for part in value.split(",") if part]

"""One content security policy for every page: scripts only from our origin, inline only data.

Styles may be inline because Mantine sets style variables on elements. JSON data blocks are not executed and
need no nonce.
"""

from __future__ import annotations

from collections.abc import Callable

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse

POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "font-src 'self' data:",
        "connect-src 'self'{live}",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)


class ContentSecurityPolicyMiddleware:
    """Set the header unless a view chose its own."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        response.headers.setdefault("Content-Security-Policy", POLICY.format(live=_live(request)))
        return response


def _live(request: HttpRequest) -> str:
    """Return the origin of our live socket, because older browsers do not count it as 'self'."""
    try:
        host = request.get_host()
    except DisallowedHost:
        return ""
    return f" {'wss' if request.is_secure() else 'ws'}://{host}"

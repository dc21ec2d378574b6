"""The REST API as a script uses it: log in with the form, keep the cookies, send the CSRF token."""

from __future__ import annotations

import json
import urllib.parse
import urllib.request
from http.cookiejar import CookieJar
from typing import Any

from tests.integration.stack import Stack


class Session:
    """A logged-in person."""

    def __init__(self, stack: Stack) -> None:
        self._url = stack.url
        self._cookies = CookieJar()
        self._opener = urllib.request.build_opener(
            urllib.request.HTTPCookieProcessor(self._cookies)
        )
        self._send("GET", "/login")
        form = urllib.parse.urlencode(
            {
                "username": "admin",
                "password": stack.password,
                "csrfmiddlewaretoken": self._token(),
            }
        ).encode()
        self._send("POST", "/login", form, "application/x-www-form-urlencoded")

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[Any, str]:
        """Send JSON; return the decoded answer and its ETag."""
        data = None if body is None else json.dumps(body).encode()
        answer, etag = self._send(method, f"/api/v1/{path}", data, "application/json", headers)
        return json.loads(answer), etag

    def send(self, method: str, path: str) -> None:
        """Send a request without a body whose answer has none."""
        self._send(method, f"/api/v1/{path}")

    def cookies(self) -> str:
        """Return the header `Cookie` of this log-in."""
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in self._cookies)

    def _token(self) -> str:
        return next((c.value or "" for c in self._cookies if c.name == "csrftoken"), "")

    def _send(
        self,
        method: str,
        path: str,
        data: bytes | None = None,
        content_type: str = "",
        headers: dict[str, str] | None = None,
    ) -> tuple[bytes, str]:
        request = urllib.request.Request(self._url + path, data=data, method=method)
        sent = {"X-CSRFToken": self._token(), "Referer": self._url, "Content-Type": content_type}
        for name, value in {**sent, **(headers or {})}.items():
            if value:
                request.add_header(name.replace("_", "-"), value)
        with self._opener.open(request, timeout=30) as answer:
            return answer.read(), answer.headers.get("ETag", "")

"""Call the REST API; every refusal becomes an error that says what to do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

import urllib3

from kaiweb.terminal.access import CREATE_TOKEN, Access
from kaiweb.terminal.errors import TerminalError

CONNECT_S, READ_S = 5.0, 30.0
#: Rows of one page of a list.
PAGE = 1000

Json = dict[str, Any]

#: Status -> what to do, where the detail of the answer does not say it.
ADVICE: Mapping[int, str] = {
    401: f"{CREATE_TOKEN} KAIWEB_TOKEN",
    403: "use a token with more scopes, or ask an admin for the role",
    412: "somebody changed it meanwhile: look at it again, then repeat the command",
    429: "wait a few seconds and repeat the command",
}


class RefusedError(TerminalError):
    """The API refused a request.

    Attributes
    ----------
    status : the HTTP status
    """

    def __init__(self, status: int, message: str, advice: str) -> None:
        super().__init__(message, advice)
        self.status = status


@dataclass(slots=True)
class Rest:
    """A client of one installation."""

    access: Access
    _pool: urllib3.PoolManager = field(init=False)

    def __post_init__(self) -> None:
        self._pool = urllib3.PoolManager(
            retries=False,
            timeout=urllib3.Timeout(connect=CONNECT_S, read=READ_S),
            headers={"Authorization": f"Bearer {self.access.token}"},
        )

    def get(self, path: str, **parameters: str) -> Json:
        """Return the answer of a GET below /api/v1/."""
        query = f"?{urlencode(parameters)}" if parameters else ""
        return self._call("GET", path + query)

    def items(self, path: str, **parameters: str) -> list[Json]:
        """Return the rows of all pages of a list."""
        rows: list[Json] = []
        page: Json = {"next": ""}
        while page["next"] is not None:
            cursor = {"cursor": page["next"]} if page["next"] else {}
            page = self.get(path, limit=str(PAGE), **parameters, **cursor)
            rows += page["items"]
        return rows

    def post(self, path: str, body: Json, **headers: str) -> Json:
        """Return the answer of a POST."""
        return self._call("POST", path, body, headers)

    def patch(self, path: str, body: Json, **headers: str) -> Json:
        """Return the answer of a PATCH."""
        return self._call("PATCH", path, body, headers)

    def _call(
        self, method: str, path: str, body: Json | None = None, headers: Mapping[str, str] = {}
    ) -> Json:
        sent = {**self._pool.headers, "Content-Type": "application/json"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        url = f"{self.access.url}/api/v1/{path}"
        try:
            answer = self._pool.request(
                method, url, headers=sent, body=None if body is None else json.dumps(body)
            )
        except urllib3.exceptions.HTTPError as error:
            raise TerminalError(
                f"no answer from {self.access.url}: {_cause(error)}",
                "start kaiweb with `make run` or `kaiweb up`, or correct KAIWEB_URL",
            ) from error
        if answer.status >= 300:
            raise _refusal(answer.status, answer.data)
        return _object(answer.data, url)


def segment(text: str) -> str:
    """Return a name as one segment of a path."""
    return quote(text, safe="")


def _cause(error: urllib3.exceptions.HTTPError) -> str:
    """Return the last part of the message, without the connection that urllib3 puts before it."""
    return str(error.__cause__ or error).rpartition(": ")[2]


def _object(data: bytes, url: str) -> Json:
    try:
        content = json.loads(data)
    except ValueError as error:
        raise TerminalError(
            f"{url}: expected JSON, got something else", "is KAIWEB_URL the address of kaiweb?"
        ) from error
    if not isinstance(content, dict):
        raise TerminalError(f"{url}: expected a JSON object, got {type(content).__name__}")
    return content


def _refusal(status: int, data: bytes) -> RefusedError:
    try:
        detail = str(json.loads(data)["detail"])
    except (ValueError, KeyError, TypeError):
        detail = "the answer has no detail; is KAIWEB_URL the address of kaiweb?"
    return RefusedError(status, f"{detail} ({status})", ADVICE.get(status, ""))

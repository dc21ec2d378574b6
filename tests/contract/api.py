"""A plain HTTP client for the contract: no client library may hide what a server really answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Status, decoded body and headers of one answer."""

    status: int
    body: Any
    headers: Mapping[str, str]

    def ok(self, *statuses: int) -> Any:
        """Return the body if the status is one of those (200 or 201 when none is named)."""
        assert self.status in (statuses or (200, 201)), f"{self.status}: {self.body}"
        return self.body

    def refused(self, status: int, reason: str, text: str = "") -> Any:
        """Check that this is a Status object with that code and reason whose message has the text."""
        assert self.status == status, f"expected {status}, got {self.status}: {self.body}"
        assert self.body["kind"] == "Status"
        assert self.body["status"] == "Failure"
        assert self.body["code"] == status
        assert self.body.get("reason", "") == reason, self.body
        assert text in self.body.get("message", ""), self.body
        return self.body


@dataclass(slots=True)
class Server:
    """One API server under test.

    `forget_history(api, path)` returns a version that is too old to watch the kind of that object from; `has_controllers` tells whether owner
    references are collected and namespaces emptied (the real cluster has no controller manager).
    """

    name: str
    url: str
    ca_file: Path
    kubeconfig: Path
    tokens: Mapping[str, str]
    has_controllers: bool
    forget_history: Callable[[Api, str], str]


@dataclass(slots=True)
class Api:
    """Requests to one server as one user; `namespace` is this test's own."""

    server: Server
    user: str = "admin"
    namespace: str = ""
    _pool: urllib3.PoolManager | None = field(default=None, repr=False)

    def as_user(self, user: str) -> Api:
        return Api(self.server, user, self.namespace, self._manager())

    def get(self, path: str, *, accept: str = JSON, **query: Any) -> Answer:
        return self.request("GET", path, accept=accept, query=query)

    def post(self, path: str, body: Any, **query: Any) -> Answer:
        return self.request("POST", path, body, query=query)

    def put(self, path: str, body: Any, **query: Any) -> Answer:
        return self.request("PUT", path, body, query=query)

    def patch(self, path: str, body: Any, kind: str = MERGE, **query: Any) -> Answer:
        return self.request("PATCH", path, body, content_type=kind, query=query)

    def delete(self, path: str, body: Any = None, **query: Any) -> Answer:
        return self.request("DELETE", path, body, query=query)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = JSON,
        accept: str = JSON,
        query: Mapping[str, Any] | None = None,
    ) -> Answer:
        response = self._manager().request(
            method,
            self._url(path, query),
            body=None if body is None else json.dumps(body).encode(),
            headers=self._headers(accept, content_type if body is not None else ""),
            timeout=30,
            retries=False,
        )
        # The OpenAPI index is JSON but says text/plain.
        is_json = response.data[:1] == b"{"
        decoded = json.loads(response.data) if is_json else response.data.decode()
        return Answer(status=response.status, body=decoded, headers=response.headers)

    @contextmanager
    def watch(self, path: str, *, accept: str = JSON, **query: Any) -> Iterator[Iterator[Any]]:
        """Open a watch; reading an event that does not come within 10 s fails the test."""
        response = self._manager().request(
            "GET",
            self._url(path, {"watch": "1", "timeoutSeconds": 20, **query}),
            headers=self._headers(accept, ""),
            timeout=urllib3.Timeout(connect=5, read=10),
            preload_content=False,
            retries=False,
        )
        try:
            assert response.status == 200, response.data
            yield _events(response)
        finally:
            response.close()

    def _manager(self) -> urllib3.PoolManager:
        if self._pool is None:
            self._pool = urllib3.PoolManager(ca_certs=str(self.server.ca_file), maxsize=16)
        return self._pool

    def _url(self, path: str, query: Mapping[str, Any] | None) -> str:
        path = path.replace("{ns}", self.namespace)
        return f"{self.server.url}{path}" + (f"?{urlencode(query)}" if query else "")

    def _headers(self, accept: str, content_type: str) -> dict[str, str]:
        headers = {"Accept": accept}
        if self.user:
            headers["Authorization"] = f"Bearer {self.server.tokens[self.user]}"
        if content_type:
            headers["Content-Type"] = content_type
        return headers


def _events(response: urllib3.BaseHTTPResponse) -> Iterator[Any]:
    rest = b""
    while data := response.read1(65536):
        *lines, rest = (rest + data).split(b"\n")
        yield from (json.loads(line) for line in lines if line)

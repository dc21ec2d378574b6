"""A whole API server without a network: requests are ASGI calls, and nothing is written to disk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from sandbox.apiserver.app import Application
from sandbox.apiserver.server import Server, Settings

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class Answer:
    """One reply: code, decoded body and headers."""

    code: int
    body: Any
    headers: dict[str, str]

    def ok(self, code: int = 200) -> Any:
        assert self.code == code, self.body
        return self.body

    def refused(self, code: int, message: str) -> None:
        assert (self.code, self.body["message"]) == (code, message)


class InProcess:
    """The application of one server, called without a socket."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.store = server.store
        self.app = Application(server.parts)
        self.token = server.parts.authenticator.admin_token()

    async def call(
        self,
        method: str,
        target: str,
        body: Any = None,
        media: str = "application/json",
        accept: str = "application/json",
        token: str | None = None,
        **headers: str,
    ) -> Answer:
        path, _, query = target.partition("?")
        data = body if isinstance(body, bytes) else b"" if body is None else orjson.dumps(body)
        scope = self.scope(method, path, query, media, accept, token or self.token, headers)
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": data}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        text = b"".join(message.get("body", b"") for message in sent[1:])
        reply_headers = {k.decode(): v.decode() for k, v in sent[0]["headers"]}
        is_json = "json" in reply_headers["content-type"]
        return Answer(sent[0]["status"], orjson.loads(text) if is_json else text, reply_headers)

    @staticmethod
    def scope(
        method: str,
        path: str,
        query: str,
        media: str,
        accept: str,
        token: str,
        extra: dict[str, str],
    ) -> dict[str, Any]:
        headers = {"content-type": media, "accept": accept, "authorization": f"Bearer {token}"}
        headers |= {key.replace("_", "-"): value for key, value in extra.items()}
        pairs = [(key.encode(), value.encode()) for key, value in headers.items()]
        return {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": pairs,
        }

    async def post(self, target: str, body: Any, **options: Any) -> Answer:
        return await self.call("POST", target, body, **options)

    async def get(self, target: str, **options: Any) -> Answer:
        return await self.call("GET", target, **options)

    async def patch(self, target: str, body: Any, media: str = MERGE, **options: Any) -> Answer:
        return await self.call("PATCH", target, body, media=media, **options)

    async def delete(self, target: str, body: Any = None) -> Answer:
        return await self.call("DELETE", target, body)

    @asynccontextmanager
    async def watch(self, target: str) -> AsyncIterator[asyncio.Queue[dict[str, Any]]]:
        """Yield a queue that fills with the events of a watch."""
        path, _, query = target.partition("?")
        scope = self.scope(
            "GET", path, f"watch=true&{query}", "", "application/json", self.token, {}
        )
        events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        gone = asyncio.Event()

        async def receive() -> dict[str, Any]:
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            for line in message.get("body", b"").splitlines():
                events.put_nowait(orjson.loads(line))

        task = asyncio.create_task(self.app(scope, receive, send))
        try:
            await asyncio.sleep(0)
            yield events
        finally:
            gone.set()
            with suppress(TimeoutError):
                await asyncio.wait_for(task, 2)


@pytest.fixture
def cluster(tmp_path: Path) -> InProcess:
    return InProcess(Server(Settings(home=tmp_path, persistent=False)))


@pytest.fixture
async def running(cluster: InProcess) -> AsyncIterator[InProcess]:
    """The same with garbage collection and namespace control at work."""
    tasks = [asyncio.create_task(work) for work in cluster.server.controllers()]
    yield cluster
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def settled(condition: Any, timeout_s: float = 3.0) -> None:
    """Let the controllers work until a condition holds."""
    async with asyncio.timeout(timeout_s):
        while not condition():
            await asyncio.sleep(0.005)


def pod(name: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "registry.example/main:1"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": containers, **spec},
    }


def configmap(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def owned(body: dict[str, Any], owner: dict[str, Any], *, blocks: bool = False) -> dict[str, Any]:
    """Give an object an owner."""
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
    if blocks:
        reference["blockOwnerDeletion"] = True
    body["metadata"]["ownerReferences"] = [reference]
    return body


def widget_definition(spec_schema: dict[str, Any], **version: Any) -> dict[str, Any]:
    """Return a CRD `widgets.example.com` whose spec has this schema."""
    schema = {
        "type": "object",
        "properties": {
            "spec": spec_schema,
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    **version,
                }
            ],
        },
    }


def widget(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": spec,
    }

"""HTTP requests and replies in the form that the handlers use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

import orjson
import yaml

from sandbox.apiserver.model import errors
from sandbox.apiserver.model.resources import ServedResource
from sandbox.apiserver.model.user import ANONYMOUS, User

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

JSON = "application/json"
BODY_LIMIT_BYTES = 3 * 1024 * 1024
_TRUE = {"true", "1", "True", ""}
_YamlLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Request:
    """Method, path, parameters, headers and, after `read`, the body."""

    __slots__ = ("_headers", "body", "method", "params", "path", "receive", "user")

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        query = scope["query_string"]
        self.params: dict[str, str] = (
            dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True)) if query else {}
        )
        self._headers: list[tuple[bytes, bytes]] = scope["headers"]
        self.receive = receive
        self.body = b""
        self.user: User = ANONYMOUS

    def header(self, name: bytes) -> str:
        for key, value in self._headers:
            if key == name:
                return value.decode("latin-1")
        return ""

    def headers(self, name: bytes) -> list[str]:
        return [value.decode("latin-1") for key, value in self._headers if key == name]

    def flag(self, name: str) -> bool:
        return name in self.params and self.params[name] in _TRUE

    def number(self, name: str, default: int) -> int:
        text = self.params.get(name, "")
        if not text:
            return default
        try:
            return int(text)
        except ValueError:
            raise errors.bad_request(
                f'strconv.ParseInt: parsing "{text}": invalid syntax'
            ) from None

    @property
    def dry_run(self) -> bool:
        value = self.params.get("dryRun", "")
        if value not in ("", "All"):
            cause = errors.unsupported("dryRun", [value], ["All"])
            raise errors.invalid("meta.k8s.io", "CreateOptions", "", [cause])
        return value == "All"

    @property
    def manager(self) -> str:
        """Return the field manager: the query parameter, or else the name in the user agent."""
        manager = self.params.get("fieldManager", "")
        return manager or self.header(b"user-agent").partition("/")[0] or "unknown"

    @property
    def content_type(self) -> str:
        return self.header(b"content-type").partition(";")[0].strip().lower()

    async def read(self) -> bytes:
        message = await self.receive()
        body: bytes = message.get("body", b"")
        while message.get("more_body"):
            message = await self.receive()
            body += message.get("body", b"")
            if len(body) > BODY_LIMIT_BYTES:
                text = f"Request entity too large: limit is {BODY_LIMIT_BYTES}"
                raise errors.ApiError(413, "RequestEntityTooLarge", text)
        self.body = body
        return body


def parse_body(data: bytes, media: str) -> Any:
    """Decode a JSON or YAML body; the media type of an apply patch covers both."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        if "yaml" not in media:
            raise errors.bad_request(f"error decoding JSON body: {error}") from None
    try:
        return yaml.load(data, Loader=_YamlLoader)
    except yaml.YAMLError as error:
        raise errors.bad_request(f"error decoding YAML: {error}") from None


@dataclass(slots=True)
class Reply:
    """Status, body and headers of one answer."""

    body: bytes
    code: int = 200
    media: bytes = b"application/json"
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)

    async def send(self, send: Send) -> None:
        headers = [
            (b"content-type", self.media),
            (b"content-length", str(len(self.body)).encode()),
            (b"cache-control", b"no-cache, private"),
            *self.headers,
        ]
        await send({"type": "http.response.start", "status": self.code, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


def json_reply(value: Any, code: int = 200, headers: Iterable[tuple[bytes, bytes]] = ()) -> Reply:
    return Reply(orjson.dumps(value), code, headers=list(headers))


def success_reply() -> Reply:
    """Return the answer of a request that acted and has no object to show."""
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    return json_reply(body, 201)


def error_reply(error: errors.ApiError) -> Reply:
    if error.reason == errors.PLAIN_TEXT:
        return Reply(str(error).encode(), error.code, b"text/plain; charset=utf-8")
    return json_reply(error.status, error.code, error.headers)


def warning_headers(warnings: Iterable[str]) -> list[tuple[bytes, bytes]]:
    headers = []
    for text in dict.fromkeys(warnings):
        escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
        headers.append((b"warning", f'299 - "{escaped}"'.encode()))
    return headers


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a path refers to: a collection, one object, or a subresource of an object."""

    resource: ServedResource
    namespace: str = ""
    name: str = ""
    sub: str = ""


@dataclass(frozen=True, slots=True)
class Address:
    """The segments of a resource path, before the resource is looked up."""

    group: str
    version: str
    namespace: str
    plural: str
    name: str
    sub: str


def parse_path(path: str) -> Address | None:
    """Split `/api/v1/...` or `/apis/<group>/<version>/...`; None for any other path."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) >= 3:
        group, version, segments = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4:
        group, version, segments = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    if (
        segments[0] == "namespaces"
        and len(segments) >= 3
        and segments[2] not in ("status", "finalize")
    ):
        namespace, segments = segments[1], segments[2:]
    segments = [*segments, "", ""]
    return Address(
        group, version, namespace, segments[0], segments[1], "/".join(segments[2:]).strip("/")
    )

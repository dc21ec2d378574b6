"""Requests: those of curl, and calls that a page writes as `GET /api/v1/...`, against docs/openapi.json."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from django.urls import resolve

from tests.docs.shown.options import arguments_of, listed_options
from tests.docs.shown.pages import ROOT
from tests.docs.shown.shell import Command

CALL = re.compile(r"(GET|POST|PUT|PATCH|DELETE) (/[^\s`…]*)")
#: The addresses of kaiweb in commands.
WEB = re.compile(r"\$KAIWEB_URL|\$URL|http://127\.0\.0\.1:8000")
#: The loopback server of a scheduling worker, ours and KAI's, which no document describes.
DEBUG = re.compile(r"http://127\.0\.0\.1:(?:PORT|8081)")
DEBUG_SERVER = ROOT / "scheduler" / "loop" / "debug_server.py"
#: Headers that each operation understands.
GENERAL_HEADERS = frozenset({"authorization", "content-type", "accept", "last-event-id"})
DATA = ("-d", "--data", "--data-binary", "--json")


@cache
def document() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((ROOT / "docs" / "openapi.json").read_text())
    return content


@cache
def curl_options() -> dict[str, bool]:
    """Return the options of curl; those of our pages where there is no curl."""
    try:
        result = subprocess.run(
            ["curl", "--help", "all"], capture_output=True, text=True, check=True
        )
    except FileNotFoundError:
        flags = ("-s", "-f", "-S", "-N", "--silent", "--show-error", "--fail")
        return dict.fromkeys(flags, False) | dict.fromkeys(("-X", "-H", "-o", *DATA), True)
    return listed_options(result.stdout)


def check_curl(command: Command) -> None:
    arguments = arguments_of(command.words[1:], curl_options())
    assert len(arguments.positional) == 1, f"curl with {len(arguments.positional)} addresses"
    (address,) = arguments.positional
    if DEBUG.match(address):
        assert f'"{DEBUG.sub("", address)}"' in DEBUG_SERVER.read_text(), f"no page {address}"
        return
    assert WEB.match(address), f"not an address of kaiweb: {address}"
    data = arguments.value(*DATA)
    method = arguments.value("-X", "--request") or ("GET" if data is None else "POST")
    headers = [value for name, value in arguments.options if name in {"-H", "--header"}]
    check_call(method, WEB.sub("", address), [header.partition(":")[0] for header in headers])
    if data is not None and not data.startswith("@"):
        check_body(method, WEB.sub("", address), json.loads(data))


def check_call(method: str, target: str, headers: list[str] | None = None) -> None:
    """Check method, path, names of query parameters, and headers."""
    parts = urlsplit(target)
    if not parts.path.startswith("/api/"):
        resolve(parts.path)
        return
    path, operation = operation_of(method, parts.path)
    parameters = [
        _resolved(parameter)
        for parameter in [
            *operation.get("parameters", ()),
            *document()["paths"][path].get("parameters", ()),
        ]
    ]
    queries = {parameter["name"] for parameter in parameters if parameter["in"] == "query"}
    shown = {name for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    assert shown <= queries, f"{method} {path} has no parameter {sorted(shown - queries)}"
    header_names = {item["name"].lower() for item in parameters if item["in"] == "header"}
    unknown = {header.lower() for header in headers or ()} - header_names - GENERAL_HEADERS
    assert not unknown, f"{method} {path} has no header {sorted(unknown)}"


def check_body(method: str, target: str, body: Any) -> None:
    """Check that the document has each field of a JSON body."""
    path, operation = operation_of(method, urlsplit(target).path)
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    unknown = list(unknown_fields(body, schema, document()))
    assert not unknown, f"{method} {path} has no field {unknown}"


def operation_of(method: str, path: str) -> tuple[str, dict[str, Any]]:
    """Return the path of the document and its operation; literal paths go before those with a name."""
    candidates = [
        template
        for template in sorted(document()["paths"], key=lambda text: text.count("{"))
        if re.fullmatch(re.sub(r"\{\w+\}", r"[^/]+", template), path)
    ]
    assert candidates, f"no path {path}"
    for template in candidates:
        if operation := document()["paths"][template].get(method.lower()):
            return template, operation
    raise AssertionError(f"{candidates[0]} has no method {method}")


def _resolved(schema: Any, root: dict[str, Any] | None = None) -> Any:
    while "$ref" in schema:
        target: Any = root or document()
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        schema = target
    return schema


def unknown_fields(value: Any, schema: Any, root: dict[str, Any], path: str = "") -> Iterator[str]:
    """Yield the fields of a value that its JSON schema does not name, at any depth."""
    branches = list(_branches(schema, root))
    if isinstance(value, list):
        items = [branch["items"] for branch in branches if "items" in branch]
        for item in value if items else ():
            yield from unknown_fields(item, {"anyOf": items}, root, f"{path}[]")
    if not isinstance(value, dict) or not any("properties" in branch for branch in branches):
        return
    open_schemas = [
        branch["additionalProperties"] for branch in branches if branch.get("additionalProperties")
    ]
    for name, field in value.items():
        schemas = [b["properties"][name] for b in branches if name in b.get("properties", {})]
        if schemas:
            yield from unknown_fields(field, {"anyOf": schemas}, root, f"{path}.{name}")
        elif not open_schemas:
            yield f"{path}.{name}"


def _branches(schema: Any, root: dict[str, Any]) -> Iterator[dict[str, Any]]:
    schema = _resolved(schema, root)
    yield schema
    for key in ("allOf", "anyOf", "oneOf"):
        for branch in schema.get(key, ()):
            yield from _branches(branch, root)

"""The form in which a client wants objects: whole, as table rows, or metadata only.

kubectl accepts Tables, metadata informers accept PartialObjectMetadata. A client that accepts only
protobuf gets 406; one that accepts JSON as a second choice gets JSON.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import orjson

from sandbox.apiserver.handlers.parts import ServerParts
from sandbox.apiserver.model import errors
from sandbox.apiserver.model.entry import Entry, Obj
from sandbox.apiserver.model.resources import ServedResource
from sandbox.apiserver.schema import conversion
from sandbox.apiserver.wire.request import Request

_MEDIA = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")


class Form(StrEnum):
    WHOLE = "whole"
    TABLE = "table"
    METADATA = "metadata"


@dataclass(frozen=True, slots=True)
class View:
    """The requested form and, for tables, whether rows hold whole objects or their metadata."""

    form: Form
    include_object: str = "Metadata"


def view_of(request: Request) -> View:
    """Return the first form in the Accept header that the server has."""
    accept = request.header(b"accept")
    if not accept or "as=" not in accept:
        if accept and not any(media in accept for media in ("json", "*", "text/")):
            raise errors.not_acceptable(_MEDIA)
        return View(Form.WHOLE)
    for choice in accept.split(","):
        media, *parameters = (part.strip() for part in choice.split(";"))
        options = dict(parameter.partition("=")[::2] for parameter in parameters)
        if media not in ("application/json", "*/*", "application/*"):
            continue
        match options.get("as", ""):
            case "":
                return View(Form.WHOLE)
            case "Table" if options.get("v") == "v1":
                return View(Form.TABLE, request.params.get("includeObject") or "Metadata")
            case "PartialObjectMetadata" | "PartialObjectMetadataList" if options.get("v") == "v1":
                return View(Form.METADATA)
    raise errors.not_acceptable(_MEDIA)


def render_object(parts: ServerParts, view: View, resource: ServedResource, entry: Entry) -> bytes:
    if view.form is Form.TABLE:
        table = parts.tables.table(resource, [entry], view.include_object, with_columns=True)
        table["metadata"] = {"resourceVersion": str(entry.version)}
        return orjson.dumps(table)
    if view.form is Form.METADATA:
        return orjson.dumps(metadata_only(resource, entry))
    return conversion.raw_as(resource, entry)


def render_list(
    parts: ServerParts, view: View, resource: ServedResource, entries: list[Entry], meta: Obj
) -> bytes:
    if view.form is Form.TABLE:
        table = parts.tables.table(resource, entries, view.include_object, with_columns=True)
        return orjson.dumps({**table, "metadata": meta})
    if view.form is Form.METADATA:
        kind, api_version = "PartialObjectMetadataList", "meta.k8s.io/v1"
        items = [orjson.dumps(metadata_only(resource, entry)) for entry in entries]
    else:
        kind, api_version = resource.list_kind, resource.api_version
        items = [conversion.raw_as(resource, entry) for entry in entries]
    head = orjson.dumps({"kind": kind, "apiVersion": api_version, "metadata": meta})
    return b'%s,"items":[%s]}' % (head[:-1], b",".join(items))


def metadata_only(resource: ServedResource, entry: Entry) -> Obj:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": entry.load()["metadata"],
    }

"""The captured description of the built-in kinds: discovery, schemas, table columns.

`capture.py` writes the files from a real kube-apiserver; the server reads them once, at its start. The gang API
(`scheduling.k8s.io/v1alpha1`) has a file of its own, because a cluster serves it only if asked to. The protobuf
fields are captured from Go types by `capture_protobuf.py`, and read with the first protobuf body.
"""

from __future__ import annotations

import lzma
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import orjson

DATA_FILE = Path(__file__).parent / "kubernetes.json.xz"
GANG_FILE = DATA_FILE.with_name("gangs.json.xz")
PROTOBUF_FILE = DATA_FILE.with_name("protobuf.json.xz")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """The description that a real server gives of itself.

    `groups` maps a group version to its discovery entries, `schemas` a name of OpenAPI v3 to its
    schema, and `columns` `<group version>/<plural>` to column definitions.
    """

    version: dict[str, Any]
    groups: dict[str, list[dict[str, Any]]]
    schemas: dict[str, dict[str, Any]]
    columns: dict[str, list[dict[str, Any]]]


@cache
def bundle(*, with_gangs: bool = False) -> Bundle:
    """Return the description of the kinds that every cluster serves, and of the gang API if asked to."""
    if not with_gangs:
        return _read(DATA_FILE)
    base, gangs = bundle(), _read(GANG_FILE)
    return Bundle(
        version=base.version,
        groups=base.groups | gangs.groups,
        schemas=base.schemas | gangs.schemas,
        columns=base.columns | gangs.columns,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtobufFields:
    """How the objects of the built-in kinds are written in protobuf.

    Attributes
    ----------
    kinds : `<group version>/<kind>` -> name of its message
    messages : name -> field number -> (name in JSON, type code); `wire/protobuf.py` explains the codes
    """

    kinds: dict[str, str]
    messages: dict[str, dict[int, tuple[str, str]]]


@cache
def protobuf_fields() -> ProtobufFields:
    """Return the protobuf fields of all built-in kinds."""
    content = orjson.loads(lzma.decompress(PROTOBUF_FILE.read_bytes()))
    return ProtobufFields(
        kinds=content["kinds"],
        messages={
            name: {int(number): (key, code) for number, (key, code) in fields.items()}
            for name, fields in content["messages"].items()
        },
    )


def _read(file: Path) -> Bundle:
    return Bundle(**orjson.loads(lzma.decompress(file.read_bytes())))

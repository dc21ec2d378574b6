"""The captured description of the built-in kinds: discovery, schemas, table columns.

`capture.py` writes the file from a real kube-apiserver; the server reads it once, at its start.
"""

from __future__ import annotations

import lzma
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import orjson

DATA_FILE = Path(__file__).parent / "kubernetes.json.xz"


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
def bundle() -> Bundle:
    return Bundle(**orjson.loads(lzma.decompress(DATA_FILE.read_bytes())))

"""Reading manifests from files as the API server would read them: several documents, lists, strings kept strings."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from queues.grouping.base import Json, dig_list, dig_text

STANDARD_INPUT = Path("-")
SUFFIXES = {".yaml", ".yml", ".json"}
CLUSTER_SCOPED = {
    "ClusterRole",
    "ClusterRoleBinding",
    "Config",
    "CustomResourceDefinition",
    "DeviceClass",
    "Karta",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PriorityClass",
    "Queue",
    "ResourceSlice",
    "SchedulingShard",
    "StorageClass",
    "Topology",
}


class ManifestError(Exception):
    """A file is no manifest; the message names the file and what is wrong."""


class _Loader(yaml.CSafeLoader):  # type: ignore[misc, unused-ignore]
    """YAML without dates: Kubernetes reads a timestamp as the text it is."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if tag != "tag:yaml.org,2002:timestamp"]
    for first, found in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", re.ASCII)


def read_manifests(paths: Iterable[Path]) -> list[Json]:
    """Return all objects of the files, in order; `-` is standard input, a folder all its manifests.

    Raises
    ------
    ManifestError : unreadable, no YAML, or an object without apiVersion, kind or name
    """
    return [
        obj
        for path in paths
        for file in _files_of(path)
        for obj in parse_manifests(_text_of(file), str(file))
    ]


def parse_manifests(text: str, source: str) -> list[Json]:
    """Return the objects of one YAML (or JSON) text; `source` names it in messages."""
    try:
        documents = list(yaml.load_all(text, Loader=_Loader))
    except (yaml.YAMLError, RecursionError) as error:
        raise ManifestError(f"{source}: not readable as YAML: {error}") from error
    found: list[Json] = []
    for number, document in enumerate(documents, start=1):
        if document is not None:
            found += _objects(document, f"{source}, document {number}")
    return found


def _files_of(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES)
    if not found:
        raise ManifestError(f"{path}: the folder holds no {', '.join(sorted(SUFFIXES))} file")
    return found


def _text_of(path: Path) -> str:
    if path == STANDARD_INPUT:
        return sys.stdin.read()
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"{path}: cannot be read: {error}") from error


def _objects(document: Any, where: str) -> Iterator[Json]:
    if not isinstance(document, dict):
        raise ManifestError(f"{where}: expected an object, got {type(document).__name__}")
    if dig_text(document, "kind").endswith("List") and isinstance(document.get("items"), list):
        for index, item in enumerate(dig_list(document, "items")):
            yield from _objects(item, f"{where}, item {index}")
        return
    yield _checked(document, where)


def _checked(obj: Json, where: str) -> Json:
    for field in ("apiVersion", "kind"):
        if not dig_text(obj, field):
            raise ManifestError(f"{where}: {field} is missing")
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        raise ManifestError(f"{where}: metadata is missing")
    name = metadata.get("name") or metadata.get("generateName")
    if not isinstance(name, str) or not name:
        raise ManifestError(f"{where}: {obj['kind']} has no metadata.name")
    if metadata.get("name") and not _NAME.fullmatch(name):
        raise ManifestError(f"{where}: {obj['kind']} name {name!r} is not a valid object name")
    _check_metadata(obj, f"{where}: {obj['kind']} {name}", "")
    return obj


def _check_metadata(node: Any, where: str, path: str) -> None:
    """Check labels and annotations, also those of templates: there a number would be lost silently."""
    if isinstance(node, list):
        for index, item in enumerate(node):
            _check_metadata(item, where, f"{path}[{index}]")
    if not isinstance(node, dict):
        return
    for key, value in node.items():
        inner = f"{path}.{key}" if path else str(key)
        if key == "metadata" and isinstance(value, dict):
            for field in ("labels", "annotations"):
                _check_strings(value.get(field), f"{where}: {inner}.{field}")
        else:
            _check_metadata(value, where, inner)


def _check_strings(values: Any, where: str) -> None:
    if values is None:
        return
    if not isinstance(values, dict):
        raise ManifestError(f"{where} must be a map of strings")
    for key, value in values.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise ManifestError(f"{where}: {key!r} must be a string, got {value!r} (quote it)")

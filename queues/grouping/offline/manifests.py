"""Read manifests from files as the API server does: several documents, lists, timestamps as strings."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from queues.grouping.base import Json, dig_text

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


Placed = tuple[str, Json]
"""The place of an object (file, document, item), and the object."""


class ManifestError(Exception):
    """A file is not a manifest; the message names the file and the problem."""


class _Loader(yaml.CSafeLoader):  # type: ignore[misc, unused-ignore]
    """YAML as kubectl reads it: timestamps stay strings, and duplicate keys are refused."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        keys: set[str] = set()
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            text = getattr(key, "value", None)
            if not isinstance(text, str) or key.tag == "tag:yaml.org,2002:merge":
                continue
            if text in keys:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {text!r} is given twice", key.start_mark
                )
            keys.add(text)
        return super().construct_mapping(node, deep=deep)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", re.ASCII)
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_TEXTS = ("name", "generateName", "namespace", "uid")


def read_manifests(paths: Iterable[Path]) -> list[Json]:
    """Return all objects of the files, in order; `-` is standard input, a folder all its manifests.

    Raises
    ------
    ManifestError : unreadable, no YAML, an object without apiVersion, kind or name, or no object at all
    """
    return [obj for _, obj in _read(paths)]


def read_distinct_manifests(paths: Iterable[Path]) -> list[Json]:
    """Return all objects of the files; refuse two objects with the same name or uid.

    Raises
    ------
    ManifestError : as `read_manifests`, or a duplicate
    """
    placed_objects = _read(paths)
    by_name: dict[tuple[str, str], str] = {}
    by_uid: dict[str, tuple[str, str]] = {}
    for location, obj in placed_objects:
        group = obj["apiVersion"].rpartition("/")[0]
        label, uid = object_label(obj), dig_text(obj, "metadata", "uid")
        first = by_name.setdefault((group, label), location)
        if first != location and dig_text(obj, "metadata", "name"):
            raise ManifestError(f"{location}: {label} is given twice, first in {first}")
        other, place = by_uid.setdefault(uid, (label, location))
        if uid and place != location:
            raise ManifestError(f"{location}: {label} has the uid {uid!r} of {other} in {place}")
    return [obj for _, obj in placed_objects]


def parse_manifests(text: str, source: str) -> list[Json]:
    """Return the objects of one YAML (or JSON) text; `source` names it in messages."""
    return [obj for _, obj in _parse(text, source)]


def object_label(obj: Json) -> str:
    """Return kind, namespace and name of an object for messages."""
    kind, metadata = obj["kind"], obj["metadata"]
    name = metadata.get("name") or f"{metadata['generateName']}*"
    if kind in CLUSTER_SCOPED:
        return f"{kind} {name}"
    return f"{kind} {metadata.get('namespace') or 'default'}/{name}"


def _read(paths: Iterable[Path]) -> list[Placed]:
    files = [file for path in paths for file in _files_of(path)]
    placed_objects = [
        placed for file in files for placed in _parse(_text_of(file), _file_label(file))
    ]
    if not placed_objects:
        raise ManifestError(f"{', '.join(map(_file_label, files))}: expected objects, got none")
    return placed_objects


def _parse(text: str, source: str) -> list[Placed]:
    try:
        documents = list(yaml.load_all(text, Loader=_Loader))
    except yaml.YAMLError as error:
        raise ManifestError(f"{source}{_place(error)}") from error
    except RecursionError as error:
        raise ManifestError(f"{source}: not readable as YAML: nested too deeply") from error
    placed_objects: list[Placed] = []
    for number, document in enumerate(documents, start=1):
        if document is not None:
            placed_objects += _objects(document, f"{source}, document {number}")
    return placed_objects


def _place(error: yaml.YAMLError) -> str:
    """Return where and why a text is not YAML, in one line."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    position_text = f", line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
    return f"{position_text}: not readable as YAML: {problem}"


def _file_label(file: Path) -> str:
    return "standard input" if file == STANDARD_INPUT else str(file)


def _files_of(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES)
    if not files:
        raise ManifestError(f"{path}: the folder holds no {', '.join(sorted(SUFFIXES))} file")
    return files


def _text_of(path: Path) -> str:
    try:
        return sys.stdin.read() if path == STANDARD_INPUT else path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ManifestError(
            f"{_file_label(path)}: cannot be read: no UTF-8 text, {error}"
        ) from error
    except OSError as error:
        raise ManifestError(f"{path}: cannot be read: {error.strerror}") from error


def _objects(document: Any, location: str) -> Iterator[Placed]:
    if not isinstance(document, dict):
        raise ManifestError(f"{location}: expected an object, got {_shown(document)}")
    kind = dig_text(document, "kind")
    if kind != "List" and not (kind.endswith("List") and "items" in document):
        yield location, _checked(document, location)
        return
    entries = document.get("items")
    if not isinstance(entries, list):
        raise ManifestError(f"{location}: {kind}: items must be a list, got {_shown(entries)}")
    # In a typed list, such as an answer of the API server, only the list has the kind of its items.
    implied = {"apiVersion": document.get("apiVersion"), "kind": kind.removesuffix("List")}
    for index, entry in enumerate(entries):
        is_bare = kind != "List" and isinstance(entry, dict)
        yield from _objects({**implied, **entry} if is_bare else entry, f"{location}, item {index}")


def _checked(obj: Json, location: str) -> Json:
    for field in ("apiVersion", "kind"):
        if not dig_text(obj, field):
            missing = (
                "is missing" if field not in obj else f"must be text, got {_shown(obj[field])}"
            )
            raise ManifestError(f"{location}: {field} {missing}")
    kind, metadata = obj["kind"], obj.get("metadata")
    if not isinstance(metadata, dict):
        missing = "is missing" if metadata is None else f"must be an object, got {_shown(metadata)}"
        raise ManifestError(f"{location}: {kind}: metadata {missing}")
    for field in _TEXTS:
        if not isinstance(metadata.get(field) or "", str):
            shown = _shown(metadata[field])
            raise ManifestError(
                f"{location}: {kind}: metadata.{field} must be text, got {shown} (quote it)"
            )
    name = metadata.get("name") or metadata.get("generateName")
    if not name:
        raise ManifestError(f"{location}: {kind} has no metadata.name")
    if metadata.get("name") and not _NAME.fullmatch(name):
        raise ManifestError(f"{location}: {kind} name {name!r} is not a valid object name")
    namespace = metadata.get("namespace")
    if namespace and not _NAMESPACE.fullmatch(namespace):
        raise ManifestError(
            f"{location}: {kind} {name}: namespace {namespace!r} is not a valid namespace name"
        )
    _check_shapes(obj, f"{location}: {kind} {name}")
    _check_metadata(obj, f"{location}: {kind} {name}", "", set())
    return obj


def _check_shapes(obj: Json, location: str) -> None:
    references = obj["metadata"].get("ownerReferences") or []
    if not isinstance(references, list) or not all(isinstance(r, dict) for r in references):
        raise ManifestError(
            f"{location}: metadata.ownerReferences must be a list of objects, got {_shown(references)}"
        )
    spec = obj.get("spec")
    if spec is not None and not isinstance(spec, dict):
        raise ManifestError(f"{location}: spec must be an object, got {_shown(spec)}")


def _shown(value: Any) -> str:
    """Return a value short enough for a message."""
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _check_metadata(node: Any, location: str, path: str, visited: set[int]) -> None:
    """Check labels and annotations, including those of templates, where other values would be ignored silently.

    A node that YAML anchors repeat is checked once.
    """
    if not isinstance(node, dict | list) or id(node) in visited:
        return
    visited.add(id(node))
    if isinstance(node, list):
        for index, element in enumerate(node):
            _check_metadata(element, location, f"{path}[{index}]", visited)
        return
    for key, value in node.items():
        inner = f"{path}.{key}" if path else str(key)
        if key == "metadata" and isinstance(value, dict):
            for field in ("labels", "annotations"):
                _check_strings(value.get(field), f"{location}: {inner}.{field}")
        else:
            _check_metadata(value, location, inner, visited)


def _check_strings(values: Any, location: str) -> None:
    if values is None:
        return
    if not isinstance(values, dict):
        raise ManifestError(f"{location} must be a map of strings, got {_shown(values)}")
    for key, value in values.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise ManifestError(
                f"{location}: {key!r} must be a string, got {_shown(value)} (quote it)"
            )

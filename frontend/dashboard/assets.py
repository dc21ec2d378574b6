"""The built files that the shell loads, read from Vite's manifest.

django-vite 3.2 is not used: it reads the manifest once for each process, preloads direct imports only, and declares no
support for Django 5. Here a new build is served without a restart, and a missing build raises `NoBuildError`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

#: The key of the dashboard's entry in the manifest.
ENTRY = "index.html"


@dataclass(frozen=True, slots=True)
class Assets:
    """URLs of the entry script, of its style sheets and of the modules to preload."""

    script: str
    styles: tuple[str, ...]
    preloads: tuple[str, ...]


class NoBuildError(RuntimeError):
    """The dashboard was not built."""


def load_assets(dist: Path, static_url: str) -> Assets:
    """Return the URLs from the manifest, which is read again only when the file has changed.

    Raises
    ------
    NoBuildError : there is no manifest, or it lacks the entry
    """
    file = dist / "manifest.json"
    try:
        modified_ns = file.stat().st_mtime_ns
    except FileNotFoundError as error:
        raise NoBuildError(
            f"the dashboard is not built: no {file.name} in {dist.name}; run 'make setup'"
        ) from error
    return _read(file, modified_ns, static_url)


@cache
def _read(file: Path, _modified_ns: int, static_url: str) -> Assets:
    """Return the URLs from a manifest; the modification time is only part of the cache key."""
    manifest: dict[str, Any] = json.loads(file.read_text())
    entry = manifest.get(ENTRY)
    if entry is None:
        raise NoBuildError(f"{file.name} has no entry '{ENTRY}', only {sorted(manifest)[:5]}")
    modules = _imports(manifest, ENTRY)
    styles = [style for name in (ENTRY, *modules) for style in manifest[name].get("css", [])]
    return Assets(
        script=static_url + entry["file"],
        styles=tuple(static_url + style for style in dict.fromkeys(styles)),
        preloads=tuple(static_url + manifest[name]["file"] for name in modules),
    )


def _imports(manifest: dict[str, Any], name: str) -> list[str]:
    """Return the keys of all modules that an entry imports, directly or not, each once, nearest first."""
    imports: dict[str, None] = {}
    to_visit = list(manifest[name].get("imports", []))
    while to_visit:
        current = to_visit.pop(0)
        if current not in imports:
            imports[current] = None
            to_visit += manifest[current].get("imports", [])
    return list(imports)

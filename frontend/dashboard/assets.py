"""The built files that the shell loads, read from Vite's manifest.

Not django-vite 3.2: it reads the manifest once for each process, preloads direct imports only, and declares no
support for Django 5. Here a new build is served without a restart, and a missing one is a page that says so.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

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
    """Read the manifest, again only when the file has changed.

    Raises
    ------
    NoBuildError : there is no manifest, or it lacks the entry
    """
    file = dist / "manifest.json"
    try:
        stamp = file.stat().st_mtime_ns
    except FileNotFoundError as error:
        raise NoBuildError(
            f"the dashboard is not built: no {file.name} in {dist.name}; run 'make setup'"
        ) from error
    return _read(file, stamp, static_url)


@cache
def _read(file: Path, _stamp: int, static_url: str) -> Assets:
    manifest: dict[str, Any] = json.loads(file.read_text())
    entry = manifest.get(ENTRY)
    if entry is None:
        raise NoBuildError(f"{file.name} has no entry '{ENTRY}', only {sorted(manifest)[:5]}")
    names = _imports(manifest, ENTRY)
    styles = [style for name in (ENTRY, *names) for style in manifest[name].get("css", [])]
    return Assets(
        script=static_url + entry["file"],
        styles=tuple(static_url + style for style in dict.fromkeys(styles)),
        preloads=tuple(static_url + manifest[name]["file"] for name in names),
    )


def _imports(manifest: dict[str, Any], name: str) -> list[str]:
    """Return all static imports below an entry, each once, nearest first."""
    imports: dict[str, None] = {}
    waiting = list(manifest[name].get("imports", []))
    while waiting:
        current = waiting.pop(0)
        if current not in imports:
            imports[current] = None
            waiting += manifest[current].get("imports", [])
    return list(imports)

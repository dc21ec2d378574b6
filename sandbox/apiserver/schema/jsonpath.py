"""The subset of JSONPath that printer columns use: fields, indexes, `[*]` and equality filters."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

Step = tuple[str, str, str]

_TOKEN = re.compile(
    r"""\.(?P<field>(?:\\.|[^.\[\]\\])+)
      | \[(?P<quote>['"])(?P<quoted>.*?)(?P=quote)\]
      | \[(?P<index>-?\d+)\]
      | \[(?P<all>\*)\]
      | \[\?\(@\.(?P<key>[\w./\\-]+)\s*==\s*(?P<q2>['"])(?P<value>.*?)(?P=q2)\)\]
      | \.(?P<star>\*)""",
    re.VERBOSE,
)


@lru_cache(maxsize=1024)
def steps(path: str) -> tuple[Step, ...]:
    """Split a path such as `.status.conditions[?(@.type=="Ready")].status`."""
    found: list[Step] = []
    text = path if path.startswith((".", "[")) else f".{path}"
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if not match:
            raise ValueError(f"unsupported JSONPath {path!r} at {text[position:]!r}")
        position = match.end()
        if match["field"] == "*" or match["star"] or match["all"]:
            found.append(("all", "", ""))
        elif match["field"] is not None:
            found.append(("field", match["field"].replace("\\", ""), ""))
        elif match["quoted"] is not None:
            found.append(("field", match["quoted"], ""))
        elif match["index"] is not None:
            found.append(("index", match["index"], ""))
        else:
            found.append(("filter", match["key"], match["value"]))
    return tuple(found)


def lookup(value: Any, path: str) -> list[Any]:
    """Return all values that a path leads to, none where it leads nowhere."""
    values = [value]
    for kind, name, wanted in steps(path):
        following: list[Any] = []
        for item in values:
            following += _follow(item, kind, name, wanted)
        values = following
    return values


def _follow(item: Any, kind: str, name: str, wanted: str) -> list[Any]:
    if kind == "field":
        return [item[name]] if isinstance(item, dict) and name in item else []
    if kind == "all":
        if isinstance(item, dict):
            return list(item.values())
        return list(item) if isinstance(item, list) else []
    if not isinstance(item, list):
        return []
    if kind == "index":
        index = int(name)
        return [item[index]] if -len(item) <= index < len(item) else []
    return [one for one in item if isinstance(one, dict) and str(one.get(name)) == wanted]

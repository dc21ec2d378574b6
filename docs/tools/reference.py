"""Write docs/reference from the code: settings of shards, labels, metrics, events, reasons, REST operations, decisions.

`make docs` calls it before each build, so the pages are never older than the code and are not kept in Git.
"""

from __future__ import annotations

import ast
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]

from key_meanings import MEANINGS, OTHERS  # noqa: E402

FOLDER = ROOT / "docs" / "reference"
PACKAGES = ("kaiweb", "scheduler", "binder", "queues", "kube")
NOTE = "<!-- Written by docs/tools/reference.py (`make docs`); do not edit. -->\n\n"
METRIC_TYPES = {
    "Counter": "counter", "Gauge": "gauge", "Histogram": "histogram",
    "CounterMetricFamily": "counter", "GaugeMetricFamily": "gauge",
}  # fmt: skip
REASON = re.compile(r"[A-Z][A-Za-z]+")


def main() -> None:
    """Write every page."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kaiweb.settings.test")
    django.setup()
    FOLDER.mkdir(exist_ok=True)
    for name, page in pages().items():
        (FOLDER / name).write_text(page)


def pages() -> dict[str, str]:
    """Return file name -> page; Django must be set up."""
    return {
        "shard-settings.md": shard_settings(),
        "labels.md": labels(),
        "metrics.md": metrics(),
        "events.md": events(),
        "reason-codes.md": reason_codes(),
        "rest.md": rest(),
        "decisions.md": decisions(),
    }


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    cells = ((str(cell).replace("|", "\\|").replace("\n", " ") for cell in line) for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells) + "\n"


def sources(word: str) -> Iterator[tuple[str, ast.Module]]:
    """Yield the package and the syntax tree of each module whose text contains the word."""
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            text = file.read_text()
            if word in text:
                yield package, ast.parse(text)


# ------------------------------------------------------------------ settings


def shard_settings() -> str:
    """Return the settings of a SchedulingShard: flags, actions, plugins."""
    from scheduler.core.plugins.table import PLUGINS
    from scheduler.settings.shard import ACTION_PRIORITIES

    flags = table(("flag in `spec.args`", "default"), sorted(set(_flags())))
    actions = table(
        ("action", "priority"),
        ((f"`{name.value}`", str(priority)) for name, priority in ACTION_PRIORITIES.items()),
    )
    plugins = table(
        ("plugin", "priority", "runs by default"),
        (
            (f"`{spec.name}`", str(spec.priority), "yes" if spec.on_by_default else "no")
            for spec in PLUGINS
        ),
    )
    return (
        f"{NOTE}# Settings of a shard\n\n"
        "A SchedulingShard holds the settings of one node pool's scheduler ([node pools](../guides/node-pools.md)). A value"
        " that cannot be used keeps the old settings and is named in the shard's conditions. Variables of processes are in"
        " [environment variables](../operations/environment.md).\n\n"
        f"## Flags\n\n{flags}\n## Actions\n\nHigher priority goes first; `spec.actions.NAME` has `enabled` and `priority`."
        f"\n\n{actions}\n## Plugins\n\n`spec.plugins.NAME` has `enabled`, `priority` and `arguments`.\n\n{plugins}"
    )


def _flags() -> Iterator[tuple[str, str]]:
    tree = ast.parse((ROOT / "scheduler" / "settings" / "shard.py").read_text())
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        function = call.func
        is_read = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)
        if not is_read or function.value.id != "args" or not call.args:
            continue
        name, *rest = call.args
        defaults = [*rest, *(keyword.value for keyword in call.keywords)]
        if isinstance(name, ast.Constant) and defaults:
            yield f"`{name.value}`", _default(defaults[0])


def _default(node: ast.expr) -> str:
    """Return a default as people read it; the first choice of several, the Config's where it comes from there."""
    if isinstance(node, ast.Tuple):
        return " or ".join(
            f"`{item.value}`" for item in node.elts if isinstance(item, ast.Constant)
        )
    if isinstance(node, ast.Constant):
        return f"`{str(node.value).lower() if isinstance(node.value, bool) else node.value}`"
    source = ast.unparse(node)
    from scheduler.settings.params import ShardParams

    match = re.search(r"ShardParams\(\)\.(\w+)", source)
    if match:
        return f"`{getattr(ShardParams(), match[1])}`"
    return "that of the Config" if "shared." in source else f"`{_constant(source)}`"


def _constant(name: str) -> str:
    from kube import keys

    return str(getattr(keys, name, name))


# ------------------------------------------------------------------ labels and annotations


def labels() -> str:
    """Return the keys of kube/keys.py with their meanings.

    Raises
    ------
    KeyError : a key has no meaning in key_meanings.py
    """
    from kube import keys

    names = [name for name in vars(keys) if name.isupper() and name not in OTHERS]
    rows = [(f"`{getattr(keys, name)}`", MEANINGS[name]) for name in names]
    return (
        f"{NOTE}# Labels, annotations and resources\n\nKAI's names where KAI has one, `kaiweb.dev/` where it has none.\n\n"
        f"{table(('name', 'meaning'), rows)}"
    )


# ------------------------------------------------------------------ metrics and events


def metrics() -> str:
    """Return all series by the process that serves them."""
    from queues.controllers.metrics import FIXED_LABELS, HELP
    from scheduler.metrics import SchedulerMetrics

    columns = ("metric", "type", "labels", "meaning")
    scheduler = sorted(_of_registry(SchedulerMetrics()))
    queues = [
        (f"`kai_{name}`", "gauge", ", ".join(FIXED_LABELS), text) for name, text in HELP.items()
    ]
    web = sorted({row for _package, tree in sources('"kaiweb_') for row in _constructed(tree)})
    return (
        f"{NOTE}# Metrics\n\n## Schedulers\n\nPort `scheduler-metrics` in `ports.json`. `kai` is the default of the namespace."
        f"\n\n{table(columns, scheduler)}\n## Queues\n\nPort `controller-metrics`.\n\n{table(columns, queues)}\n"
        f"## Web process\n\n`/metrics` of the page.\n\n{table(columns, web)}"
    )


def _of_registry(holder: Any) -> Iterator[tuple[str, str, str, str]]:
    for collector in holder.registry._collector_to_names:
        for family in collector.describe():
            kind = "counter" if family.type == "unknown" else family.type
            # A collector of several metrics has the labels at each of them.
            labels = getattr(family, "_labelnames", None) or collector._labelnames
            yield f"`{family.name}`", kind, ", ".join(labels), family.documentation


def _constructed(tree: ast.Module) -> Iterator[tuple[str, str, str, str]]:
    """Yield the metrics that a module makes with a constant name beginning with kaiweb_."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        kind = METRIC_TYPES.get(call.func.id) if isinstance(call.func, ast.Name) else None
        words = [node.value for node in call.args if isinstance(node, ast.Constant)]
        if kind is None or len(words) < 2 or not str(words[0]).startswith("kaiweb_"):
            continue
        label_lists = [word.value for word in call.keywords if word.arg in ("labels", "labelnames")]
        label_names = (
            ast.literal_eval(label_lists[0])
            if label_lists and isinstance(label_lists[0], ast.List)
            else []
        )
        suffix = "_total" if kind == "counter" and not str(words[0]).endswith("_total") else ""
        yield f"`{words[0]}{suffix}`", kind, ", ".join(label_names), str(words[1])


def events() -> str:
    """Return the reasons of all events, with the package that writes them."""
    rows = sorted(
        {
            (f"`{reason}`", about, package)
            for package, tree in sources("recorder.")
            for reason, about in _events(tree)
        }
    )
    return (
        f"{NOTE}# Events\n\nTexts are KAI's. Events about waiting carry the annotation `kaiweb.dev/reason-code`"
        f" ([codes](../guides/why-it-waits.md)).\n\n{table(('reason', 'about', 'written by'), rows)}"
    )


def _events(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            if isinstance(call.func, ast.Name) and call.func.id == "event_about":
                about = "pod" if ast.unparse(call.args[0]) == "PODS" else "pod group"
                yield from ((reason, about) for reason in _reasons(call.args[3], function, tree))
            elif (
                isinstance(call.func, ast.Attribute)
                and call.func.attr == "warn"
                and len(call.args) == 3
            ):
                yield from ((reason, "pod") for reason in _reasons(call.args[1], function, tree))


def _reasons(value: ast.expr, function: ast.FunctionDef, tree: ast.Module) -> set[str]:
    """Return the texts that an expression may have, through the assignments of the function and the module."""
    reasons: set[str] = set()
    for node in ast.walk(value):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and REASON.fullmatch(node.value)
        ):
            reasons.add(node.value)
        elif isinstance(node, ast.Name):
            for assignment in (*ast.walk(function), *tree.body):
                if isinstance(assignment, ast.Assign) and node.id in {
                    name.id
                    for target in assignment.targets
                    for name in ast.walk(target)
                    if isinstance(name, ast.Name)
                }:
                    reasons |= _reasons(assignment.value, function, tree)
    return reasons - {"Normal", "Warning"}


# ------------------------------------------------------------------ reasons


def reason_codes() -> str:
    """Return the codes of `queues/workloads/reasons.py` with the texts and remedies that the dashboard shows."""
    from queues.workloads import reasons

    source = (ROOT / "frontend/web/src/i18n/reasons.ts").read_text()
    texts, remedies = (
        dict(
            re.findall(r'^  (\w+):\s+"(.*)",$', source.partition(start)[2].partition("};")[0], re.M)
        )
        for start in ("const REASONS", "const REMEDIES")
    )
    codes = [
        value for name, value in vars(reasons).items() if name.isupper() and isinstance(value, str)
    ]
    rows = ((f"`{code}`", texts[code], remedies[code]) for code in codes)
    return (
        f"{NOTE}# Reason codes\n\nWhy a workload waits, in the order in which they are looked at: in lists, on pages, in REST"
        " (`reason.code`) and as annotation `kaiweb.dev/reason-code` of events. [What each means](../guides/why-it-waits.md)."
        f"\n\n{table(('code', 'the dashboard says', 'what ends it'), rows)}"
    )


# ------------------------------------------------------------------ REST


def rest() -> str:
    """Return the operations of the OpenAPI document."""
    from kaiweb.api.document import document

    paths = json.loads(document().body)["paths"]
    rows = [
        (f"`{method.upper()} {path}`", _line(operation), f"`{operation['operationId']}`")
        for path, operations in paths.items()
        for method, operation in operations.items()
    ]
    return (
        f"{NOTE}# REST operations\n\n{len(rows)} operations; parameters and bodies are in the OpenAPI document,"
        " `GET /api/v1/openapi.json`. Refusals are problem documents (RFC 9457).\n\n"
        f"{table(('operation', 'what it does', 'operationId'), rows)}"
    )


def _line(operation: dict[str, Any]) -> str:
    return (
        str(operation.get("description") or operation.get("summary") or "")
        .strip()
        .partition("\n")[0]
    )


def decisions() -> str:
    """Return the list of the architecture decisions."""
    files = sorted((ROOT / "docs" / "adr").glob("*.md"))
    lines = [
        f"- [{file.read_text().partition(chr(10))[0].lstrip('# ')}](../adr/{file.name})"
        for file in files
    ]
    return f"{NOTE}# Decisions\n\n" + "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()

"""`kaiweb bench WORKLOAD [sizes] [--json]`: time the core on a made-up cluster."""

from __future__ import annotations

import inspect
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from scheduler.tools.bench import opening
from scheduler.tools.bench.measure import Measurement, measure
from scheduler.tools.bench.workloads import WORKLOADS

NODES = 5000


class Command(BaseCommand):
    """Run a workload and print how long opening the session and each action took."""

    help = "Time the scheduling core: session opening and each action apart, best of several runs."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take a workload (or a JSON file, or 'list') and its sizes."""
        parser.add_argument("workload", help="a name, a JSON file of the same form, or 'list'")
        parser.add_argument("sizes", nargs="*", help="500, or nodes=500 jobs=8")
        parser.add_argument("--runs", type=int, default=3, help="best of so many (default 3)")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run it."""
        name = options["workload"]
        if name == opening.NAME:
            self._open(**options)
            return
        if name == "list":
            for workload_name, builder in sorted(WORKLOADS.items()):
                self.stdout.write(f"{workload_name}{inspect.signature(builder)}".split(" ->")[0])
            self.stdout.write(f"{opening.NAME}(nodes: int = {NODES}, others: int = 0)")
            return
        measurement = measure(_document(name, options["sizes"]), max(1, options["runs"]))
        if options["json"]:
            self.stdout.write(json.dumps(measurement.as_dict()))
        else:
            self.stdout.write(_text(measurement))

    def _open(self, **options: Any) -> None:
        """Measure how long it takes to open sessions on a large cluster."""
        sizes = dict(_parameter(size) for size in options["sizes"])
        nodes, others = sizes.get("nodes", NODES), sizes.get("others", 0)
        rows = opening.measure(nodes, max(1, options["runs"]), others)
        as_json = json.dumps([asdict(row) for row in rows])
        self.stdout.write(as_json if options["json"] else opening.text(nodes, rows, others))


def _document(name: str, sizes: list[str]) -> dict[str, Any]:
    if name in WORKLOADS:
        try:
            plain = [_value(size) for size in sizes if "=" not in size]
            named = dict(_parameter(size) for size in sizes if "=" in size)
            return WORKLOADS[name](*plain, **named)
        except TypeError as error:
            signature = str(inspect.signature(WORKLOADS[name])).split(" ->")[0]
            raise CommandError(f"{name}: {error}; parameters are {signature}") from error
    path = Path(name)
    if not path.is_file():
        raise CommandError(f"no workload {name!r} and no such file; see 'bench list'")
    try:
        document = json.loads(path.read_text())
    except json.JSONDecodeError as error:
        raise CommandError(f"{name} is not JSON: {error}") from error
    if not isinstance(document, dict) or "jobs" not in document or "actions" not in document:
        raise CommandError(f"{name} is not a workload: expected an object with jobs and actions")
    return document


def _parameter(text: str) -> tuple[str, Any]:
    key, _, value = text.partition("=")
    return key, _value(value)


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None if text == "none" else text


def _text(measurement: Measurement) -> str:
    summary = ", ".join(
        f"{count} {counter_name.replace('_', ' ')}"
        for counter_name, count in measurement.summary.items()
    )
    lines = [
        f"{measurement.name}: {summary}",
        f"  best of {measurement.runs}; opening the session {measurement.open_s * 1000:.1f} ms",
    ]
    lines += [
        f"  {name:<20} {seconds * 1000:10.2f} ms" for name, seconds in measurement.actions_s.items()
    ]
    outcome = {key: value for key, value in measurement.as_dict()["outcome"].items() if value}
    lines.append(f"  outcome: {outcome or 'nothing to do'}")
    return "\n".join(lines)

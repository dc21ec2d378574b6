"""Complete queue names, workload names and fields in the shell; whoever has no access gets no suggestions."""

from __future__ import annotations

import click

from kaiweb.terminal.access import read_access
from kaiweb.terminal.edits import KNOWN
from kaiweb.terminal.errors import TerminalError
from kaiweb.terminal.output import workload_name
from kaiweb.terminal.rest import Rest

MAX_NAMES = 200


def complete_queues(_context: click.Context, _parameter: click.Parameter, start: str) -> list[str]:
    """Return the names of queues that begin with `start`."""
    try:
        rows = Rest(read_access()).items("queues")
    except TerminalError:
        return []
    return [row["name"] for row in rows if row["name"].startswith(start)]


def complete_workloads(
    _context: click.Context, _parameter: click.Parameter, start: str
) -> list[str]:
    """Return `namespace/owner` of waiting workloads that begins with `start`."""
    parameters = {"state": "pending,gated,partial", "limit": str(MAX_NAMES)}
    namespace, slash, _ = start.partition("/")
    if slash:
        parameters["namespace"] = namespace
    try:
        rows = Rest(read_access()).get("workloads", **parameters)["items"]
    except TerminalError:
        return []
    names = {workload_name(row) for row in rows}
    return sorted(name for name in names if name.startswith(start))


def complete_fields(_context: click.Context, _parameter: click.Parameter, start: str) -> list[str]:
    """Return the fields of a queue that begin with `start`, each with an equals sign."""
    return [f"{field}=" for field in KNOWN if field.startswith(start)]

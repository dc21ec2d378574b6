"""`kaiweb queues`: the tree, what an edit would do, and the edit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlencode

import click
from rich.console import RenderableType
from rich.table import Table

from kaiweb.terminal import preview
from kaiweb.terminal.completion import complete_fields, complete_queues
from kaiweb.terminal.edits import KNOWN, read_edit
from kaiweb.terminal.errors import TerminalError
from kaiweb.terminal.output import (
    TABLE,
    console,
    cores,
    gibibytes,
    number,
    output_option,
    show,
    table,
)
from kaiweb.terminal.rest import Json, Rest, segment

#: Resource in the command -> its name in the API, and how its amounts are written.
RESOURCES = {
    "gpu": ("gpu", number),
    "cpu": ("cpuMilli", cores),
    "memory": ("memoryBytes", gibibytes),
}
COLUMNS = ("quota", "limit", "weight", "share", "allocated", "requested")
EVICTS_EXIT = 3
FIELDS_HELP = (
    f"FIELD is one of {', '.join(KNOWN)}. VALUE: an amount (4, 500m, 64Gi), unlimited or unset."
)


@click.group(invoke_without_command=True)
@click.option(
    "--root", shell_complete=complete_queues, help="Show only this queue and those below it."
)
@click.option(
    "--resource",
    type=click.Choice(tuple(RESOURCES)),
    default="gpu",
    show_default=True,
    help="CPU is shown in cores, memory in GiB.",
)
@output_option
@click.pass_context
def queues(context: click.Context, root: str | None, resource: str, output_format: str) -> None:
    """Show the tree of queues; `what-if` and `set` preview and make edits."""
    if context.invoked_subcommand is not None:
        return
    rest: Rest = context.obj()
    rows = rest.items("queues", **({"root": root} if root else {}))
    if root and not rows:
        raise TerminalError(f"queue '{root}' does not exist", "`kaiweb queues` lists all")
    show(rows, output_format, lambda: render_tree(rows, resource))


@queues.command("what-if", epilog=FIELDS_HELP)
@click.argument("name", shell_complete=complete_queues)
@click.argument(
    "fields", nargs=-1, required=True, metavar="FIELD=VALUE...", shell_complete=complete_fields
)
@click.option(
    "--cycles", default=preview.CYCLES, show_default=True, help="Scheduling cycles to run."
)
@click.option(
    "--fail-on-evictions", is_flag=True, help=f"End with {EVICTS_EXIT} if pods would be evicted."
)
@output_option
@click.pass_obj
def what_if(
    connect: Any,
    name: str,
    fields: Sequence[str],
    cycles: int,
    fail_on_evictions: bool,
    output_format: str,
) -> None:
    """Show who would start and who would be evicted if NAME were edited so. Nothing is written."""
    simulation = preview.simulate(connect(), name, read_edit(fields), cycles)
    show(simulation, output_format, lambda: preview.render(simulation))
    verdict = simulation["answer"]["verdict"]
    if verdict == "invalid":
        raise click.exceptions.Exit(1)
    if fail_on_evictions and verdict == preview.EVICTS:
        raise click.exceptions.Exit(EVICTS_EXIT)


@queues.command("set", epilog=FIELDS_HELP)
@click.argument("name", shell_complete=complete_queues)
@click.argument(
    "fields", nargs=-1, required=True, metavar="FIELD=VALUE...", shell_complete=complete_fields
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask, even if pods would be evicted.")
@click.option("--no-preview", is_flag=True, help="Do not simulate the edit first.")
@click.option("--reason", default="", help="Why; it is kept in the audit log.")
@output_option
@click.pass_obj
def set_queue(
    connect: Any,
    name: str,
    fields: Sequence[str],
    yes: bool,
    no_preview: bool,
    reason: str,
    output_format: str,
) -> None:
    """Edit NAME. The edit is previewed first; if it evicts pods, the command asks before it is made."""
    rest, edit = connect(), read_edit(fields)
    queue = rest.get(f"queues/{segment(name)}")
    if not no_preview:
        _confirm(preview.simulate(rest, name, edit), yes, output_format)
    query = f"?{urlencode({'reason': reason})}" if reason else ""
    written = rest.patch(f"queues/{segment(name)}{query}", edit, If_Match=queue["etag"])
    show(written, output_format, lambda: render_diff(written))


def _confirm(simulation: Json, yes: bool, output_format: str) -> None:
    verdict = simulation["answer"]["verdict"]
    if output_format == TABLE:
        console().print(preview.render(simulation))
    if verdict == "invalid":
        messages = "; ".join(finding["message"] for finding in simulation["answer"]["errors"])
        raise TerminalError(f"the edit is invalid: {messages}")
    if verdict != preview.EVICTS or yes:
        return
    count = simulation["answer"]["totals"]["evictedOnlyByEdits"]
    click.confirm(f"The edit evicts {count} pods. Make it?", abort=True, err=True)


def render_tree(rows: Sequence[Json], resource: str = "gpu") -> Table:
    """Return the tree as a table: each queue below its parent, indented."""
    grid = table(
        "queue", *COLUMNS, "running", "pending", "", right=(*COLUMNS, "running", "pending")
    )
    key, write_amount = RESOURCES[resource]
    for row, depth in in_tree_order(rows):
        amounts = [
            number((row[column] or {}).get(key))
            if column == "weight"  # has no unit
            else write_amount((row[column] or {}).get(key))
            for column in COLUMNS
        ]
        grid.add_row(
            "  " * depth + row["name"],
            *amounts,
            str(row["runningWorkloads"]),
            str(row["pendingWorkloads"]),
            "; ".join(row["problems"]),
            style="red" if row["orphan"] else None,
        )
    return grid


def in_tree_order(rows: Sequence[Json]) -> Iterator[tuple[Json, int]]:
    """Yield each queue with its depth, parents before their children; one without a listed parent is a root.

    Queues whose parents form a circle have no root above them; they come last.
    """
    by_name = {row["name"]: row for row in rows}
    children: dict[str | None, list[str]] = defaultdict(list)
    for row in rows:
        children[row["parent"] if row["parent"] in by_name else None].append(row["name"])
    remaining = dict(by_name)
    stack = [(name, 0) for name in sorted(children[None], reverse=True)]
    while stack or remaining:
        name, depth = stack.pop() if stack else (min(remaining), 0)
        if name not in remaining:
            continue
        yield remaining.pop(name), depth
        stack += [(child, depth + 1) for child in sorted(children[name], reverse=True)]


def render_diff(written: Json) -> RenderableType:
    """Return what a write has changed, field by field."""
    if not written["changed"]:
        return "No change: the queue has these values already."
    grid = table("changed", "before", "after")
    for row in written["diff"]:
        grid.add_row(row["pointer"].lstrip("/"), _shown(row["before"]), _shown(row["after"]))
    return grid


def _shown(value: Any) -> str:
    return number(value) if isinstance(value, int | float | None) else str(value)

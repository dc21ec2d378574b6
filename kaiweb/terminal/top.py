"""`kaiweb top`: queues and GPUs of the cluster, drawn again every two seconds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kaiweb.terminal.output import TABLE, console, number, output_option, show, table
from kaiweb.terminal.queues import in_tree_order
from kaiweb.terminal.rest import Json, Rest

#: Width of the longest bar, in characters.
BAR = 24
#: State of a device -> its cell and color.
CELLS = {
    "free": ("·", "dim"),
    "whole": ("█", "green"),
    "shared": ("▄", "cyan"),
    "reserved": ("░", "cyan"),
    "unhealthy": ("x", "red"),
}
LEGEND = "█ whole  ▄ shared  · free  x unhealthy"


@click.command()
@click.option(
    "--interval", default=2.0, show_default=True, type=click.FloatRange(min=0.5), help="Seconds."
)
@click.option(
    "--once", is_flag=True, help="Print once; the default where the output is no terminal."
)
@output_option
@click.pass_obj
def top(connect: Any, interval: float, once: bool, output_format: str) -> None:
    """Show queues and GPUs, live. Ctrl-C ends it."""
    rest = connect()
    screen = console()
    if once or output_format != TABLE or not screen.is_terminal:
        content = read(rest)
        show(content, output_format, lambda: render(content))
        return
    with Live(render(read(rest)), console=screen, screen=True, auto_refresh=False) as live:
        while True:
            time.sleep(interval)
            live.update(render(read(rest)), refresh=True)


def read(rest: Rest) -> Json:
    """Return the cluster, its queues and its nodes."""
    return {
        "cluster": rest.get("cluster"),
        "queues": rest.items("queues"),
        "nodes": rest.items("nodes"),
    }


def render(content: Json) -> RenderableType:
    """Return one screen."""
    return Group(
        _head(content["cluster"]),
        Text(),
        _queues(content["queues"]),
        Text(),
        _nodes(content["nodes"]),
    )


def _head(cluster: Json) -> Text:
    gpus, workloads, sessions = cluster["gpus"], cluster["workloads"], cluster["sessions"]
    reasons = ", ".join(f"{row['workloads']} {row['reason']}" for row in cluster["pendingByReason"])
    return Text.assemble(
        ("GPUs ", "bold"),
        f"{number(gpus['allocated'])} of {gpus['total']} allocated, {number(gpus['free'])} free   ",
        ("Nodes ", "bold"),
        f"{cluster['nodes']['ready']} of {cluster['nodes']['total']} ready   ",
        ("Workloads ", "bold"),
        f"{workloads['running']} running, {workloads['pending']} pending"
        + (f" ({reasons})" if reasons else ""),
        ("   Cycles ", "bold"),
        f"{sessions['perMinute']} a minute, last {number(sessions['lastDurationMs'])} ms",
    )


def _queues(rows: Sequence[Json]) -> Table:
    columns = ("quota", "share", "allocated", "requested", "running", "pending")
    grid = table("queue", "GPUs: ━ in quota, ━ above, ─ requested", *columns, right=columns)
    largest = max(
        (_gpu(row, name) for row in rows for name in ("allocated", "requested")), default=0
    )
    for row, depth in in_tree_order(rows):
        grid.add_row(
            "  " * depth + row["name"],
            _bar(row, largest),
            *(number((row[column] or {}).get("gpu")) for column in columns[:4]),
            str(row["runningWorkloads"]),
            str(row["pendingWorkloads"]),
        )
    return grid


def _gpu(row: Json, column: str) -> float:
    value = (row[column] or {}).get("gpu", 0)
    return float("inf") if isinstance(value, str) else float(value)


def _bar(row: Json, largest: float) -> Text:
    """Return the GPUs of a queue: those within its quota, those above, and what it requests beyond."""
    scale = BAR / largest if largest else 0
    allocated = round(_gpu(row, "allocated") * scale)
    requested = round(_gpu(row, "requested") * scale)
    within = round(min(_gpu(row, "quota"), _gpu(row, "allocated")) * scale)
    return Text.assemble(
        ("━" * within, "green"),
        ("━" * (allocated - within), "yellow"),
        ("─" * (requested - allocated), "dim"),
    )


def _nodes(rows: Sequence[Json]) -> RenderableType:
    grid = table("node", "model", LEGEND, "allocated", "", right=("allocated",))
    for row in rows:
        if not row["gpuTotal"]:
            continue
        cells = Text.assemble(*(CELLS.get(cell["state"], ("?", "dim")) for cell in row["devices"]))
        state = "" if row["ready"] else "not ready"
        state = "cordoned" if row["cordoned"] else state
        usage = f"{number(row['gpuAllocated'])}/{row['gpuTotal']}"
        grid.add_row(row["name"], row["model"], cells, usage, state)
    return grid

"""`kaiweb order`: who waits for room, next one first."""

from __future__ import annotations

from typing import Any

import click
from rich.console import RenderableType

from kaiweb.terminal.completion import complete_queues
from kaiweb.terminal.output import age, number, output_option, show, table, workload_name
from kaiweb.terminal.rest import Json, segment


@click.command()
@click.option(
    "--queue", shell_complete=complete_queues, help="Only workloads of this queue and those below."
)
@click.option("--pool", help="Only this node pool.")
@output_option
@click.pass_obj
def order(connect: Any, queue: str | None, pool: str | None, output_format: str) -> None:
    """Show the order in which the scheduler serves waiting workloads."""
    path = f"queues/{segment(queue)}/order" if queue else "order"
    rows = connect().items(path, **({"pool": pool} if pool is not None else {}))
    show(rows, output_format, lambda: render(rows))


def render(rows: list[Json]) -> RenderableType:
    """Return one line for each workload."""
    if not rows:
        return "Nobody waits for room."
    grid = table(
        "#", "workload", "queue", "priority", "GPUs", "waits", "reason", right=("#", "GPUs")
    )
    for row in rows:
        grid.add_row(
            str(row["position"]),
            workload_name(row),
            row["queue"],
            row["priorityClass"] or number(row["priority"]),
            number(row["gpu"]),
            age(row["createdAt"]),
            row["reason"],
        )
    return grid

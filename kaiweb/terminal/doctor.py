"""`kaiweb doctor`: what does not work, since when, and where to read on."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Group, RenderableType
from rich.text import Text

from kaiweb.terminal.output import age, output_option, show, table
from kaiweb.terminal.rest import Json

UNHEALTHY_EXIT = 1
#: With it the management command of the same name runs, which has options of its own.
CLUSTER_FLAG = "--cluster"
RUNBOOK = "docs/operations/when-something-stands-still.md"


@click.command()
@output_option
@click.option(
    CLUSTER_FLAG,
    is_flag=True,
    expose_value=False,
    help="Examine the cluster itself instead: rights, webhooks, other schedulers. Needs its kubeconfig.",
)
@click.pass_obj
def doctor(connect: Any, output_format: str) -> None:
    """Check the installation; end with 1 if something does not work."""
    health = connect().get("health")
    show(health, output_format, lambda: render(health))
    if health["status"] != "ok":
        raise click.exceptions.Exit(UNHEALTHY_EXIT)


def render(health: Json) -> RenderableType:
    """Return the faults, the processes that had to be started again, and the objects that are left out."""
    parts: list[RenderableType] = []
    if health["status"] == "ok":
        parts.append(Text("Everything works.", style="green"))
    else:
        grid = table("check", "fault", "since")
        for row in health["faults"]:
            grid.add_row(row["check"], row["fault"], age(row["since"]))
        parts += [Text("Something does not work.", style="bold red"), grid]
        parts.append(Text(f"What to do: {RUNBOOK}"))
    restless = [row for row in health["processes"] if row["fault"] or row["restarts"]]
    if restless:
        # The line break in each title leaves a blank line above the table.
        grid = table("\nprocess", "\nrestarts", "\nhangs", "\nfault")
        for row in restless:
            grid.add_row(row["name"], str(row["restarts"]), str(row["hangs"]), row["fault"])
        parts.append(grid)
    if health["setAside"]:
        grid = table("\nleft out", "\nsince", "\nreason")
        for row in health["setAside"]:
            name = "/".join(part for part in (row["namespace"], row["name"]) if part)
            grid.add_row(f"{row['kind']} {name}", age(row["time"]), row["reason"])
        parts.append(grid)
    return Group(*parts)

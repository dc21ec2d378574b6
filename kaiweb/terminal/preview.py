"""Ask the scheduler what an edit of a queue would do (POST /api/v1/simulations), and show the answer."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from kaiweb.terminal.edits import Edit
from kaiweb.terminal.errors import TerminalError
from kaiweb.terminal.output import number, table
from kaiweb.terminal.rest import Json, Rest

CYCLES = 3
WAIT_S = 40.0
POLL_S = 0.5
UNFINISHED = ("queued", "running")
EVICTS = "evicts"
VERDICTS = {
    "no-effect": ("green", "nothing starts, is evicted or gets another share"),
    "safe": ("green", "nobody is evicted because of it"),
    EVICTS: ("yellow", "it evicts pods that would otherwise stay"),
    "invalid": ("red", "it breaks a rule"),
}


def simulate(rest: Rest, name: str, edit: Edit, cycles: int = CYCLES) -> Json:
    """Return the finished simulation of one edit.

    Raises
    ------
    TerminalError : it failed, or does not end
    """
    question = {"cycles": cycles, "queues": [{"name": name, "edit": edit}]}
    simulation = rest.post("simulations", question, Prefer="wait=20")
    deadline = time.monotonic() + WAIT_S
    while simulation["state"] in UNFINISHED and time.monotonic() < deadline:
        time.sleep(POLL_S)
        simulation = rest.get(f"simulations/{simulation['id']}")
    if simulation["answer"] is None:
        cause = simulation["error"] or f"it is still {simulation['state']}"
        raise TerminalError(
            f"simulation {simulation['id']} has no answer: {cause}", "see `kaiweb doctor`"
        )
    return simulation


def render(simulation: Json) -> RenderableType:
    """Return the verdict, and what starts, is evicted, changes its share or gets another reason."""
    answer = simulation["answer"]
    color, meaning = VERDICTS[answer["verdict"]]
    parts: list[RenderableType] = [
        Text.assemble("Preview: ", (answer["verdict"], f"bold {color}"), f", {meaning}.")
    ]
    parts += [
        Text(f"  {finding['message']}", style=style)
        for findings, style in ((answer["errors"], "red"), (answer["warnings"], "yellow"))
        for finding in findings
    ]
    for title, rows in (("evicted", answer["evictions"]), ("started", answer["starts"])):
        caused = [row for row in rows if not row["withoutEdits"]]
        if caused:
            parts += [Text(f"\n{title}, only because of the edit", style="bold"), _moves(caused)]
    changed = [row for row in answer["shares"] if row["changed"]]
    if changed:
        parts += [Text("\nGPU shares", style="bold"), _shares(changed)]
    blocked = [row for row in answer["blocked"] if row["before"] != row["after"]]
    if blocked:
        parts += [Text("\nwaits for another reason", style="bold"), _blocked(blocked)]
    return Group(*parts)


def _moves(rows: list[dict[str, Any]]) -> RenderableType:
    """Return one line for all pods of a workload that move in the same cycle."""
    pods: dict[tuple[int, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        pods[row["cycle"], row["workload"]].append(row)
    numbers = ("cycle", "pods", "GPUs")
    grid = table("cycle", "workload", "pods", "GPUs", "nodes", "by", right=numbers)
    for (cycle, workload), moves in pods.items():
        gpus = number(sum(row["gpu"] for row in moves))
        nodes = ", ".join(sorted({row["node"] for row in moves}))
        by = moves[0].get("evictor") or moves[0]["action"]
        grid.add_row(str(cycle), workload, str(len(moves)), gpus, nodes, by)
    return grid


def _shares(rows: list[dict[str, Any]]) -> RenderableType:
    grid = table("queue", "share before", "after", "allocated before", "after")
    for row in rows:
        states = [row["before"] or {}, row["after"] or {}]
        cells = [
            number(state.get(column, {}).get("gpu"))
            for column in ("share", "allocated")
            for state in states
        ]
        grid.add_row(row["queue"], *cells)
    return grid


def _blocked(rows: list[dict[str, Any]]) -> RenderableType:
    grid = table("workload", "queue", "before", "after")
    for row in rows:
        grid.add_row(row["workload"], row["queue"], row["before"] or "-", row["after"] or "-")
    return grid

"""`kaiweb why NAMESPACE/NAME`: the reason why a workload waits, the evidence, and who is ahead of it."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Group, RenderableType
from rich.text import Text

from kaiweb.terminal.completion import complete_workloads
from kaiweb.terminal.errors import TerminalError
from kaiweb.terminal.output import age, number, output_option, show, table, workload_name
from kaiweb.terminal.rest import Json, RefusedError, Rest, segment

ENDED = ("finished", "failed")
MARKS = {"ok": ("✓", "green"), "blocked": ("✗", "red"), "waiting": ("…", "yellow")}


@click.command()
@click.argument("name", metavar="NAMESPACE/NAME", shell_complete=complete_workloads)
@output_option
@click.pass_obj
def why(connect: Any, name: str, output_format: str) -> None:
    """Explain why a workload waits, and why its placed pods are on their nodes.

    NAME is that of the Job or other owner, of the PodGroup, or of one of the pods.
    """
    namespace, slash, name = name.partition("/")
    if not slash or not namespace or not name:
        raise click.UsageError("expected NAMESPACE/NAME, such as team-a/train-7")
    rest = connect()
    workload = find_workload(rest, namespace, name)
    if any(pod["node"] for pod in workload.get("podList", ())):
        path = f"workloads/{segment(namespace)}/{segment(workload['name'])}/explain"
        workload["placements"] = rest.get(path)["placements"]
    show(workload, output_format, lambda: render(workload))


def find_workload(rest: Rest, namespace: str, name: str) -> Json:
    """Return the workload of this name, or the one whose owner or pod has it; an ended one only if no other has.

    Raises
    ------
    TerminalError : there is none, or there are several
    """
    try:
        return rest.get(f"workloads/{segment(namespace)}/{segment(name)}")
    except RefusedError as error:
        if error.status != 404:
            raise
    rows = rest.items("workloads", namespace=namespace)
    candidates = [row for row in rows if row["owner"] == name] or _of_pod(rows, name)
    candidates = [row for row in candidates if row["state"] not in ENDED] or candidates
    if not candidates:
        raise TerminalError(
            f"namespace '{namespace}' has no workload, owner or pod '{name}'",
            f"`kubectl get podgroups -n {namespace}` lists the workloads",
        )
    if len(candidates) > 1:
        names = ", ".join(f"{namespace}/{row['name']}" for row in candidates)
        raise TerminalError(f"'{name}' has {len(candidates)} workloads", f"choose one of {names}")
    return rest.get(f"workloads/{segment(namespace)}/{segment(candidates[0]['name'])}")


def _of_pod(rows: list[Json], pod: str) -> list[Json]:
    """Return the workloads with the longest owner name from which the pod's name may be derived."""
    owners = [row for row in rows if row["owner"] and pod.startswith(f"{row['owner']}-")]
    longest = max((len(row["owner"]) for row in owners), default=0)
    return [row for row in owners if len(row["owner"]) == longest]


def render(workload: Json) -> RenderableType:
    """Return the explanation as a person reads it."""
    explain = workload["explain"]
    owner = f"{workload['kind']} {workload['owner']}" if workload["owner"] else workload["name"]
    parts: list[RenderableType] = [
        Text.assemble(
            (f"{workload['namespace']}/{workload['name']}", "bold"),
            f"\n{owner}, {workload['state']}, created {age(workload['createdAt'])} ago, "
            f"queue {workload['queue']}, {number(workload['gpu'])} GPUs, "
            f"{workload['ready']} of {workload['pods']} pods placed",
        )
    ]
    if explain["reason"]:
        since = f" for {age(explain['since'])}" if explain["since"] else ""
        parts.append(Text.assemble("\nIt waits: ", (explain["reason"], "bold yellow"), since))
        parts.append(Text(explain["text"]))
    else:
        parts.append(Text("\nNothing keeps it.", style="green"))
    if explain.get("nextStep"):
        parts.append(Text.assemble(("What ends it: ", "bold"), explain["nextStep"]))
    parts += _evidence(explain["evidence"])
    parts += [Text(f"also: {other['reason']} {other['text']}") for other in explain["others"]]
    parts += _order(explain["order"])
    parts.append(_stages(explain["stages"]))
    parts += _placements(workload.get("placements", []))
    return Group(*parts)


def _evidence(rows: list[dict[str, Any]]) -> list[RenderableType]:
    if not rows:
        return []
    grid = table("\nevidence", "\nasked", "\navailable", "\nwhere")
    for row in rows:
        grid.add_row(row["name"], row["asked"], row["available"], row["where"])
    return [grid]


def _order(order: dict[str, Any] | None) -> list[RenderableType]:
    if order is None:
        return []
    head = Text(
        f"\nPosition {order['position']} of {order['of']} in the order of its node pool;"
        f" {order['aheadInQueue']} of its own queue are ahead."
    )
    if not order["ahead"]:
        return [head]
    grid = table("ahead of it", "queue", "GPUs", "position", right=("GPUs", "position"))
    for row in order["ahead"]:
        grid.add_row(workload_name(row), row["queue"], number(row["gpu"]), str(row["position"]))
    return [head, grid]


def _placements(rows: list[dict[str, Any]]) -> list[RenderableType]:
    """Return why pods are on their nodes; a part of both scores reads `name chosen/next`."""
    if not rows:
        return []
    grid = table("\nplaced", "\nnode", "\ndecided by", "\nnext best", "\nscores", "\nnodes")
    for row in rows:
        scores = ", ".join(
            f"{term['name']} {number(term['chosen'])}"
            + ("" if term["next"] is None else f"/{number(term['next'])}")
            for term in row["terms"]
        )
        refused = "".join(f", {entry['nodes']} {entry['reason']}" for entry in row["refused"])
        nodes = f"{row['possible']} of {row['considered']} possible{refused}"
        grid.add_row(
            row["pod"], row["node"], row["decidedBy"], row["nextNode"] or "none", scores, nodes
        )
    return [grid]


def _stages(stages: list[dict[str, Any]]) -> Text:
    line = Text("\n")
    for stage in stages:
        mark, color = MARKS.get(stage["state"], ("·", "dim"))
        line.append(f"{mark} {stage['stage']}  ", style=color)
    return line

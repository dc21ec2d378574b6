"""Draw the pictures of docs/concepts.md from results of the scheduling core, as SVG.

`python docs/tools/pictures.py` writes them into docs/pictures; a test compares them with what the core decides now.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from scheduler.core.fairshare.division import DivisionInput, divide_siblings  # noqa: E402
from scheduler.tools.simulate.living import LivingCluster  # noqa: E402
from tests.builders import ClusterBuilder, cluster  # noqa: E402

FOLDER = ROOT / "docs" / "pictures"
COLORS = {"research": "#4f7cac", "product": "#d98e3f", "free": "#e8e8ec", "quota": "#5b9a68"}
CELL = 22
UNLIMITED = np.inf


def main() -> None:
    """Write every picture."""
    FOLDER.mkdir(exist_ok=True)
    for name, picture in pictures().items():
        (FOLDER / name).write_text(picture)


def pictures() -> dict[str, str]:
    """Return file name -> SVG."""
    return {"fair-share.svg": fair_share(), "gang.svg": gang(), "reclaim.svg": reclaim()}


# ------------------------------------------------------------------ fair share


def fair_share() -> str:
    """Draw how 16 GPUs are divided: quotas first, then the rest by priority and weight."""
    names = ("vision", "language", "robotics", "search")
    quota, weight = np.array([4.0, 4.0, 2.0, 0.0]), np.array([1.0, 3.0, 1.0, 1.0])
    request = np.array([8.0, 12.0, 1.0, 4.0])
    quotas = divide(quota, np.zeros(4), request)
    shares = divide(quota, weight, request)
    unit, left = 26, 110
    parts = [text(left, 20, "16 GPUs: quotas first, the rest by weight")]
    for row, name in enumerate(names):
        y = 40 + row * 48
        parts += [
            text(0, y + 16, name),
            rectangle(left, y, request[row] * unit, CELL, "none", stroke="#888", dash=True),
            rectangle(left, y, quotas[row] * unit, CELL, COLORS["quota"]),
            rectangle(
                left + quotas[row] * unit, y, (shares[row] - quotas[row]) * unit, CELL, COLORS["product"]
            ),
            text(
                left, y + 38,
                f"asks {request[row]:g}, quota {quota[row]:g}, weight {weight[row]:g}: share {shares[row]:g}",
                small=True,
            ),
        ]  # fmt: skip
    y = 40 + len(names) * 48
    legend = (("from quota", COLORS["quota"]), ("over quota, by weight", COLORS["product"]))
    for column, (label, color) in enumerate(legend):
        x = left + column * 110
        parts += [rectangle(x, y, 12, 12, color), text(x + 18, y + 11, label, small=True)]
    parts += [
        rectangle(left + 270, y, 12, 12, "none", stroke="#888", dash=True),
        text(left + 288, y + 11, "asked", small=True),
    ]
    return svg(560, y + 24, parts)


def divide(quota: np.ndarray, weight: np.ndarray, request: np.ndarray) -> np.ndarray:
    """Return the GPUs of four siblings that divide 16."""
    queues = DivisionInput(
        quota=quota[None, :], limit=np.full((1, 4), UNLIMITED), weight=weight[None, :],
        request=request[None, :], usage=np.zeros((1, 4)),
        priority=np.zeros(4, dtype=np.int64), seniority=np.arange(4),
    )  # fmt: skip
    family = np.zeros(4, dtype=np.int64)
    shares: np.ndarray = divide_siblings(np.array([[16.0]]), family, queues, 0.0)[0]
    return shares


# ------------------------------------------------------------------ cycles


def gang() -> str:
    """Draw a gang that waits for room for all its pods while a single pod starts."""
    built = (
        cluster().nodes(2, 4).queue("research").queue("product")
        .running("old", ["n0", "n0", "n1"], queue="product")
        .pending("gang", 3, queue="research", gpus=2)
        .pending("single", queue="product", gpus=1)
    )  # fmt: skip
    here = living(built)
    frames = [("Before: `gang` needs 3 pods of 2 GPUs, `single` 1 GPU", state_of(here))]
    here.step()
    frames.append(("Cycle 1: two pods of the gang would fit, so none starts", state_of(here)))
    here.finish("old")
    here.step()
    frames.append(("`old` has ended, cycle 2: all three pods start together", state_of(here)))
    return draw(frames)


def reclaim() -> str:
    """Draw how a queue within its quota takes back GPUs that another has borrowed."""
    built = (
        cluster().nodes(2, 4).queue("research", 4).queue("product", 4)
        .running("train", ["n0"] * 4 + ["n1"] * 2, queue="research", minimum=1)
        .running("serve", ["n1", "n1"], queue="product", minimum=1)
    )  # fmt: skip
    here = living(built)
    frames = [("`research` has quota 4 and borrows 2 that nobody asked for", state_of(here))]
    waiting = cluster().queue("product").pending("new", 2, queue="product").build().pod_groups[0]
    here.submit(waiting)
    here.step()
    frames.append(
        ("`product` asks for the other half of its quota: cycle 1 evicts 2 pods", state_of(here))
    )
    here.step()
    frames.append(("Cycle 2: its pods start; both queues hold their quota", state_of(here)))
    return draw(frames)


def living(built: ClusterBuilder) -> LivingCluster:
    """Return a cluster that goes on from a snapshot."""
    snapshot = built.build()
    here = LivingCluster(snapshot.nodes, snapshot.queues)
    for group in snapshot.pod_groups:
        here.submit(group)
    return here


State = tuple[dict[str, list[tuple[str, str]]], list[tuple[str, str]]]


def state_of(here: LivingCluster) -> State:
    """Return (workload, queue) of every GPU by node, and of every pod that waits."""
    nodes: dict[str, list[tuple[str, str]]] = {node.name: [] for node in here.nodes}
    waiting = []
    for group in here.groups.values():
        for task in group.tasks:
            node = here.places[task.uid].node
            if node:
                nodes[node] += [(group.name, group.queue)] * int(task.request.gpus)
            else:
                waiting.append((group.name, group.queue))
    return nodes, waiting


def draw(frames: Sequence[tuple[str, State]]) -> str:
    """Draw one row for each frame: the GPUs of the nodes, and the pods that wait."""
    parts: list[str] = []
    height = 0
    for title, (nodes, waiting) in frames:
        parts.append(text(0, height + 16, title.replace("`", "")))
        x = 0
        for name, holders in nodes.items():
            parts.append(text(x, height + 36, name, small=True))
            for index in range(4):
                workload, queue = holders[index] if index < len(holders) else ("", "free")
                parts += cell(x + index * 58, height + 42, workload, COLORS[queue])
            x += 4 * 58 + 20
        parts.append(text(x, height + 36, "waiting", small=True))
        for index, (workload, queue) in enumerate(waiting):
            parts += cell(
                x + (index % 3) * 58, height + 42 + index // 3 * 26, workload, COLORS[queue]
            )
        height += 84
    return svg(700, height + 6, parts)


def cell(x: float, y: float, label: str, color: str) -> list[str]:
    """Return one GPU or waiting pod."""
    ink = "#ffffff" if label else "#888888"
    return [
        rectangle(x, y, 54, CELL, color),
        text(x + 27, y + 15, label or "free", small=True, color=ink, middle=True),
    ]


# ------------------------------------------------------------------ shapes


def rectangle(
    x: float,
    y: float,
    width: float,
    height: float,
    fill: str,
    stroke: str = "none",
    dash: bool = False,
) -> str:
    """Return a rectangle with round corners."""
    dashes = ' stroke-dasharray="3 2"' if dash else ""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3"'
        f' fill="{fill}" stroke="{stroke}"{dashes}/>'
    )


def text(
    x: float,
    y: float,
    content: str,
    *,
    small: bool = False,
    color: str = "#555555",
    middle: bool = False,
) -> str:
    """Return a line of text."""
    anchor = ' text-anchor="middle"' if middle else ""
    size = 11 if small else 13
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{color}"{anchor}>{escape(content)}</text>'


def svg(width: float, height: float, parts: Sequence[str]) -> str:
    """Return the picture."""
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img"'
        f' font-family="system-ui, sans-serif">\n{body}\n</svg>\n'
    )


if __name__ == "__main__":
    main()

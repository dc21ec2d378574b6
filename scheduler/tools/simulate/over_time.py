"""The time-based simulator: many cycles of the core, in which past usage changes the next division.

Input and output are those of KAI's tool. All pods exist from the start and never end; only
which queue holds the GPUs changes. Window and half-life are counted in cycles (a cycle is one second).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from scheduler.core.cluster.inputs import (
    UNLIMITED_AMOUNTS,
    NodeInput,
    PodGroupInput,
    PodSetInput,
    QueueAmounts,
    QueueInput,
    SubGroupInput,
    TaskInput,
    TaskRequest,
)
from scheduler.core.config import DEFAULT_PLUGINS, PluginConfig, SchedulerConfig
from scheduler.core.plugins.proportion import ProportionArguments
from scheduler.load.usage import UsageHistory, UsageSample
from scheduler.settings.usage import UsageParams
from scheduler.tools.simulate.fair_share import SimulationInputError
from scheduler.tools.simulate.living import CYCLE_S, LivingCluster, gangs_like

COLUMNS = ("Time", "QueueID", "Allocation", "FairShare")


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeInput:
    """What is simulated."""

    cycles: int = 100
    window_size: float = 5.0
    half_life: float = 0.0
    k_value: float = 1.0
    nodes: tuple[NodeInput, ...] = ()
    queues: tuple[QueueInput, ...] = ()
    groups: tuple[PodGroupInput, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Row:
    """One queue in one cycle."""

    time: int
    queue: str
    allocation: float
    fair_share: float


def simulate_over_time(simulation: TimeInput) -> list[Row]:
    """Run the cycles; one row per queue and cycle, GPUs held at its end and fair share."""
    params = UsageParams(
        window_s=simulation.window_size * CYCLE_S,
        half_life_s=simulation.half_life * CYCLE_S or None,
        fetch_interval_s=CYCLE_S,
    )
    history = UsageHistory(params)
    cluster = LivingCluster(simulation.nodes, simulation.queues, _config(simulation.k_value))
    for group in simulation.groups:
        cluster.submit(group)
    total = sum(node.allocatable["gpu"] for node in simulation.nodes)
    rows: list[Row] = []
    for cycle in range(simulation.cycles):
        cluster.usage = history.fetch(cluster.now_s)
        session = cluster.step()
        gpus_by_queue = cluster.gpus_of_queues(session)
        _add_to_parents(gpus_by_queue, simulation.queues)
        ledger = session.policy.ledger
        for index, name in enumerate(ledger.names):
            rows.append(Row(cycle, name, gpus_by_queue[name], ledger.fair_shares[index][2]))
        history.record(
            UsageSample(
                time_s=cluster.now_s,
                allocated={name: (0.0, 0.0, amount) for name, amount in gpus_by_queue.items()},
                capacity=(0.0, 0.0, total),
            )
        )
    return rows


def write_csv(rows: Iterable[Row]) -> str:
    """Print rows in the form of KAI's tool."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow((row.time, row.queue, f"{row.allocation:.6f}", f"{row.fair_share:.6f}"))
    return out.getvalue()


def read_time_input(body: Any) -> TimeInput:
    """Read the input; keys in any case.

    Raises
    ------
    SimulationInputError : not a mapping, no nodes, jobs of an unknown queue, a value out of range
    """
    data = _lowered(body, "input")
    queues = [_lowered(queue, "queue") for queue in data.get("queues") or []]
    names = [str(_need(queue, "name", "queue")) for queue in queues]
    cycles = int(_number(data, "cycles", 100, "input"))
    window = _number(data, "windowsize", 5, "input")
    if cycles < 1 or window <= 0:
        raise SimulationInputError(
            f"expected Cycles and WindowSize above 0, got {cycles}, {window}"
        )
    nodes = tuple(_nodes([_lowered(node, "node") for node in data.get("nodes") or []]))
    if not nodes:
        raise SimulationInputError("expected Nodes, got none")
    return TimeInput(
        cycles=cycles,
        window_size=window,
        half_life=_number(data, "halflifeperiod", 0, "input"),
        k_value=_number(data, "kvalue", 1.0, "input"),
        nodes=nodes,
        queues=tuple(_queue(queue, number, names) for number, queue in enumerate(queues)),
        groups=tuple(_groups(body, names)),
    )


def _config(k_value: float) -> SchedulerConfig:
    plugins = tuple(
        PluginConfig(plugin.name, ProportionArguments(k_value=k_value))
        if plugin.name == "proportion"
        else plugin
        for plugin in DEFAULT_PLUGINS
    )
    return SchedulerConfig(plugins=plugins)


def _add_to_parents(gpus_by_queue: dict[str, float], queues: Sequence[QueueInput]) -> None:
    parent = {queue.name: queue.parent for queue in queues}
    for name, amount in list(gpus_by_queue.items()):
        above = parent[name]
        while above:
            gpus_by_queue[above] += amount
            above = parent[above]


def _nodes(blocks: Sequence[Mapping[str, Any]]) -> Iterable[NodeInput]:
    number = 0
    for block in blocks:
        gpus = _number(block, "gpus", 0, "node")
        for _ in range(int(_number(block, "count", 1, "node"))):
            yield NodeInput(
                name=f"node-{number:04d}",
                allocatable={"cpu": 1e9, "memory": 1e15, "gpu": gpus, "pods": 1e6},
            )
            number += 1


def _queue(block: Mapping[str, Any], number: int, names: Sequence[str]) -> QueueInput:
    name, parent = str(block["name"]), str(block.get("parent") or "")
    if parent and parent not in names:
        raise SimulationInputError(f"queue {name!r}: its parent {parent!r} is not there")
    deserved = _number(block, "deservedgpus", 0, f"queue {name!r}")
    return QueueInput(
        name=name,
        parent=parent,
        priority=int(_number(block, "priority", 100, f"queue {name!r}")),
        created=float(number) - len(names),
        cpu=UNLIMITED_AMOUNTS,
        memory=UNLIMITED_AMOUNTS,
        gpu=QueueAmounts(
            quota=inf if deserved == -1 else deserved,
            limit=inf,
            over_quota_weight=_number(block, "weight", 1, f"queue {name!r}"),
        ),
    )


def _groups(body: Mapping[str, Any], names: Sequence[str]) -> Iterable[PodGroupInput]:
    jobs = next((value for key, value in body.items() if str(key).lower() == "jobs"), None) or {}
    for queue, job in jobs.items():
        if queue not in names:
            raise SimulationInputError(f"jobs: queue {queue!r} is not one of {', '.join(names)}")
        block = _lowered(job, f"jobs of {queue}")
        gpus = _number(block, "gpus", 1, f"jobs of {queue}")
        pods = int(_number(block, "numpods", 1, f"jobs of {queue}"))
        count = int(_number(block, "numjobs", 1, f"jobs of {queue}"))
        request = TaskRequest(
            gpus=gpus if gpus >= 1 else 0.0, gpu_fraction=gpus if 0 < gpus < 1 else 0.0
        )
        template = PodGroupInput(
            name=queue,
            queue=queue,
            root=SubGroupInput(pod_sets=(PodSetInput(min_available=pods),)),
            tasks=(TaskInput(name=queue, uid=queue, request=request),),
        )
        labels = [f"{queue}-{number:04d}" for number in range(count)]
        yield from gangs_like(labels, template, pods, -1000.0)


def _lowered(block: Any, location: str) -> dict[str, Any]:
    if not isinstance(block, Mapping):
        raise SimulationInputError(f"{location}: expected a mapping, got {type(block).__name__}")
    return {str(key).lower(): value for key, value in block.items()}


def _need(block: Mapping[str, Any], key: str, location: str) -> Any:
    if not block.get(key):
        raise SimulationInputError(f"{location}: expected a {key}, got {dict(block)!r}")
    return block[key]


def _number(block: Mapping[str, Any], key: str, default: float, location: str) -> float:
    value = block.get(key, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise SimulationInputError(f"{location}: expected a number for {key}, got {value!r}")
    return float(value)

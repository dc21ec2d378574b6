"""Read traces that describe a cluster but not its work, or work but no cluster; the missing half is made up.

Formats, by the file in the folder (`.csv` or `.csv.gz`):

* `nodes`: one row per node with its GPU model (spot2026). The pods are those of `generated`.
* `machine_shapes`: one row per kind of machine, and how many there are (pai2020). The pods are those of `generated`.
* `hosts`: hosts in a network of three levels, eight GPUs each (topology2023). The pods are gangs of the sizes of the
  Philly trace; a gang of several hosts must stay in one rack.
* `instances`: pods of inference services (dlrm2025). The nodes are made up, just enough for all of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from math import ceil
from pathlib import Path

from scheduler.tools.traces.generated import generated_pods
from scheduler.tools.traces.openb import Row, arrivals, has_rows, read_rows
from scheduler.tools.traces.trace import WHOLE_DEVICE, PodShape, Trace, TraceNode

MIB_PER_GIB = 1024
#: Spot nodes are listed without memory; this much beside each core is usual.
MIB_PER_CORE = 4 * MIB_PER_GIB
#: What a host of `hosts`, and a node made up for `instances`, has.
HOST_DEVICES, HOST_CPU_MILLI, HOST_MEMORY_MIB = 8, 128_000, 1_048_576
#: A node without GPU made up for `instances`.
PLAIN_CPU_MILLI, PLAIN_MEMORY_MIB = 192_000, 1_048_576
#: Nodes made up for `instances` beyond what its pods request in all.
SPARE = 1.1
#: Levels of the network of `hosts`, coarsest first; the columns are their names without what goes before.
PSW, RACK = "trace/psw", "trace/rack"
#: (Pods of a gang, devices of each), and how many jobs of the Philly trace are like that.
GANGS = (
    ((1, 1), 10_480),
    ((1, 2), 463),
    ((1, 4), 2_044),
    ((1, 8), 1_916),
    ((2, 8), 255),
    ((4, 8), 91),
    ((8, 8), 15),
)


def inventories_in(folder: Path) -> list[str]:
    """Return the names of the formats of this module that a folder has files of."""
    return [name for name in _READERS if has_rows(folder, name)]


def read_inventory(folder: Path, name: str, *, seed: int, demand: float) -> Trace:
    """Return the trace of one format.

    Parameters
    ----------
    name : one of `inventories_in`
    seed, demand : as for `read_openb`
    """
    return _READERS[name](folder, seed, demand)


def _with_generated_pods(name: str, nodes: Sequence[TraceNode], seed: int, demand: float) -> Trace:
    cluster = Trace(name=name, nodes=tuple(nodes), pods=())
    pods = generated_pods(demand * cluster.gpu_milli, random.Random(seed), seed)
    return Trace(name=name, nodes=cluster.nodes, pods=tuple(pods))


def _read_nodes(folder: Path, seed: int, demand: float) -> Trace:
    return _with_generated_pods("nodes", read_rows(folder, "nodes", _spot_node), seed, demand)


def _spot_node(row: Row) -> TraceNode:
    cores = int(row["cpu_num"])
    return TraceNode(
        name=f"node-{int(row['node_name']):05}",
        cpu_milli=cores * 1000,
        memory_mib=cores * MIB_PER_CORE,
        devices=int(row["gpu_capacity_num"]),
        model=row["gpu_model"],
    )


def _read_machine_shapes(folder: Path, seed: int, demand: float) -> Trace:
    kinds = read_rows(folder, "machine_shapes", _machines)
    nodes = [node for machines in kinds for node in machines]
    return _with_generated_pods("machine_shapes", nodes, seed, demand)


def _machines(row: Row) -> list[TraceNode]:
    kind, cores, memory_gib = row["gpu_type"], int(row["cpu_cores"]), int(row["memory_gib"])
    return [
        TraceNode(
            name=f"{kind.lower()}-{cores}-{memory_gib}-{number:04}",
            cpu_milli=cores * 1000,
            memory_mib=memory_gib * MIB_PER_GIB,
            devices=int(row["gpus"]),
            model=kind,
        )
        for number in range(int(row["machines"]))
    ]


def _read_hosts(folder: Path, seed: int, demand: float) -> Trace:
    nodes = read_rows(folder, "hosts", _host)
    cluster = Trace(name="hosts", nodes=tuple(nodes), pods=())
    draw = random.Random(seed)
    sizes, weights = zip(*GANGS, strict=True)
    # Single pods alone ask for more than one device on average, so this many jobs are always enough.
    count = ceil(demand * cluster.gpu_milli / WHOLE_DEVICE)
    jobs: list[PodShape] = []
    asked_milli = 0
    for pods, devices in draw.choices(sizes, weights, k=count):
        job = _gang(pods, devices)
        if asked_milli + job.gpu_milli > demand * cluster.gpu_milli:
            break
        jobs.append(job)
        asked_milli += job.gpu_milli
    return Trace(name="hosts", nodes=cluster.nodes, pods=tuple(jobs), levels=(PSW, RACK))


def _host(row: Row) -> TraceNode:
    """Return a host; racks of different parents may have the same name, so the parent is part of it."""
    return TraceNode(
        name=row["host"],
        cpu_milli=HOST_CPU_MILLI,
        memory_mib=HOST_MEMORY_MIB,
        devices=HOST_DEVICES,
        domains=(row["PSW"], f"{row['PSW']}-{row['ASW']}"),
    )


def _gang(pods: int, devices: int) -> PodShape:
    return PodShape(
        cpu_milli=devices * HOST_CPU_MILLI // HOST_DEVICES // 2,
        memory_mib=devices * HOST_MEMORY_MIB // HOST_DEVICES // 2,
        devices=devices,
        device_milli=WHOLE_DEVICE,
        pods=pods,
        level=RACK if pods > 1 else "",
    )


def _read_instances(folder: Path, seed: int, demand: float) -> Trace:
    shapes = read_rows(folder, "instances", _instance)
    devices = sum(shape.devices for shape in shapes)
    plain_milli = sum(shape.cpu_milli for shape in shapes if not shape.devices)
    nodes = [
        *(_made_up("gpu", n, HOST_DEVICES) for n in range(ceil(SPARE * devices / HOST_DEVICES))),
        *(_made_up("cpu", n, 0) for n in range(ceil(SPARE * plain_milli / PLAIN_CPU_MILLI))),
    ]
    cluster = Trace(name="instances", nodes=tuple(nodes), pods=())
    pods = arrivals(shapes, demand * cluster.gpu_milli, seed)
    return Trace(name="instances", nodes=cluster.nodes, pods=tuple(pods))


def _instance(row: Row) -> PodShape:
    devices = int(row["gpu_request"])
    return PodShape(
        cpu_milli=int(float(row["cpu_request"]) * 1000),
        memory_mib=int(float(row["memory_request"]) * MIB_PER_GIB),
        devices=devices,
        device_milli=WHOLE_DEVICE if devices else 0,
    )


def _made_up(kind: str, number: int, devices: int) -> TraceNode:
    return TraceNode(
        name=f"{kind}-{number:05}",
        cpu_milli=HOST_CPU_MILLI if devices else PLAIN_CPU_MILLI,
        memory_mib=HOST_MEMORY_MIB if devices else PLAIN_MEMORY_MIB,
        devices=devices,
    )


_READERS: dict[str, Callable[[Path, int, float], Trace]] = {
    "nodes": _read_nodes,
    "machine_shapes": _read_machine_shapes,
    "hosts": _read_hosts,
    "instances": _read_instances,
}

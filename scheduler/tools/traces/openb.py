"""Read the openb trace: GPU nodes of several models, and pods many of which ask for a part of a GPU.

A folder holds `nodes_gpu.csv.gz` and one `pods_LIST.csv.gz` for each list of pods (or the same as plain
`.csv`). The lists ask for less than the cluster has, so a list is topped up with pods drawn from it until
its demand is a chosen multiple of the cluster, and shuffled: the method of the published results.
"""

from __future__ import annotations

import csv
import gzip
import io
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from scheduler.tools.traces.trace import PodShape, Trace, TraceError, TraceNode

Row = dict[str, str]
T = TypeVar("T")


def read_openb(folder: Path, pod_list: str, *, seed: int, demand: float) -> Trace:
    """Return a list of pods on the GPU nodes of the folder.

    Parameters
    ----------
    pod_list : the LIST of a file `pods_LIST.csv.gz`
    seed : of the draws and the shuffle
    demand : GPUs to ask for, as a multiple of those of the cluster; a list that asks for more stays whole
    """
    nodes = read_rows(folder, "nodes_gpu", node_of_row)
    shapes = read_rows(folder, f"pods_{pod_list}", shape_of_row)
    cluster = Trace(name=pod_list, nodes=tuple(nodes), pods=())
    pods = arrivals(shapes, demand * cluster.gpu_milli, seed)
    return Trace(name=pod_list, nodes=cluster.nodes, pods=tuple(pods))


def arrivals(shapes: Sequence[PodShape], demand_milli: float, seed: int) -> list[PodShape]:
    """Return the shapes in random order, topped up by draws until they ask for `demand_milli` (thousandths of GPUs)."""
    draw = random.Random(seed)
    pods = list(shapes)
    requested_milli = sum(shape.gpu_milli for shape in pods)
    if requested_milli == 0:
        raise TraceError("the list of pods asks for no GPU at all")
    while requested_milli < demand_milli:
        shape = shapes[draw.randrange(len(shapes))]
        if requested_milli + shape.gpu_milli > demand_milli:
            break
        pods.append(shape)
        requested_milli += shape.gpu_milli
    draw.shuffle(pods)
    return pods


def lists_in(folder: Path) -> list[str]:
    """Return the names of the lists of pods in a folder."""
    names = {path.name.partition(".")[0] for path in folder.glob("pods_*.csv*")}
    return sorted(name.removeprefix("pods_") for name in names)


def has_rows(folder: Path, stem: str) -> bool:
    """Return whether a folder has a file, plain or packed."""
    return (folder / f"{stem}.csv.gz").is_file() or (folder / f"{stem}.csv").is_file()


def read_rows(folder: Path, stem: str, convert: Callable[[Row], T]) -> list[T]:
    """Return what `convert` makes of each row of a file, plain or packed.

    Raises
    ------
    TraceError : no such file, no rows, or a row that cannot be converted
    """
    plain, packed = folder / f"{stem}.csv", folder / f"{stem}.csv.gz"
    if packed.is_file():
        text = gzip.decompress(packed.read_bytes()).decode()
    elif plain.is_file():
        text = plain.read_text()
    else:
        files = sorted(path.name for path in folder.glob("*.csv*"))
        file_names = ", ".join(files) or "none"
        raise TraceError(
            f"{folder}: expected {stem}.csv or {stem}.csv.gz; files there: {file_names}"
        )
    rows = []
    for number, row in enumerate(csv.DictReader(io.StringIO(text)), start=2):
        try:
            rows.append(convert(row))
        except (KeyError, ValueError) as error:
            raise TraceError(f"{folder}/{stem}, line {number}: {error!r} in {row}") from error
    if not rows:
        raise TraceError(f"{folder}/{stem}: expected rows below the header, got none")
    return rows


def node_of_row(row: Row) -> TraceNode:
    """Return the node of a row."""
    return TraceNode(
        name=row["sn"],
        cpu_milli=int(row["cpu_milli"]),
        memory_mib=int(row["memory_mib"]),
        devices=int(row["gpu"]),
        model=row["model"],
    )


def shape_of_row(row: Row) -> PodShape:
    """Return the pod of a row."""
    devices = int(row["num_gpu"])
    models = row.get("gpu_spec") or ""
    return PodShape(
        cpu_milli=int(row["cpu_milli"]),
        memory_mib=int(row["memory_mib"]),
        devices=devices,
        device_milli=int(row["gpu_milli"]) if devices else 0,
        models=tuple(models.split("|")) if models else (),
    )

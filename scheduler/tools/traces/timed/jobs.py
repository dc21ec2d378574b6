"""Jobs with arrival times and durations, read from files.

Three formats are known, by the files in the folder: `vc_jobs.csv(.gz)` and `job_durations.csv(.gz)` as made from
the Philly trace (queues and gangs), and `pods_LIST.csv(.gz)` with `nodes_gpu.csv(.gz)` as in openb.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from scheduler.tools.traces.openb import (
    Row,
    has_rows,
    lists_in,
    node_of_row,
    read_rows,
    shape_of_row,
)
from scheduler.tools.traces.trace import WHOLE_DEVICE, PodShape, TraceError, TraceNode

VC_JOBS = "vc_jobs"
JOB_DURATIONS = "job_durations"
#: The made-up cluster for traces without nodes: devices of a node, and CPU and memory beside each.
NODE_DEVICES = 8
CPU_PER_DEVICE_MILLI, MEMORY_PER_DEVICE_MIB = 8_000, 65_536
#: The queue of the pods of openb that serve requests; they are not preemptible.
INFERENCE, TRAIN = "inference", "train"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedJob:
    """One job: pods that start together, run for a time, and end together.

    Attributes
    ----------
    submit_s : seconds from the start of the trace
    pods, shape : how many pods there are, and what each requests
    """

    name: str
    queue: str
    submit_s: float
    duration_s: float
    shape: PodShape
    pods: int = 1
    preemptible: bool = True

    @property
    def gpu_seconds(self) -> float:
        """Return the devices that the job takes, times its duration."""
        return self.pods * self.shape.gpu_milli / WHOLE_DEVICE * self.duration_s


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedTrace:
    """Nodes, and jobs in the order of their arrival."""

    name: str
    nodes: tuple[TraceNode, ...]
    jobs: tuple[TimedJob, ...]

    @property
    def gpus(self) -> int:
        """Return the number of devices of the cluster."""
        return sum(node.devices for node in self.nodes)

    def quotas(self) -> dict[str, float]:
        """Return by queue its part of the cluster's devices, in proportion to what its jobs use in all."""
        used: dict[str, float] = {}
        for job in self.jobs:
            used[job.queue] = used.get(job.queue, 0.0) + job.gpu_seconds
        total = sum(used.values())
        return {queue: self.gpus * amount / total for queue, amount in used.items()}


def timed_lists_in(folder: Path) -> list[str]:
    """Return the names of the lists of jobs in a folder."""
    names = []
    if has_rows(folder, VC_JOBS):
        names.append(VC_JOBS)
    if has_rows(folder, JOB_DURATIONS):
        names += sorted(set(read_rows(folder, JOB_DURATIONS, lambda row: row["set"])))
    return names + lists_in(folder)


def read_jobs(folder: Path, job_list: str, *, nodes: int, most: int) -> TimedTrace:
    """Return the first jobs of a list.

    Parameters
    ----------
    job_list : `vc_jobs`, a set of `job_durations`, or the LIST of a file `pods_LIST`
    nodes : how many nodes with eight devices to make, where the trace has none
    most : how many jobs to take
    """
    cluster: Sequence[TraceNode]
    if has_rows(folder, f"pods_{job_list}"):
        cluster = read_rows(folder, "nodes_gpu", node_of_row)
        jobs = [job for job in read_rows(folder, f"pods_{job_list}", _pod) if job is not None]
    elif job_list == VC_JOBS:
        cluster = _made_up_nodes(nodes)
        jobs = read_rows(folder, VC_JOBS, lambda row: _gang(row, row["sim_duration_s"]))
    else:
        cluster = _made_up_nodes(nodes)
        rows = read_rows(
            folder, JOB_DURATIONS, lambda row: (row["set"], _gang(row, row["duration_s"]))
        )
        jobs = [job for name, job in rows if name == job_list]
    if not jobs:
        known = ", ".join(timed_lists_in(folder)) or "none"
        raise TraceError(f"{folder}: expected a list of jobs with times, got {job_list!r}; {known}")
    jobs = sorted(jobs, key=lambda job: job.submit_s)[:most]
    first_s = jobs[0].submit_s
    shifted = tuple(replace(job, submit_s=job.submit_s - first_s) for job in jobs)
    return TimedTrace(name=job_list, nodes=tuple(cluster), jobs=shifted)


def _made_up_nodes(count: int) -> list[TraceNode]:
    return [
        TraceNode(
            name=f"node-{number:04}",
            cpu_milli=NODE_DEVICES * CPU_PER_DEVICE_MILLI,
            memory_mib=NODE_DEVICES * MEMORY_PER_DEVICE_MIB,
            devices=NODE_DEVICES,
        )
        for number in range(count)
    ]


def _gang(row: Row, duration_s: str) -> TimedJob:
    """Return a job of many devices as pods of at most eight; 12, 20 and 28 as pods of four."""
    gpus = int(row["gpus"])
    per_pod = gpus if gpus <= NODE_DEVICES else NODE_DEVICES
    while gpus % per_pod:
        per_pod //= 2
    return TimedJob(
        name=row["job"],
        queue=row["vc"] or "other",
        submit_s=float(row["submit_s"]),
        duration_s=float(duration_s),
        pods=gpus // per_pod,
        shape=PodShape(
            cpu_milli=per_pod * CPU_PER_DEVICE_MILLI // 2,
            memory_mib=per_pod * MEMORY_PER_DEVICE_MIB // 2,
            devices=per_pod,
            device_milli=WHOLE_DEVICE,
        ),
    )


def _pod(row: Row) -> TimedJob | None:
    """Return a pod of openb as a job; None if the trace does not know when it ended."""
    if not row.get("creation_time") or not row.get("deletion_time"):
        return None
    serves = row["qos"] == "LS"
    return TimedJob(
        name=row["name"],
        queue=INFERENCE if serves else TRAIN,
        submit_s=float(row["creation_time"]),
        duration_s=max(float(row["deletion_time"]) - float(row["creation_time"]), 1.0),
        shape=shape_of_row(row),
        preemptible=not serves,
    )

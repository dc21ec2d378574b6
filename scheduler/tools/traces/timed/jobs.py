"""Jobs with arrival times and durations, read from files.

The names of the files in a folder tell which of three formats it has: `vc_jobs.csv(.gz)` and
`job_durations.csv(.gz)` were made from the Philly trace (queues and gangs); `pods_LIST.csv(.gz)` with
`nodes_gpu.csv(.gz)` is the format of openb.
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
#: The made-up nodes for traces without nodes: devices of a node, and CPU and memory of it for each device.
NODE_DEVICES = 8
CPU_PER_DEVICE_MILLI, MEMORY_PER_DEVICE_MIB = 8_000, 65_536
#: The queues of the pods of openb: pods that serve requests, which are not preemptible, and all others.
INFERENCE, TRAIN = "inference", "train"
#: The class of pods of openb that serve requests ("latency sensitive").
SERVING_QOS = "LS"
#: Pods of openb that end at once are given this duration.
MIN_DURATION_S = 1.0


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
        """Return the quota of each queue: the devices of the cluster in proportion to the GPU seconds of its jobs."""
        gpu_seconds: dict[str, float] = {}
        for job in self.jobs:
            gpu_seconds[job.queue] = gpu_seconds.get(job.queue, 0.0) + job.gpu_seconds
        total = sum(gpu_seconds.values())
        return {queue: self.gpus * amount / total for queue, amount in gpu_seconds.items()}


def timed_lists_in(folder: Path) -> list[str]:
    """Return the names of the lists of jobs in a folder."""
    names = []
    if has_rows(folder, VC_JOBS):
        names.append(VC_JOBS)
    if has_rows(folder, JOB_DURATIONS):
        names += sorted(set(read_rows(folder, JOB_DURATIONS, lambda row: row["set"])))
    return names + lists_in(folder)


def read_jobs(folder: Path, job_list: str, *, nodes: int, max_jobs: int) -> TimedTrace:
    """Return the first jobs of a list.

    Parameters
    ----------
    job_list : `vc_jobs`, a set of `job_durations`, or the LIST of a file `pods_LIST`
    nodes : how many nodes with eight devices to make, where the trace has none
    max_jobs : how many jobs to take at most
    """
    cluster: Sequence[TraceNode]
    if has_rows(folder, f"pods_{job_list}"):
        cluster = read_rows(folder, "nodes_gpu", node_of_row)
        jobs = [job for job in read_rows(folder, f"pods_{job_list}", _openb_job) if job is not None]
    elif job_list == VC_JOBS:
        cluster = _made_up_nodes(nodes)
        jobs = read_rows(folder, VC_JOBS, lambda row: _philly_job(row, row["sim_duration_s"]))
    else:
        cluster = _made_up_nodes(nodes)
        jobs_of_sets = read_rows(
            folder, JOB_DURATIONS, lambda row: (row["set"], _philly_job(row, row["duration_s"]))
        )
        jobs = [job for set_name, job in jobs_of_sets if set_name == job_list]
    if not jobs:
        lists = ", ".join(timed_lists_in(folder)) or "none"
        raise TraceError(
            f"{folder}: expected a list of jobs with times, got {job_list!r}; lists there: {lists}"
        )
    jobs = sorted(jobs, key=lambda job: job.submit_s)[:max_jobs]
    first_s = jobs[0].submit_s
    jobs_from_zero = tuple(replace(job, submit_s=job.submit_s - first_s) for job in jobs)
    return TimedTrace(name=job_list, nodes=tuple(cluster), jobs=jobs_from_zero)


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


def _philly_job(row: Row, duration_s: str) -> TimedJob:
    """Return a job of the Philly trace as equal pods.

    A job of at most eight devices is one pod. For a larger job, the devices of a pod are eight, four, two or one:
    the largest of these by which the devices of the job can be divided. Each pod requests half of the CPU and
    memory that its node has for these devices.
    """
    gpus = int(row["gpus"])
    gpus_per_pod = gpus if gpus <= NODE_DEVICES else NODE_DEVICES
    while gpus % gpus_per_pod:
        gpus_per_pod //= 2
    return TimedJob(
        name=row["job"],
        queue=row["vc"] or "other",
        submit_s=float(row["submit_s"]),
        duration_s=float(duration_s),
        pods=gpus // gpus_per_pod,
        shape=PodShape(
            cpu_milli=gpus_per_pod * CPU_PER_DEVICE_MILLI // 2,
            memory_mib=gpus_per_pod * MEMORY_PER_DEVICE_MIB // 2,
            devices=gpus_per_pod,
            device_milli=WHOLE_DEVICE,
        ),
    )


def _openb_job(row: Row) -> TimedJob | None:
    """Return a pod of openb as a job; None if the trace does not know when it ended."""
    if not row.get("creation_time") or not row.get("deletion_time"):
        return None
    is_serving = row["qos"] == SERVING_QOS
    return TimedJob(
        name=row["name"],
        queue=INFERENCE if is_serving else TRAIN,
        submit_s=float(row["creation_time"]),
        duration_s=max(float(row["deletion_time"]) - float(row["creation_time"]), MIN_DURATION_S),
        shape=shape_of_row(row),
        preemptible=not is_serving,
    )

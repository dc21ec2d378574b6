"""Compare what a scenario expects with what came.

The expectations cover whole jobs, single tasks, ledgers of nodes, upper bounds on decisions,
the grouping of fractions on shared GPUs and the domains a gang landed in. Anything in a file that
is only a restatement of its input, or wording, is not judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduler.tools.conformance.verdict import Mismatch, compare_numbers, compare_values

Document = Mapping[str, Any]

ACTIVE_STATES = ("running", "binding", "pipelined", "releasing", "stuck_in_releasing")


@dataclass(slots=True, kw_only=True)
class TaskOutcome:
    """How one task ended."""

    status: str
    node: str = ""
    gpu_groups: tuple[str, ...] = ()
    numa_zones: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the outcome in the form of `observed.tasks`."""
        out: dict[str, Any] = {"status": self.status}
        if self.node:
            out["node"] = self.node
        if self.gpu_groups:
            out["gpu_groups"] = list(self.gpu_groups)
        if self.numa_zones:
            out["numa_zones"] = list(self.numa_zones)
        return out


@dataclass(slots=True, kw_only=True)
class NodeOutcome:
    """The GPU ledger of one node, and what is left in its NUMA zones."""

    idle_gpus: float
    releasing_gpus: float
    #: By zone: resource -> amount.
    zones_available: list[dict[str, float]] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ClusterOutcome:
    """The state of the cluster at one judging point."""

    #: By id of the task.
    tasks: dict[str, TaskOutcome]
    #: By name.
    nodes: dict[str, NodeOutcome]
    #: Pod group -> its last start, None without one.
    last_starts: dict[str, float | None] = field(default_factory=dict)
    explained: frozenset[str] = frozenset()


def judge_outcome(document: Document, outcome: ClusterOutcome, point: str) -> list[Mismatch]:
    """Judge one point in time against `expected` of the file.

    Parameters
    ----------
    document : the scenario
    outcome : the state at the judging point
    point : names the point, e.g. "end" or "after round 3"
    """
    expected = document.get("expected") or {}
    mismatches = list(_judge_jobs(document, expected, outcome, point))
    for task, wanted in (expected.get("tasks") or {}).items():
        mismatches += _judge_task(task, wanted, outcome, point)
        mismatches += _judge_start(document, task, wanted, outcome, point)
    for node, wanted in (expected.get("nodes") or {}).items():
        mismatches += _judge_node(node, wanted, outcome, point)
    if expected.get("gpu_groups_hold"):
        mismatches += _judge_gpu_groups(document, expected, outcome, point)
    for check in expected.get("placement_checks") or ():
        mismatches += _judge_placement(document, check, outcome, point)
    return mismatches


def judge_limits(document: Document, counts: Iterable[Mapping[str, int]]) -> list[Mismatch]:
    """Judge the upper bounds on decisions of each session; they are not exact counts."""
    limits = (document.get("expected") or {}).get("limits") or {}
    mismatches = []
    for number, count in enumerate(counts, start=1):
        for key, kind in (
            ("max_binds", "bind"),
            ("max_evictions", "evict"),
            ("max_pipelines", "pipeline"),
        ):
            if key in limits and count.get(kind, 0) > limits[key]:
                mismatches.append(
                    Mismatch(
                        where=f"{kind} decisions of session {number}",
                        expected=f"at most {limits[key]}",
                        actual=count.get(kind, 0),
                    )
                )
    return mismatches


def judge_observed(document: Document, outcome: ClusterOutcome) -> list[Mismatch]:
    """Compare every task with what the reference did: the stricter second level."""
    mismatches: list[Mismatch] = []
    for task, wanted in ((document.get("observed") or {}).get("tasks") or {}).items():
        got = outcome.tasks.get(task)
        have = (got.status, got.node) if got else None
        mismatches += compare_values(
            f"observed {task}", (wanted.get("status"), wanted.get("node") or ""), have
        )
    return mismatches


def _judge_jobs(
    document: Document, expected: Document, outcome: ClusterOutcome, point: str
) -> Iterable[Mismatch]:
    tasks_of_job = {
        job["name"]: [task["id"] for task in job.get("tasks", ())]
        for job in document.get("jobs", ())
    }
    for job, wanted in (expected.get("jobs") or {}).items():
        for task in tasks_of_job.get(job, ()):
            yield from _judge_task(task, wanted, outcome, point)
            yield from _judge_start(document, task, wanted, outcome, point)
        if "error_message" in wanted and job not in outcome.explained:
            yield Mismatch(where=f"{point}: reason of {job}", expected="some reason", actual=None)


def _judge_task(task: str, wanted: Document, outcome: ClusterOutcome, point: str) -> list[Mismatch]:
    got = outcome.tasks.get(task)
    if got is None:
        return [Mismatch(where=f"{point}: {task}", expected="a task", actual=None)]
    mismatches: list[Mismatch] = []
    if "status" in wanted:
        mismatches += compare_values(f"{point}: status of {task}", wanted["status"], got.status)
    if wanted.get("node"):
        mismatches += compare_values(f"{point}: node of {task}", wanted["node"], got.node)
    if "numa_zones" in wanted:
        zones = sorted(str(zone).rpartition("-")[2] for zone in got.numa_zones)
        expected = sorted(str(zone) for zone in wanted["numa_zones"])
        mismatches += compare_values(f"{point}: NUMA zones of {task}", expected, zones)
    return mismatches


def _judge_start(
    document: Document, task: str, wanted: Document, outcome: ClusterOutcome, point: str
) -> list[Mismatch]:
    age = wanted.get("last_start_older_than_seconds")
    if age is None:
        return []
    job = next(
        job["name"]
        for job in document["jobs"]
        if any(entry["id"] == task for entry in job["tasks"])
    )
    start = outcome.last_starts.get(job)
    if start is not None and start <= -age:
        return []
    return [Mismatch(where=f"{point}: start of {job}", expected=f"at most {-age} s", actual=start)]


def _judge_node(node: str, wanted: Document, outcome: ClusterOutcome, point: str) -> list[Mismatch]:
    got = outcome.nodes[node]
    mismatches: list[Mismatch] = []
    for key, have in (("idle_gpus", got.idle_gpus), ("releasing_gpus", got.releasing_gpus)):
        if key in wanted:
            mismatches += compare_numbers(f"{point}: {key} of {node}", wanted[key], have)
    for zone, amounts in (wanted.get("numa_zones_available") or {}).items():
        for kind, amount in amounts.items():
            have = got.zones_available[int(zone)].get(kind, 0.0)
            mismatches += compare_numbers(f"{point}: {kind} in zone {zone} of {node}", amount, have)
    return mismatches


def _judge_gpu_groups(
    document: Document, expected: Document, outcome: ClusterOutcome, point: str
) -> list[Mismatch]:
    """Compare labels with real devices as a renaming, node by node."""
    forward: dict[tuple[str, str], str] = {}
    backward: dict[tuple[str, str], str] = {}
    for task, wanted in sorted(_grouped_tasks(document, expected)):
        got = outcome.tasks[task]
        if got.status not in ACTIVE_STATES or not got.gpu_groups:
            continue
        for label, group in zip(wanted, got.gpu_groups, strict=False):
            same = forward.setdefault((got.node, label), group) == group
            if not (same and backward.setdefault((got.node, group), label) == label):
                return [
                    Mismatch(
                        where=f"{point}: shared GPU of {task} on {got.node}",
                        expected=label,
                        actual=f"{group}, which stands for {backward[got.node, group]}"
                        if (got.node, group) in backward
                        else group,
                    )
                ]
    return []


def _grouped_tasks(document: Document, expected: Document) -> Iterable[tuple[str, tuple[str, ...]]]:
    """Yield the tasks that share devices and the labels of the devices they should hold."""
    for job in document.get("jobs", ()):
        by_job = (expected.get("jobs") or {}).get(job["name"]) or {}
        for task in job.get("tasks", ()):
            wanted = (expected.get("tasks") or {}).get(task["id"]) or by_job
            request = task.get("request") or job.get("request") or {}
            shares = request.get("gpu_fraction") or request.get("gpu_memory_mib")
            if shares and wanted.get("gpu_groups") and not wanted.get("gpu_groups_ignored"):
                yield task["id"], tuple(wanted["gpu_groups"])


def _judge_placement(
    document: Document, check: Document, outcome: ClusterOutcome, point: str
) -> list[Mismatch]:
    """Judge where the tasks of one job landed, by node or by domain."""
    job = next((job for job in document["jobs"] if job["name"] == check["job"]), None)
    if job is None:
        return []
    where = f"{point}: placement of {check['job']}"
    labels = {node["name"]: node.get("labels") or {} for node in document["cluster"]["nodes"]}

    def nodes(subgroup: str | None) -> list[str]:
        placed = [
            outcome.tasks[task["id"]].node
            for task in job["tasks"]
            if subgroup is None or (task.get("subgroup") or "default") == subgroup
        ]
        return [node for node in placed if node]

    def domains(subgroup: str | None) -> list[str]:
        label = check.get("label")
        return [labels[node].get(label, "") if label else node for node in nodes(subgroup)]

    mismatches: list[Mismatch] = []
    mine = domains(check.get("subgroup"))
    if "counts" in check:
        counts = {domain: mine.count(domain) for domain in sorted(set(mine))}
        mismatches += compare_values(f"{where}, counts", dict(check["counts"]), counts)
    if "nodes_used" in check:
        used = sorted(set(nodes(check.get("subgroup"))))
        mismatches += compare_values(f"{where}, nodes", sorted(check["nodes_used"]), used)
    if check.get("single_domain"):
        mismatches += compare_values(f"{where}, domains used", 1, len(set(mine)))
    if check.get("distinct_domains"):
        per_group = [sorted(set(domains(name))) for name in check.get("subgroups") or ()]
        flat = [domain for group in per_group for domain in group]
        mismatches += compare_values(f"{where}, distinct domains", len(flat), len(set(flat)))
        if "domains" in check:
            mismatches += compare_values(
                f"{where}, domains", sorted(check["domains"]), sorted(flat)
            )
    elif "domains" in check:
        mismatches += compare_values(
            f"{where}, domains", sorted(check["domains"]), sorted(set(mine))
        )
    return mismatches

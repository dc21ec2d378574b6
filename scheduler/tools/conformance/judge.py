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
    for task, expected_task in (expected.get("tasks") or {}).items():
        mismatches += _judge_task(task, expected_task, outcome, point)
        mismatches += _judge_start(document, task, expected_task, outcome, point)
    for node, expected_task in (expected.get("nodes") or {}).items():
        mismatches += _judge_node(node, expected_task, outcome, point)
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
    for task, expected_task in ((document.get("observed") or {}).get("tasks") or {}).items():
        task_outcome = outcome.tasks.get(task)
        actual = (task_outcome.status, task_outcome.node) if task_outcome else None
        mismatches += compare_values(
            f"observed {task}",
            (expected_task.get("status"), expected_task.get("node") or ""),
            actual,
        )
    return mismatches


def _judge_jobs(
    document: Document, expected: Document, outcome: ClusterOutcome, point: str
) -> Iterable[Mismatch]:
    tasks_of_job = {
        job["name"]: [task["id"] for task in job.get("tasks", ())]
        for job in document.get("jobs", ())
    }
    for job, expected_job in (expected.get("jobs") or {}).items():
        for task in tasks_of_job.get(job, ()):
            yield from _judge_task(task, expected_job, outcome, point)
            yield from _judge_start(document, task, expected_job, outcome, point)
        if "error_message" in expected_job and job not in outcome.explained:
            yield Mismatch(where=f"{point}: reason of {job}", expected="some reason", actual=None)


def _judge_task(
    task: str, expected_task: Document, outcome: ClusterOutcome, point: str
) -> list[Mismatch]:
    task_outcome = outcome.tasks.get(task)
    if task_outcome is None:
        return [Mismatch(where=f"{point}: {task}", expected="a task", actual=None)]
    mismatches: list[Mismatch] = []
    if "status" in expected_task:
        mismatches += compare_values(
            f"{point}: status of {task}", expected_task["status"], task_outcome.status
        )
    if expected_task.get("node"):
        mismatches += compare_values(
            f"{point}: node of {task}", expected_task["node"], task_outcome.node
        )
    if "numa_zones" in expected_task:
        zones = sorted(str(zone).rpartition("-")[2] for zone in task_outcome.numa_zones)
        expected = sorted(str(zone) for zone in expected_task["numa_zones"])
        mismatches += compare_values(f"{point}: NUMA zones of {task}", expected, zones)
    return mismatches


def _judge_start(
    document: Document, task: str, expected_task: Document, outcome: ClusterOutcome, point: str
) -> list[Mismatch]:
    age = expected_task.get("last_start_older_than_seconds")
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


def _judge_node(
    node: str, expected: Document, outcome: ClusterOutcome, point: str
) -> list[Mismatch]:
    node_outcome = outcome.nodes[node]
    mismatches: list[Mismatch] = []
    for key, actual in (
        ("idle_gpus", node_outcome.idle_gpus),
        ("releasing_gpus", node_outcome.releasing_gpus),
    ):
        if key in expected:
            mismatches += compare_numbers(f"{point}: {key} of {node}", expected[key], actual)
    for zone, amounts in (expected.get("numa_zones_available") or {}).items():
        for kind, amount in amounts.items():
            actual = node_outcome.zones_available[int(zone)].get(kind, 0.0)
            mismatches += compare_numbers(
                f"{point}: {kind} in zone {zone} of {node}", amount, actual
            )
    return mismatches


def _judge_gpu_groups(
    document: Document, expected: Document, outcome: ClusterOutcome, point: str
) -> list[Mismatch]:
    """Compare labels with real devices as a renaming, node by node."""
    forward: dict[tuple[str, str], str] = {}
    backward: dict[tuple[str, str], str] = {}
    for task, expected_groups in sorted(_grouped_tasks(document, expected)):
        task_outcome = outcome.tasks[task]
        if task_outcome.status not in ACTIVE_STATES or not task_outcome.gpu_groups:
            continue
        for label, group in zip(expected_groups, task_outcome.gpu_groups, strict=False):
            same = forward.setdefault((task_outcome.node, label), group) == group
            if not (same and backward.setdefault((task_outcome.node, group), label) == label):
                return [
                    Mismatch(
                        where=f"{point}: shared GPU of {task} on {task_outcome.node}",
                        expected=label,
                        actual=f"{group}, which stands for {backward[task_outcome.node, group]}"
                        if (task_outcome.node, group) in backward
                        else group,
                    )
                ]
    return []


def _grouped_tasks(document: Document, expected: Document) -> Iterable[tuple[str, tuple[str, ...]]]:
    """Yield the tasks that share devices and the labels of the devices they should hold."""
    for job in document.get("jobs", ()):
        by_job = (expected.get("jobs") or {}).get(job["name"]) or {}
        for task in job.get("tasks", ()):
            expected_task = (expected.get("tasks") or {}).get(task["id"]) or by_job
            request = task.get("request") or job.get("request") or {}
            shares = request.get("gpu_fraction") or request.get("gpu_memory_mib")
            if (
                shares
                and expected_task.get("gpu_groups")
                and not expected_task.get("gpu_groups_ignored")
            ):
                yield task["id"], tuple(expected_task["gpu_groups"])


def _judge_placement(
    document: Document, check: Document, outcome: ClusterOutcome, point: str
) -> list[Mismatch]:
    """Judge where the tasks of one job landed, by node or by domain."""
    job = next((job for job in document["jobs"] if job["name"] == check["job"]), None)
    if job is None:
        return []
    title = f"{point}: placement of {check['job']}"
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
    own_domains = domains(check.get("subgroup"))
    if "counts" in check:
        counts = {domain: own_domains.count(domain) for domain in sorted(set(own_domains))}
        mismatches += compare_values(f"{title}, counts", dict(check["counts"]), counts)
    if "nodes_used" in check:
        used_nodes = sorted(set(nodes(check.get("subgroup"))))
        mismatches += compare_values(f"{title}, nodes", sorted(check["nodes_used"]), used_nodes)
    if check.get("single_domain"):
        mismatches += compare_values(f"{title}, domains used", 1, len(set(own_domains)))
    if check.get("distinct_domains"):
        per_group = [sorted(set(domains(name))) for name in check.get("subgroups") or ()]
        flat = [domain for group in per_group for domain in group]
        mismatches += compare_values(f"{title}, distinct domains", len(flat), len(set(flat)))
        if "domains" in check:
            mismatches += compare_values(
                f"{title}, domains", sorted(check["domains"]), sorted(flat)
            )
    elif "domains" in check:
        mismatches += compare_values(
            f"{title}, domains", sorted(check["domains"]), sorted(set(own_domains))
        )
    return mismatches

"""Tables of single rules: each row becomes a small cluster to which the product's own rule is applied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scheduler.core.cluster.axis import CPU_ROW, GPU_ROW
from scheduler.core.cluster.inputs import (
    UNLIMITED_AMOUNTS,
    ClusterInput,
    NodeInput,
    PodGroupInput,
    PodSetInput,
    QueueInput,
    SubGroupInput,
    TaskInput,
    TaskRequest,
    TopologyConstraint,
    TopologyInput,
)
from scheduler.core.cluster.status import TaskStatus
from scheduler.core.config import PluginConfig, SchedulerConfig
from scheduler.core.cycle import open_session
from scheduler.core.placement.fill_score import FillScore
from scheduler.core.plugins.min_runtime import preempt_min_runtime, reclaim_min_runtime
from scheduler.core.plugins.placement_strategy import (
    NodePlacementArguments,
    pack_score,
    spread_score,
)
from scheduler.core.plugins.topology.tree import ROOT, searched_levels
from scheduler.core.session.session import Session
from scheduler.tools.conformance.verdict import Mismatch, compare_numbers, compare_values

Case = Mapping[str, Any]

LEFT_FIRST, RIGHT_FIRST, EQUAL = "left_first", "right_first", "equal"


def min_runtime(case: Case) -> list[Mismatch]:
    """Judge for how long a queue's pod groups are protected."""
    queues: Mapping[str, Any] = case["queues"]
    names = list(queues)
    paths = [[names.index(name) for name in _path(queues, queue)] for queue in names]
    victim = names.index(case["victim_queue"])
    default_s = float(case.get("default_seconds", 0))
    if case["kind"] == "preempt":
        values = [queues[name].get("preempt_min_runtime_seconds") for name in names]
        actual = preempt_min_runtime(paths, values, victim, default_s)
    else:
        values = [queues[name].get("reclaim_min_runtime_seconds") for name in names]
        if case.get("method") == "queue":
            actual = preempt_min_runtime(paths, values, victim, default_s)
        else:
            reclaimer = names.index(case["preemptor_queue"])
            actual = reclaim_min_runtime(paths, values, reclaimer, victim, default_s)
    return compare_numbers("seconds", case["expected_seconds"], actual)


def elastic_job_order(case: Case) -> list[Mismatch]:
    """Judge which of two pod groups is served first because of its gang."""
    states = []
    for side in ("left", "right"):
        group = _group_of_counts(side, case[side])
        session = _session(
            ClusterInput(nodes=(_plain_node(),), queues=(_QUEUE,), pod_groups=(group,))
        )
        states.append(session.view(0).elastic_state())
    return compare_values("order", case["expected"], _order(states[0], states[1]))


def subgroup_order(case: Case) -> list[Mismatch]:
    """Judge which of two subgroups is served first; equal ones are ordered by name."""
    first_names = []
    for left, right in (("a", "b"), ("b", "a")):
        sets = [_counts(left, case["left"]), _counts(right, case["right"])]
        group = _group_of_counts("group", sets)
        session = _session(
            ClusterInput(nodes=(_plain_node(),), queues=(_QUEUE,), pod_groups=(group,)),
            PluginConfig("subgrouporder"),
        )
        view = session.view(0)
        first_names.append(view.ordered_members(view.root)[0].name == left)
    if first_names[0] != first_names[1]:
        actual = EQUAL
    else:
        actual = LEFT_FIRST if first_names[0] else RIGHT_FIRST
    return compare_values("order", case["expected"], actual)


def resource_type_score(case: Case) -> list[Mismatch]:
    """Judge the score of a node for tasks with and without GPU."""
    node = _plain_node(gpus=0 if case["node_is_cpu_only"] else 1)
    request = TaskRequest(cpu_milli=1, gpus=0 if case["task_is_cpu_only"] else 1)
    group = _pending_group(request)
    session = _session(
        ClusterInput(nodes=(node,), queues=(_QUEUE,), pod_groups=(group,)),
        PluginConfig("resourcetype"),
    )
    task_class = session.state.tasks.task_class[0]
    score = session.hooks.scores[0]
    actual = score.score(0, task_class, 0) if score.concerns(task_class) else 0.0
    return compare_numbers("score", case["expected_score"], actual)


def gpu_order(case: Case) -> list[Mismatch]:
    """Judge the score of one device of a node."""
    portion = case.get("used_portion")
    device = None if case["whole_gpu"] else (float(portion or 0), 1.0)
    score = pack_score if case["strategy"] == "pack" else spread_score
    return compare_numbers("score", case["expected_score"], score(device))


def node_placement(case: Case) -> list[Mismatch]:
    """Judge the score for filling or emptying a node, among nodes with given extremes."""
    is_gpu = case["resource"] != "cpu"
    key, row = ("gpu", GPU_ROW) if is_gpu else ("cpu", CPU_ROW)
    low = case.get("min_non_allocated", case["non_allocated"])
    high = case.get("max_non_allocated", case["non_allocated"])
    has_others = case.get("min_non_allocated") is not None
    amounts = [case["non_allocated"], *((low, high) if has_others else ())]
    sizes = [case["allocatable"], *((max(low, 1), max(high, 1)) if has_others else ())]
    nodes = tuple(
        NodeInput(name=f"node-{number}", allocatable={key: float(size), "pods": 110.0})
        for number, size in enumerate(sizes)
    )
    request = TaskRequest(gpus=1) if is_gpu else TaskRequest(cpu_milli=1)
    session = _session(
        ClusterInput(nodes=nodes, queues=(_QUEUE,), pod_groups=(_pending_group(request),)),
        PluginConfig(
            "nodeplacement", NodePlacementArguments(cpu=case["strategy"], gpu=case["strategy"])
        ),
    )
    for node, amount in enumerate(amounts):
        session.state.nodes.idle_rows[row][node] = float(amount)
        session.state.nodes.touched.append(node)
    task_class = session.state.tasks.task_class[0]
    fill = FillScore(session, task_class, session.all_nodes)
    fill.read_all()
    return compare_numbers("score", case["expected_score"], fill.score(0))


def topology_levels(case: Case) -> list[Mismatch]:
    """Judge the levels on which domains are searched."""
    levels = case["levels_top_down"] or []
    searched, problem = searched_levels(
        levels, case.get("required_level") or "", case.get("preferred_level") or ""
    )
    if case.get("expected_error"):
        return compare_values("refused", True, bool(problem))
    actual = ["root" if level == ROOT else levels[level] for level in searched]
    return compare_values("levels", case["expected_levels"], actual)


def topology_node_sets(case: Case) -> list[Mismatch]:
    """Judge the node sets tried for a gang, in order, and the scores inside them."""
    session = _topology_session(case)
    view = session.view(0)
    chunk = view.next_chunk(include_evicted=False)
    sets = [session.all_nodes]
    for splitter in session.hooks.splitters:
        if splitter.concerns(view.root):
            sets = [
                part
                for node_set in sets
                for part in splitter.split(view, view.root, chunk, node_set, record=True)
            ]
    names = session.state.nodes.names
    actual = [[names[node] for node in node_set.indices.tolist()] for node_set in sets]
    expected = case["expected"]
    mismatches = compare_values(
        "node sets", [sorted(node_set) for node_set in expected["node_sets_in_order"]], actual
    )
    has_error = bool(session.fit.pod_groups)
    mismatches += compare_values("fit error", bool(expected.get("job_fit_error")), has_error)
    for node, score in (expected.get("node_scores") or {}).items():
        index = session.state.nodes.index_of[node]
        scores = [
            float(node_set.extra_scores[index])
            for node_set in sets
            if node_set.extra_scores is not None and index in node_set.indices
        ]
        if scores:
            mismatches += compare_numbers(f"score of {node}", score, scores[0])
    return mismatches


_QUEUE = QueueInput(
    name="queue", cpu=UNLIMITED_AMOUNTS, memory=UNLIMITED_AMOUNTS, gpu=UNLIMITED_AMOUNTS
)


def _session(cluster: ClusterInput, *plugins: PluginConfig) -> Session:
    return open_session(cluster, SchedulerConfig(plugins=plugins))


def _plain_node(gpus: float = 0) -> NodeInput:
    return NodeInput(
        name="node", allocatable={"cpu": 1e6, "memory": 1e12, "gpu": float(gpus), "pods": 110.0}
    )


def _pending_group(request: TaskRequest) -> PodGroupInput:
    task = TaskInput(name="task", uid="task", request=request)
    return PodGroupInput(name="group", uid="group", queue="queue", tasks=(task,))


def _counts(name: str, block: Case) -> dict[str, Any]:
    allocated, minimum = int(block["allocated"]), int(block["min"])
    return {
        "name": name,
        "allocated": allocated,
        "min_available": minimum,
        "tasks": max(allocated, minimum),
    }


def _group_of_counts(name: str, sets: Sequence[Case]) -> PodGroupInput:
    tasks = []
    for pod_set in sets:
        count = max(int(pod_set["tasks"]), int(pod_set["allocated"]))
        for number in range(count):
            is_running = number < int(pod_set["allocated"])
            task = f"{name}-{pod_set['name']}-{number}"
            tasks.append(
                TaskInput(
                    name=task,
                    uid=task,
                    subgroup=pod_set["name"],
                    status=TaskStatus.RUNNING if is_running else TaskStatus.PENDING,
                    node="node" if is_running else "",
                )
            )
    root = SubGroupInput(
        pod_sets=tuple(
            PodSetInput(name=entry["name"], min_available=int(entry["min_available"]))
            for entry in sets
        )
    )
    return PodGroupInput(name=name, uid=name, queue="queue", root=root, tasks=tuple(tasks))


def _order(left: int, right: int) -> str:
    if left == right:
        return EQUAL
    return LEFT_FIRST if left < right else RIGHT_FIRST


def _path(queues: Mapping[str, Any], queue: str) -> list[str]:
    path = []
    name: str | None = queue
    while name is not None and name in queues:
        path.append(name)
        name = queues[name].get("parent")
    return path


def _topology_session(case: Case) -> Session:
    constraint = case.get("constraint") or {}
    tasks = tuple(
        TaskInput(name=entry["name"], uid=entry["name"], request=_task_request(entry["request"]))
        for entry in case["tasks"]
    ) + tuple(
        TaskInput(
            name=entry["name"],
            uid=entry["name"],
            node=entry["node"],
            status=TaskStatus.RUNNING,
            request=_task_request(entry.get("request") or {}),
        )
        for entry in case.get("active_tasks") or ()
    )
    root = SubGroupInput(
        topology=TopologyConstraint(
            topology=constraint.get("topology") or "",
            required_level=constraint.get("required_level") or "",
            preferred_level=constraint.get("preferred_level") or "",
        ),
        pod_sets=(PodSetInput(min_available=len(tasks)),),
    )
    levels = case.get("levels_top_down")
    topologies = (
        (TopologyInput(name=constraint.get("topology") or "", levels=tuple(levels)),)
        if levels
        else ()
    )
    nodes = tuple(
        NodeInput(name=node["name"], labels=node["labels"], allocatable=_floats(node["idle"]))
        for node in case["nodes"]
    )
    group = PodGroupInput(name="job", uid="job", queue="queue", root=root, tasks=tasks)
    session = _session(
        ClusterInput(nodes=nodes, queues=(_QUEUE,), pod_groups=(group,), topologies=topologies),
        PluginConfig("topology"),
    )
    for node in case["nodes"]:
        for name, amount in (node.get("releasing") or {}).items():
            row = session.state.axis.row_of[name]
            index = session.state.nodes.index_of[node["name"]]
            session.state.nodes.releasing_rows[row][index] = float(amount)
            session.state.nodes.touched.append(index)
    return session


def _task_request(amounts: Case) -> TaskRequest:
    gpus = float(amounts.get("gpu", 0))
    return TaskRequest(
        cpu_milli=float(amounts.get("cpu", 0)),
        memory_bytes=float(amounts.get("memory", 0)),
        gpus=gpus if gpus >= 1 else 0.0,
        gpu_fraction=gpus if 0 < gpus < 1 else 0.0,
    )


def _floats(amounts: Case) -> dict[str, float]:
    return {name: float(amount) for name, amount in amounts.items()}

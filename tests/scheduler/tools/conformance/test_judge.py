"""What the judge accepts and what it calls a mismatch."""

from __future__ import annotations

import pytest

from scheduler.tools.conformance.judge import (
    ClusterOutcome,
    NodeOutcome,
    TaskOutcome,
    judge_limits,
    judge_observed,
    judge_outcome,
)


def job(name: str, tasks: int, **more) -> dict:
    return {
        "name": name,
        "request": {"gpu_fraction": 0.5},
        "tasks": [{"id": f"{name}-{n}"} for n in range(tasks)],
    } | more


def document(expected: dict, *jobs: dict) -> dict:
    nodes = [
        {"name": "n0", "labels": {"rack": "r0"}},
        {"name": "n1", "labels": {"rack": "r0"}},
        {"name": "n2", "labels": {"rack": "r1"}},
    ]
    return {"cluster": {"nodes": nodes}, "jobs": list(jobs), "expected": expected}


def outcome(tasks: dict[str, TaskOutcome], **more) -> ClusterOutcome:
    nodes = {
        "n0": NodeOutcome(idle_gpus=2.0, releasing_gpus=-1.0, zones_available=[{"cpu_millis": 5.0}])
    }
    return ClusterOutcome(tasks=tasks, nodes=nodes, **more)


def running(node: str = "n0", *groups: str, **more) -> TaskOutcome:
    return TaskOutcome(status="running", node=node, gpu_groups=groups, **more)


def mismatches(expected: dict, tasks: dict[str, TaskOutcome], *jobs: dict, **more) -> list[str]:
    scenario = document(expected, *(jobs or (job("a", len(tasks)),)))
    return [miss.as_text() for miss in judge_outcome(scenario, outcome(tasks, **more), "end")]


def test_every_task_of_a_job_must_have_the_status_and_node() -> None:
    tasks = {"a-0": running("n0"), "a-1": TaskOutcome(status="pending")}
    assert mismatches({"jobs": {"a": {"status": "running", "node": "n0"}}}, tasks) == [
        "end: status of a-1: expected 'running', got 'pending'",
        "end: node of a-1: expected 'n0', got ''",
    ]
    assert mismatches({"tasks": {"a-1": {"status": "pending"}}}, tasks) == []
    assert mismatches({"tasks": {"b-0": {"status": "pending"}}}, tasks) == [
        "end: b-0: expected 'a task', got None"
    ]


def test_ledgers_of_nodes_are_compared_to_a_millionth() -> None:
    good = {
        "n0": {
            "idle_gpus": 2.0000001,
            "releasing_gpus": -1,
            "numa_zones_available": {"0": {"cpu_millis": 5}},
        }
    }
    assert mismatches({"nodes": good}, {"a-0": running()}) == []
    bad = {"n0": {"idle_gpus": 1, "numa_zones_available": {"0": {"cpu_millis": 6}}}}
    assert mismatches({"nodes": bad}, {"a-0": running()}) == [
        "end: idle_gpus of n0: expected 1, got 2.0",
        "end: cpu_millis in zone 0 of n0: expected 6, got 5.0",
    ]


def shares(*wanted: str, hold: bool = True) -> dict:
    tasks = {
        f"a-{n}": {"status": "running", "gpu_groups": [label]} for n, label in enumerate(wanted)
    }
    return {"gpu_groups_hold": hold, "tasks": tasks}


def test_devices_are_compared_as_a_renaming() -> None:
    together = {"a-0": running("n0", "x"), "a-1": running("n0", "x")}
    apart = {"a-0": running("n0", "x"), "a-1": running("n0", "y")}
    assert mismatches(shares("0", "0"), together) == []
    assert mismatches(shares("0", "1"), apart) == []
    assert len(mismatches(shares("0", "1"), together)) == 1
    assert len(mismatches(shares("0", "0"), apart)) == 1
    assert mismatches(shares("0", "1", hold=False), together) == []
    other_node = {"a-0": running("n0", "x"), "a-1": running("n1", "y")}
    assert mismatches(shares("0", "0"), other_node) == []


def test_ignored_and_whole_devices_are_not_compared() -> None:
    together = {"a-0": running("n0", "x"), "a-1": running("n0", "x")}
    ignored = shares("0", "1")
    ignored["tasks"]["a-1"]["gpu_groups_ignored"] = True
    assert mismatches(ignored, together) == []
    assert mismatches(shares("0", "1"), together, job("a", 2, request={"gpu": 1})) == []


def test_zones_are_compared_by_number() -> None:
    tasks = {"a-0": running(numa_zones=("zone-1", "zone-0"))}
    assert mismatches({"jobs": {"a": {"numa_zones": [0, 1]}}}, tasks) == []
    assert len(mismatches({"jobs": {"a": {"numa_zones": []}}}, tasks)) == 1


def test_a_start_must_be_old_enough() -> None:
    expected = {"tasks": {"a-0": {"last_start_older_than_seconds": 30}}}
    assert mismatches(expected, {"a-0": running()}, last_starts={"a": -60.0}) == []
    assert len(mismatches(expected, {"a-0": running()}, last_starts={"a": 0.0})) == 1
    assert len(mismatches(expected, {"a-0": running()})) == 1


def test_an_error_text_needs_a_reason() -> None:
    expected = {"jobs": {"a": {"error_message": "wording of the reference"}}}
    assert mismatches(expected, {"a-0": running()}, explained=frozenset({"a"})) == []
    assert len(mismatches(expected, {"a-0": running()})) == 1


PLACED = {"a-0": running("n0"), "a-1": running("n1"), "a-2": running("n2")}
GANG = job("a", 3)
GANG["tasks"][0]["subgroup"] = GANG["tasks"][1]["subgroup"] = "x"
GANG["tasks"][2]["subgroup"] = "y"


@pytest.mark.parametrize(
    ("check", "problems"),
    [
        ({"label": "rack", "counts": {"r0": 2, "r1": 1}}, 0),
        ({"label": "rack", "counts": {"r0": 3}}, 1),
        ({"subgroup": "x", "label": "rack", "single_domain": True}, 0),
        ({"label": "rack", "single_domain": True}, 1),
        ({"subgroup": "x", "nodes_used": ["n1", "n0"]}, 0),
        ({"nodes_used": ["n0"]}, 1),
        (
            {
                "subgroups": ["x", "y"],
                "label": "rack",
                "distinct_domains": True,
                "domains": ["r0", "r1"],
            },
            0,
        ),
        ({"subgroups": ["x", "x"], "label": "rack", "distinct_domains": True}, 1),
        ({"subgroup": "y", "label": "rack", "domains": ["r0"]}, 1),
        ({"job": "unknown", "nodes_used": ["n0"]}, 0),
    ],
)
def test_placement_checks(check, problems) -> None:
    check = {"job": "a"} | check
    assert len(mismatches({"placement_checks": [check]}, PLACED, GANG)) == problems


def test_limits_are_upper_bounds_for_each_session() -> None:
    scenario = {"expected": {"limits": {"max_binds": 1, "max_evictions": 0, "max_pipelines": 2}}}
    counts = [{"bind": 1, "evict": 0, "pipeline": 0}, {"bind": 2, "evict": 1, "pipeline": 2}]
    assert [miss.as_text() for miss in judge_limits(scenario, counts)] == [
        "bind decisions of session 2: expected 'at most 1', got 2",
        "evict decisions of session 2: expected 'at most 0', got 1",
    ]
    assert judge_limits({}, counts) == []


def test_the_second_level_compares_every_observed_task() -> None:
    scenario = {
        "observed": {
            "tasks": {"a-0": {"status": "running", "node": "n0"}, "a-1": {"status": "pending"}}
        }
    }
    assert (
        judge_observed(scenario, outcome({"a-0": running(), "a-1": TaskOutcome(status="pending")}))
        == []
    )
    assert len(judge_observed(scenario, outcome({"a-0": running("n1")}))) == 2
    assert running("n0", "g", numa_zones=("z",)).as_dict() == {
        "status": "running",
        "node": "n0",
        "gpu_groups": ["g"],
        "numa_zones": ["z"],
    }

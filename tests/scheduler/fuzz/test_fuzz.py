"""A short run of the tester, and proof that its rules and its oracle notice faults."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache

import pytest

from scheduler.core.cluster.status import TaskStatus
from scheduler.core.decisions import ActionName, Evict, EvictReason, TaskRef
from tests.scheduler.fuzz import evictions, gangs, oracle, queues, reasons, room, sameness
from tests.scheduler.fuzz.campaign import Campaign
from tests.scheduler.fuzz.cycles import CycleRun, Finding, next_document, play
from tests.scheduler.fuzz.generate import Document, document_of, random_document
from tests.scheduler.fuzz.shrink import shrink

Rule = Callable[[CycleRun], Iterable[Finding]]


@cache
def short_run() -> Campaign:
    campaign = Campaign(seed=1)
    for number in range(60):
        campaign.run_cluster(number)
    campaign.cycles = 8
    for number in range(60, 66):
        campaign.run_cluster(number)
    for number in range(150):
        campaign.run_tiny(number)
    return campaign


def test_no_rule_is_broken_on_random_clusters() -> None:
    assert [(hit.finding, hit.cluster) for hit in short_run().first_of.values()] == []


def test_random_clusters_bring_about_every_kind_of_decision() -> None:
    decisions = short_run().decisions
    kinds = ("Bind", "Nominate", "Evict", "reclaim", "preempt", "consolidation")
    assert {kind: decisions[kind] >= 5 for kind in kinds} == dict.fromkeys(kinds, True)


def test_equal_seeds_give_equal_clusters() -> None:
    assert random_document(random.Random(3), 0) == random_document(random.Random(3), 0)


def test_the_oracle_has_tiny_clusters_of_both_kinds() -> None:
    answers = [
        oracle.Tiny.of(oracle.tiny_document(random.Random(number), number)).victims_that_help()
        for number in range(150)
    ]
    assert sum(answer is None for answer in answers) >= 20
    assert sum(answer == [] for answer in answers) >= 5
    assert sum(bool(answer) for answer in answers) >= 10


# ------------------------------------------------------------------- the rules notice planted faults


def node(name: str, gpus: int = 2) -> Document:
    amounts = {"gpu": gpus, "cpu_millis": 8_000, "memory_bytes": 8_000_000_000, "max_pods": 110}
    return {"name": name, "gpu_memory_mib": 1000, "labels": {}, **amounts}


def queue(name: str, quota: float, limit: float = -1) -> Document:
    gpu = {"quota": quota, "limit": limit, "over_quota_weight": 0}
    return {"name": name, "parent": None, "gpu": gpu}


def job(name: str, queue: str, nodes: list[str], pending: int = 0, **more: object) -> Document:
    tasks: list[Document] = [
        {"id": f"{name}-{n}", "state": "running", "node": node} for n, node in enumerate(nodes)
    ]
    tasks += [{"id": f"{name}-{len(nodes) + n}", "state": "pending"} for n in range(pending)]
    fields: Document = {
        "name": name,
        "queue": queue,
        "priority": 50,
        "preemptible": True,
        "created_offset_seconds": 0,
        "request": {"gpu": 1, "cpu_millis": 100, "memory_bytes": 1_000_000},
        "min_available": len(tasks),
        "tasks": tasks,
    }
    return fields | more


def run_without(
    actions: list[str], *jobs: Document, quotas: tuple[float, float] = (0, 2)
) -> CycleRun:
    """Play one node of two GPUs with queues a and b, with some actions only."""
    document = document_of(
        "x", [node("n0")], [queue("a", quotas[0]), queue("b", quotas[1])], list(jobs)
    )
    document["config"]["actions"] = actions
    return play(document)


def set_status(cycle_run: CycleRun, name: str, status: TaskStatus) -> None:
    """Change the state behind the back of the core."""
    tasks = cycle_run.session.state.tasks
    index = next(i for i, task in enumerate(tasks.inputs) if task.name == name)
    tasks.status[index] = status
    tasks.node[index] = 0


def plant_eviction(
    cycle_run: CycleRun, name: str, action: ActionName, evictor: str = "ask"
) -> None:
    group = name.split("-")[0]
    why = EvictReason(action=action, evictor=evictor)
    cycle_run.session.decisions.append(Evict(TaskRef("", name, name), group, "", "n0", why))
    set_status(cycle_run, name, TaskStatus.RELEASING)


def rules_broken(rule: Rule, cycle_run: CycleRun) -> list[str]:
    return [finding.rule for finding in rule(cycle_run)]


def test_half_a_gang_that_is_evicted_is_noticed() -> None:
    cycle_run = run_without(["allocate"], job("g", "a", ["n0", "n0"]))
    plant_eviction(cycle_run, "g-0", ActionName.RECLAIM)
    assert rules_broken(gangs.gangs_are_not_broken, cycle_run) == ["gang broken"]


def test_an_elastic_pod_may_be_evicted_alone() -> None:
    cycle_run = run_without(["allocate"], job("g", "a", ["n0", "n0"], min_available=1))
    plant_eviction(cycle_run, "g-0", ActionName.RECLAIM)
    assert rules_broken(gangs.gangs_are_not_broken, cycle_run) == []


def test_half_a_gang_that_starts_is_noticed() -> None:
    cycle_run = run_without(["stale_gang_eviction"], job("g", "a", [], pending=2))
    set_status(cycle_run, "g-0", TaskStatus.BINDING)
    broken = rules_broken(gangs.gangs_start_whole, cycle_run)
    assert broken == ["gang started in part", "gang bound in part"]


def test_evicted_non_preemptible_work_is_noticed() -> None:
    cycle_run = run_without(["allocate"], job("g", "a", ["n0"], preemptible=False))
    plant_eviction(cycle_run, "g-0", ActionName.PREEMPT)
    broken = rules_broken(gangs.only_preemptible_work_is_evicted, cycle_run)
    assert broken == ["non-preemptible evicted"]


def test_an_eviction_for_nobody_is_noticed() -> None:
    cycle_run = run_without(["allocate"], job("g", "a", ["n0"]))
    plant_eviction(cycle_run, "g-0", ActionName.RECLAIM)
    assert rules_broken(evictions.evictions_have_an_evictor, cycle_run) == ["evicted for nobody"]
    assert rules_broken(evictions.evictions_are_needed, cycle_run) == ["evicted needlessly"]


def test_a_queue_within_its_quota_that_loses_is_noticed() -> None:
    jobs = (job("g", "a", ["n0"]), job("ask", "b", [], pending=1))
    cycle_run = run_without(["stale_gang_eviction"], *jobs, quotas=(1, 1))
    plant_eviction(cycle_run, "g-0", ActionName.RECLAIM)
    broken = rules_broken(queues.reclaim_takes_only_what_is_above, cycle_run)
    assert broken == ["queue within its share loses"]


def test_three_pods_on_two_devices_are_noticed() -> None:
    jobs = (job("g", "a", ["n0", "n0"]), job("h", "b", [], pending=1))
    cycle_run = run_without(["stale_gang_eviction"], *jobs)
    set_status(cycle_run, "h-0", TaskStatus.NOMINATED)
    assert rules_broken(room.no_promise_overdraws_a_node, cycle_run) == [
        "node overdrawn by promises"
    ]
    assert rules_broken(room.state_is_valid, cycle_run) == ["state invalid"]


def test_parts_above_one_device_are_noticed() -> None:
    request = {"gpu_fraction": 0.6, "cpu_millis": 100, "memory_bytes": 1_000_000}
    jobs = [job(name, "a", ["n0"], request=request) for name in "gh"]
    for each in jobs:
        each["tasks"][0]["gpu_groups"] = ["d0"]
    cycle_run = run_without(["stale_gang_eviction"], *jobs)
    findings = [finding.text for finding in room.no_promise_overdraws_a_node(cycle_run)]
    assert findings == ["device d0 of n0 is held 1.2 times"]


def test_a_newly_shared_device_without_a_slot_for_its_reservation_pod_is_noticed() -> None:
    request = {"gpu_fraction": 0.5, "cpu_millis": 100, "memory_bytes": 1_000_000}
    full = job("g", "a", [], pending=1, request=request)
    cycle_run = run_without(["allocate"], full)
    assert rules_broken(room.no_promise_overdraws_a_node, cycle_run) == []
    allocatable = dict(cycle_run.cluster.nodes[0].allocatable) | {"pods": 1.0}
    tight = replace(cycle_run.cluster.nodes[0], allocatable=allocatable)
    changed = replace(cycle_run, cluster=replace(cycle_run.cluster, nodes=(tight,)))
    findings = [finding.text for finding in room.no_promise_overdraws_a_node(changed)]
    assert findings == ["n0 has 1 pods, 2 are held"]


def test_a_limit_that_is_passed_is_noticed() -> None:
    document = document_of(
        "x", [node("n0")], [queue("a", 0, limit=0)], [job("g", "a", [], pending=1)]
    )
    document["config"]["actions"] = ["stale_gang_eviction"]
    cycle_run = play(document)
    set_status(cycle_run, "g-0", TaskStatus.BINDING)
    assert rules_broken(queues.limits_hold, cycle_run) == ["limit passed"]


def test_non_preemptible_work_above_its_quota_is_noticed() -> None:
    non_preemptible = job("g", "a", [], pending=1, preemptible=False)
    cycle_run = run_without(["stale_gang_eviction"], non_preemptible)
    set_status(cycle_run, "g-0", TaskStatus.BINDING)
    broken = rules_broken(queues.non_preemptible_work_stays_within_quota, cycle_run)
    assert broken == ["quota passed by non-preemptible work"]


def test_a_pod_evicted_twice_for_one_evictor_is_noticed() -> None:
    cycle_run = run_without(["allocate"], job("g", "a", ["n0"]), job("ask", "b", [], pending=3))
    plant_eviction(cycle_run, "g-0", ActionName.RECLAIM)
    repeated = evictions.RepeatedEvictions()
    assert list(repeated.watch(cycle_run, is_disturbed=False)) == []
    assert [each.rule for each in repeated.watch(cycle_run, is_disturbed=False)] == [
        "evicted twice for one evictor"
    ]
    assert list(repeated.watch(cycle_run, is_disturbed=True)) == []


def test_a_waiting_pod_group_without_a_reason_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    cycle_run = run_without(["allocate"], job("g", "a", [], pending=3))
    assert rules_broken(reasons.explanations_agree, cycle_run) == []
    monkeypatch.setattr(reasons, "standings", lambda *_: {})
    assert rules_broken(reasons.explanations_agree, cycle_run) == ["no reason"]


def test_a_changed_snapshot_is_noticed() -> None:
    cycle_run = run_without(["allocate"], job("g", "a", ["n0"]))
    changed = replace(cycle_run, cluster=replace(cycle_run.cluster, node_pool="other"))
    assert rules_broken(sameness.input_is_left_alone, changed) == ["input changed"]


def test_decisions_that_depend_on_the_order_of_the_input_are_noticed() -> None:
    cycle_run = run_without(["allocate"], job("g", "a", [], pending=1))
    assert rules_broken(sameness.order_of_input_does_not_matter, cycle_run) == []
    cycle_run.session.decisions.clear()
    broken = rules_broken(sameness.order_of_input_does_not_matter, cycle_run)
    assert broken == ["order of the input matters"]


def test_work_that_the_oracle_can_serve_and_the_core_may_not_is_noticed() -> None:
    jobs = [job("r0", "a", ["n0", "n0"], min_available=1), job(oracle.EVICTOR, "b", [], pending=1)]
    document = document_of("x", [node("n0")], [queue("a", 0), queue("b", 2)], jobs)
    assert oracle.Tiny.of(document).victims_that_help() == ["r0-1"]
    assert list(oracle.misses(document)) == []
    document["config"]["actions"] = ["allocate"]
    assert [finding.rule for finding in oracle.misses(document)] == ["servable work not served"]


# ------------------------------------------------------------------------------ shrinking, next cycle


def test_shrinking_leaves_only_what_shows_the_finding() -> None:
    jobs = [job(name, "a", ["n0"] * (name == "g"), pending=2) for name in "gh"]
    document = document_of("x", [node("n0"), node("n1")], [queue("a", 1), queue("b", 1)], jobs)
    before = copy.deepcopy(document)

    def still_fails(smaller: Document) -> bool:
        return any(task["id"] == "g-0" for each in smaller["jobs"] for task in each["tasks"])

    smallest = shrink(document, still_fails)
    assert [task["id"] for each in smallest["jobs"] for task in each["tasks"]] == ["g-0"]
    assert smallest["jobs"][0]["min_available"] == 1
    assert [each["name"] for each in smallest["cluster"]["nodes"]] == ["n0"]
    assert [each["name"] for each in smallest["cluster"]["queues"]] == ["a"]
    assert document == before


def test_bound_pods_run_and_evicted_pods_wait_in_the_next_cycle() -> None:
    gang, evictor = job("g", "a", ["n0", "n0"]), job("ask", "b", [], pending=1)
    after = next_document(
        play(document_of("x", [node("n0")], [queue("a", 0), queue("b", 2)], [gang, evictor]))
    )
    assert [task["state"] for each in after["jobs"] for task in each["tasks"]] == ["pending"] * 3
    again = next_document(play(after))
    assert {task["id"]: task["state"] for each in again["jobs"] for task in each["tasks"]} == {
        "g-0": "pending",
        "g-1": "pending",
        "ask-0": "running",
    }

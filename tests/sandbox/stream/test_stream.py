"""The demo day and the objects it becomes."""

from __future__ import annotations

import threading
from collections import Counter
from itertools import islice

import pytest

from kube.errors import InvalidError
from kube.objects.node import Node
from kube.resources import JOBS, NODES, PODS
from sandbox.nodes import podhints
from sandbox.nodes.profiles import demo, ensure_nodes
from sandbox.stream import manifests
from sandbox.stream.day import (
    HOUR_S,
    TEAMS,
    Arrival,
    Cluster,
    Work,
    arrivals,
    relative_rate,
    service_replicas,
)
from sandbox.stream.stream import Stream, measure, with_warm_start
from tests.fakes.gateway import FakeGateway
from tests.sandbox.pods import NOW

CLUSTER = Cluster(gpus=92)


def first(count: int, seed: int = 1, **extra: float) -> list[Arrival]:
    return list(islice(arrivals(CLUSTER, seed=seed, **extra), count))


def test_the_same_seed_gives_the_same_day() -> None:
    assert first(50) == first(50)
    assert first(50) != first(50, seed=2)


def test_a_little_more_is_asked_for_than_there_is() -> None:
    day = first(6000)
    gpus_in_use = sum(item.pods * item.gpus * item.duration_s for item in day) / day[-1].at_s
    assert 0.9 * CLUSTER.gpus < gpus_in_use < 1.4 * CLUSTER.gpus


def test_most_jobs_want_one_gpu_and_some_are_gangs() -> None:
    sizes = Counter(int(item.pods * item.gpus) for item in first(4000) if item.work is Work.TRAIN)
    total = sum(sizes.values())
    assert sizes[1] / total == pytest.approx(0.69, abs=0.05)
    assert max(sizes) <= CLUSTER.gpus // 3
    assert any(item.pods > 1 for item in first(200) if item.work is Work.TRAIN)


def test_no_pod_is_larger_than_a_node() -> None:
    small = Cluster(gpus=64, per_node=4)
    assert max(item.gpus for item in islice(arrivals(small, seed=3), 2000)) == 4


def test_notebooks_come_in_office_hours_only() -> None:
    hours = {int(8 + item.at_s / HOUR_S) % 24 for item in first(6000) if item.work is Work.NOTEBOOK}
    assert hours <= set(range(8, 19))


def test_afternoons_are_busier_than_nights() -> None:
    assert relative_rate(6 * HOUR_S) == 1.0
    assert relative_rate(19 * HOUR_S) < 0.35
    part = 0.1
    assert service_replicas(part, CLUSTER, 6 * HOUR_S) > service_replicas(
        part, CLUSTER, 19 * HOUR_S
    )


def test_fractions_only_when_asked_for() -> None:
    assert all(item.gpus in (0, 1) or item.gpus >= 2 for item in first(2000))
    shared = [item for item in first(2000, fractions=1.0) if 0 < item.gpus < 1]
    assert {item.work for item in shared} == {Work.NOTEBOOK}


def test_warm_start_fills_most_of_the_cluster_at_once() -> None:
    day = list(islice(with_warm_start(arrivals(CLUSTER, seed=1), CLUSTER), 200))
    at_once = sum(item.pods * item.gpus for item in day if item.at_s == 0.0)
    assert at_once >= 0.7 * CLUSTER.gpus
    times = [item.at_s for item in day]
    assert times == sorted(times)


def test_warm_start_counts_what_an_earlier_start_left() -> None:
    day = list(islice(with_warm_start(arrivals(CLUSTER, seed=1), CLUSTER, filled=80.0), 20))
    assert [item.at_s for item in day].count(0.0) == 1


def test_queue_tree_gives_parents_first_and_their_sum() -> None:
    bodies = manifests.queues(CLUSTER)
    names = [body["metadata"]["name"] for body in bodies]
    assert names[:3] == ["demo-research", "demo-product", "demo-platform"]
    quota = {body["metadata"]["name"]: body["spec"]["resources"]["gpu"]["quota"] for body in bodies}
    research = [f"demo-{team.name}" for team in TEAMS if team.department == "research"]
    assert quota["demo-research"] == sum(quota[name] for name in research)
    assert sum(quota[f"demo-{team.name}"] for team in TEAMS) <= CLUSTER.gpus


def arrival(work: Work, pods: int, gpus: float, **extra: bool) -> Arrival:
    return Arrival(
        at_s=0.0, work=work, team=TEAMS[0], user="ada", pods=pods, gpus=gpus,
        duration_s=3600.0, is_failing=extra.get("is_failing", False),
    )  # fmt: skip


def test_gang_becomes_a_job_with_min_member() -> None:
    body = manifests.workload(arrival(Work.TRAIN, 4, 8), "t", speed=60)
    assert body["metadata"]["annotations"]["kai.scheduler/batch-min-member"] == "4"
    assert body["metadata"]["labels"]["kai.scheduler/queue"] == "demo-vision"
    assert (body["spec"]["parallelism"], body["spec"]["completions"]) == (4, 4)
    template = body["spec"]["template"]
    assert template["metadata"]["annotations"][podhints.DURATION] == "60s"
    assert template["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "8"}


def test_sweep_is_no_gang_and_preparation_wants_no_gpu() -> None:
    sweep = manifests.workload(arrival(Work.SWEEP, 4, 1), "s", speed=60)
    assert sweep["metadata"]["annotations"] == {}
    prepare = manifests.workload(arrival(Work.PREPARE, 2, 0), "p", speed=60)
    resources = prepare["spec"]["template"]["spec"]["containers"][0]["resources"]
    assert "limits" not in resources


def test_shared_notebook_carries_its_fraction() -> None:
    body = manifests.workload(arrival(Work.NOTEBOOK, 1, 0.5), "n", speed=60)
    assert body["kind"] == "Pod"
    assert body["metadata"]["annotations"]["gpu-fraction"] == "0.5"
    assert body["spec"]["priorityClassName"] == "build-preemptible"


def test_failing_workload_has_an_exit_code() -> None:
    body = manifests.workload(arrival(Work.TRAIN, 1, 1, is_failing=True), "t", speed=60)
    assert body["spec"]["template"]["metadata"]["annotations"][podhints.EXIT_CODE] == "1"


def test_submitting_creates_in_the_teams_namespace_and_survives_a_refusal() -> None:
    gateway = FakeGateway()
    stream = Stream(gateway, threading.Event(), on_fatal=lambda error: None)
    gateway.fail_next("create", "jobs", InvalidError("no"))
    stream.submit(arrival(Work.TRAIN, 1, 1))
    stream.submit(arrival(Work.TRAIN, 1, 1))
    stream.submit(arrival(Work.NOTEBOOK, 1, 1))
    assert gateway.names(JOBS, "demo-vision") == ["train--1"]
    assert gateway.names(PODS, "demo-vision") == ["notebook--2"]


def test_demo_leaves_the_kept_free_nodes_alone() -> None:
    gateway = FakeGateway()
    ensure_nodes(gateway, demo(), NOW)
    measured = measure(gateway.list(NODES, as_type=Node).items)
    assert measured == Cluster(gpus=76, per_node=8)
    body = manifests.workload(arrival(Work.TRAIN, 1, 1), "t", speed=60)
    terms = body["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    (term,) = terms["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    (rule,) = term["matchExpressions"]
    assert (rule["key"], rule["operator"]) == ("sandbox.kaiweb/kept-free", "DoesNotExist")
    node = gateway.raw(NODES, "gpu-lab-worker")
    assert node["metadata"]["labels"]["sandbox.kaiweb/kept-free"] == "true"

"""A finished cycle becomes rows: one cycle, and the shares that are not what they were."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from threading import Event

import pytest

from kube.keys import BIND_FAILURES
from kube.resources import PODGROUPS, PODS, PRIORITY_CLASSES, QUEUES, SHARDS
from queues.models import LiveChange
from scheduler.loop.cycle import CycleSummary
from scheduler.loop.placements import Placement, write_placements
from scheduler.loop.report import Reporter, is_idle, report_cycle
from scheduler.models import (
    EvictionRecord,
    GroupStanding,
    PlacementRecord,
    QueueShare,
    RestingNode,
    SessionRecord,
    Shard,
)
from tests.scheduler.load.objects import group, meta, pod
from tests.scheduler.loop.harness import START, Harness
from tests.scheduler.loop.harness import harness as open_harness


@pytest.fixture
def harness() -> Iterator[Harness]:
    with open_harness() as opened:
        yield opened


@pytest.mark.django_db
def test_cycle_and_shares_are_on_record(harness: Harness) -> None:
    harness.cluster(nodes=2, gpus=4).pending("small").pending("huge", gpus=9)
    row = report_cycle("default", harness.cycle())
    assert (row.number, row.bound, row.pending_before, row.unschedulable) == (1, 1, 2, 1)
    assert (row.nodes, row.queues, row.pod_groups, row.pods) == (2, 2, 2, 2)
    assert row.started_at == START
    assert row.actions[0]["name"] == "allocate"
    assert row.actions[0]["succeeded"] == 1
    shares = {share.queue: share.gpu for share in QueueShare.objects.all()}
    assert shares == {"q": 8.0, "top": 8.0}
    kinds = set(LiveChange.objects.values_list("kind", flat=True))
    assert kinds == {"session", "queue", "standing"}


@pytest.mark.django_db
def test_why_a_pod_was_placed_is_written_for_binds_that_reached_the_cluster(
    harness: Harness,
) -> None:
    harness.cluster(nodes=2, gpus=4).pending("small").pending("huge", gpus=9)
    report_cycle("default", harness.cycle())
    row = PlacementRecord.objects.get()
    assert (row.pod, row.workload, row.node, row.at) == ("ns/small-0", "ns/small", "n0", START)
    assert row.reason["strategy"] == "binpack"
    assert (row.reason["possible"], row.reason["nextNode"]) == (2, "n1")


@pytest.mark.django_db
def test_of_several_placements_of_one_pod_the_last_holds() -> None:
    def placement(node: str) -> Placement:
        return Placement(pod="ns/p", workload="ns/w", node=node, at=START, reason={})

    write_placements("default", [placement("n0"), placement("n1")])
    assert [row.node for row in PlacementRecord.objects.all()] == ["n1"]
    write_placements("default", [placement("n2")])
    assert [row.node for row in PlacementRecord.objects.all()] == ["n2"]


@pytest.mark.django_db
def test_a_shard_that_records_no_placements_writes_none(harness: Harness) -> None:
    harness.seed(
        SHARDS, {"metadata": meta("default"), "spec": {"args": {"recorded-placements": "0"}}}
    )
    harness.cluster(nodes=2, gpus=4).pending("small")
    report_cycle("default", harness.cycle())
    assert (SessionRecord.objects.get().bound, PlacementRecord.objects.count()) == (1, 0)


@pytest.mark.django_db
def test_nodes_that_rest_are_written_when_they_change_and_dropped_when_it_ends(
    harness: Harness,
) -> None:
    harness.cluster(nodes=4)
    failures = {
        "count": 1, "last": "2026-01-01T00:00:00Z", "next": "2026-01-01T00:00:30Z", "nodes": ["n0"],
    }  # fmt: skip
    for index in range(3):
        harness.pending(f"p{index}", pod={"annotations": {BIND_FAILURES: json.dumps(failures)}})

    def published() -> list[str]:
        return list(LiveChange.objects.filter(kind="node").values_list("key", flat=True))

    report_cycle("default", harness.cycle())
    report_cycle("default", harness.cycle(seconds=1))
    rows = list(RestingNode.objects.values_list("name", "shard", "until", "pods"))
    assert rows == [("n0", "default", START + timedelta(seconds=60), ["ns/p0-0", "ns/p1-0", "ns/p2-0"])]  # fmt: skip
    assert published() == ["n0"]
    report_cycle("default", harness.cycle(seconds=60))
    assert (RestingNode.objects.count(), published()) == (0, ["n0", "n0"])


@pytest.mark.django_db
def test_standings_are_written_when_they_change_and_dropped_when_they_end(harness: Harness) -> None:
    harness.cluster().pending("huge", gpus=9).pending("larger", gpus=10)

    def published() -> list[str]:
        entries = LiveChange.objects.filter(kind="standing").order_by("id")
        keys = list(entries.values_list("key", flat=True))
        entries.delete()
        return keys

    report_cycle("default", harness.cycle())
    rows = GroupStanding.objects.values_list("key", "shard", "code", "position")
    assert list(rows) == [
        ("ns/huge", "default", "NeverFits", 1),
        ("ns/larger", "default", "NeverFits", 2),
    ]
    assert published() == ["ns/huge", "ns/larger"]
    report_cycle("default", harness.cycle(seconds=1))
    assert published() == []
    harness.gateway.delete(PODS, "huge-0", namespace="ns")
    report_cycle("default", harness.cycle(seconds=1))
    assert published() == ["ns/huge", "ns/larger"]
    assert list(GroupStanding.objects.values_list("key", "position")) == [("ns/larger", 1)]
    report_cycle("other", harness.cycle(seconds=1))
    assert GroupStanding.objects.get().shard == "other"


@pytest.mark.django_db
def test_unchanged_shares_are_left_alone_and_gone_queues_removed(harness: Harness) -> None:
    harness.cluster().pending("huge", gpus=9)
    report_cycle("default", harness.cycle())
    report_cycle("default", harness.cycle(seconds=1))
    assert set(QueueShare.objects.values_list("cycle", flat=True)) == {1}
    harness.gateway.delete(QUEUES, "q")
    report_cycle("default", harness.cycle(seconds=1))
    assert set(QueueShare.objects.values_list("queue", flat=True)) == {"top"}
    assert Shard.objects.get(name="default").last_number == 3
    assert list(SessionRecord.objects.values_list("number", flat=True)) == [3, 2, 1]


def test_idle_cycles_are_reported_now_and_then(harness: Harness) -> None:
    harness.cluster()
    reported: list[CycleSummary] = []
    seen = Event()

    def write(_: str, summary: CycleSummary) -> None:
        reported.append(summary)
        seen.set()

    reporter = Reporter("default", write=write)
    reporter.start()
    for seconds in (0, 1, 8, 2):
        summary = harness.cycle(seconds=seconds)
        assert is_idle(summary)
        reporter.offer(summary)
        if seconds in (0, 2):
            assert seen.wait(5)
            seen.clear()
    reporter.stop()
    assert [item.started_at - START for item in reported] == [timedelta(0), timedelta(seconds=11)]


def preemption(harness: Harness, victims: int = 2) -> None:
    """Fill a node of four GPUs with workloads of a low priority, and let one of a high priority wait."""
    for name, value in (("low", 10), ("high", 50)):
        harness.seed(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
    harness.cluster(gpus=2 * victims)
    for number in range(victims):
        body = group(f"low-{number}", priorityClassName="low")
        requests = {"nvidia.com/gpu": "2"}
        harness.seed(PODGROUPS, body)
        harness.seed(
            PODS,
            pod(f"low-{number}-0", group=f"low-{number}", node="n0", phase="Running", requests=requests),
        )  # fmt: skip
    harness.pending("urgent", gpus=2 * victims, priorityClassName="high")


@pytest.mark.django_db
def test_a_session_lists_what_it_decided_about_each_workload(harness: Harness) -> None:
    harness.cluster(nodes=2, gpus=4).pending("gang", gpus=2, pods=2).pending("huge", gpus=9)
    row = report_cycle("default", harness.cycle())
    assert row.decided == 1
    [decision] = row.decisions
    assert (decision["action"], decision["kind"], decision["workload"]) == (
        "allocate", "bind", "ns/gang",
    )  # fmt: skip
    assert (decision["queue"], decision["pods"], decision["refused"], decision["gpu"]) == (
        "q", 2, 0, 4.0,
    )  # fmt: skip
    assert set(decision["nodes"]) <= {"n0", "n1"}
    assert not EvictionRecord.objects.exists()


@pytest.mark.django_db
def test_evictions_are_on_record_with_who_got_the_room(harness: Harness) -> None:
    preemption(harness)
    row = report_cycle("default", harness.cycle())
    records = EvictionRecord.objects.order_by("workload").values_list(
        "session", "rule", "workload", "queue", "evictor", "evictor_queue", "pods", "gpu"
    )
    assert list(records) == [
        (row.pk, "preempt", f"ns/low-{number}", "q", "ns/urgent", "q", 1, 2.0)
        for number in range(2)
    ]
    assert "urgent" in EvictionRecord.objects.all()[0].text
    kinds = [(decision["kind"], decision["workload"]) for decision in row.decisions]
    assert kinds == [("evict", "ns/low-1"), ("evict", "ns/low-0"), ("nominate", "ns/urgent")]


@pytest.mark.django_db
def test_an_eviction_that_the_cluster_refused_is_listed_and_not_on_record(
    harness: Harness,
) -> None:
    preemption(harness, victims=1)
    harness.is_allowed = False
    row = report_cycle("default", harness.cycle())
    [eviction] = [decision for decision in row.decisions if decision["kind"] == "evict"]
    assert (eviction["pods"], eviction["refused"]) == (0, 1)
    assert not EvictionRecord.objects.exists()


def test_a_cycle_that_evicted_is_reported_also_when_the_reporter_lags(harness: Harness) -> None:
    preemption(harness)
    evicting = harness.cycle()
    later = [harness.pending(f"late-{number}").cycle(seconds=1) for number in range(2)]
    reported: list[CycleSummary] = []
    reporter = Reporter("default", write=lambda _, summary: reported.append(summary))
    for summary in (evicting, *later):
        reporter.offer(summary)
    reporter.start()
    reporter.stop()
    assert reported == [evicting, later[-1]]

"""Samples: what is held, in quota and over it, by queue, user and model; gaps stay gaps."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from kaiweb.usage import sampler
from kaiweb.usage.models import Clock, ModelUse, OwnerUse, QueueBounds, QueueUse, Span
from queues.mirror.feed import write_heartbeat
from queues.models import Node, Pod, PodGroup, Queue, WorkloadState
from scheduler.models import QueueShare
from tests.kaiweb.usage.conftest import MIDNIGHT, MODEL, hold, queue_row, wait_for

pytestmark = pytest.mark.django_db
SampleAt = Callable[[float], bool]


def queue_use() -> dict[str, tuple[float, ...]]:
    rows = QueueUse.objects.filter(tier=0)
    return {row.queue: (row.allocated, row.in_quota, row.waiting, row.share) for row in rows}


def test_the_first_sample_only_starts_the_clock(sample_at: SampleAt) -> None:
    hold("team", "ada", 4)
    assert sample_at(0)
    assert Clock.objects.get().sampled_at == MIDNIGHT
    assert not Span.objects.exists()
    assert not QueueUse.objects.exists()


def test_a_sample_counts_for_the_time_since_the_one_before(sample_at: SampleAt) -> None:
    hold("team", "ada", 12)
    wait_for("lab", "bob", 2)
    QueueShare.objects.create(shard="default", queue="team", cycle=1, gpu=8)
    QueueShare.objects.create(shard="blue", queue="team", cycle=1, gpu=1)
    sample_at(0)
    sample_at(20)
    span = Span.objects.get()
    assert (span.tier, span.start, span.covered_s) == (0, MIDNIGHT, 20)
    # The team has a quota of 8, its department one of 12; each is measured by its own.
    assert queue_use() == {
        "team": (240, 160, 0, 180),
        "lab": (0, 0, 40, 0),
        "dept": (240, 240, 40, 0),
    }
    use = ModelUse.objects.get()
    assert (use.model, use.capacity, use.allocated) == (MODEL, 320, 240)


def test_what_is_in_quota_is_divided_among_the_users_of_a_queue(sample_at: SampleAt) -> None:
    hold("team", "ada", 12)
    hold("team", "bob", 4)
    wait_for("team", "cleo", 3)
    sample_at(0)
    sample_at(20)
    rows = OwnerUse.objects.order_by("owner")
    assert [(row.owner, row.model, row.allocated, row.in_quota, row.waiting) for row in rows] == [
        ("ada", MODEL, 240, 120, 0),
        ("bob", MODEL, 80, 40, 0),
        ("cleo", "", 0, 0, 60),
    ]


def test_a_workload_on_two_models_is_divided_by_its_pods(sample_at: SampleAt) -> None:
    Node.objects.create(name="n2", model="A100", gpus=8, uid="n2", version=1, created_at=MIDNIGHT)
    group = hold("team", "ada", 6)
    Pod.objects.create(
        key="ns/second", namespace="ns", name="second", group=group.key, node="n2",
        phase="Running", gpu=2, gpu_kind="whole", uid="second", version=1, created_at=MIDNIGHT,
    )  # fmt: skip
    PodGroup.objects.filter(pk=group.pk).update(allocated_gpu=8)
    sample_at(0)
    sample_at(10)
    allocated = dict(OwnerUse.objects.values_list("model", "allocated"))
    assert allocated == {MODEL: 60, "A100": 20}


def test_an_unset_quota_guarantees_nothing_and_an_unlimited_one_everything(
    sample_at: SampleAt,
) -> None:
    Queue.objects.filter(name="lab").update(quota_gpu=None)
    hold("lab", "ada", 2)
    hold("other", "bob", 3)
    sample_at(0)
    sample_at(10)
    in_quota = {name: (allocated, inside) for name, (allocated, inside, *_) in queue_use().items()}
    assert in_quota == {"lab": (20, 0), "dept": (20, 20), "other": (30, 30)}


def test_work_of_a_queue_that_does_not_exist_is_counted_under_its_name(sample_at: SampleAt) -> None:
    hold("gone", "ada", 2)
    sample_at(0)
    sample_at(10)
    assert queue_use() == {"gone": (20, 0, 0, 0)}


def test_ended_workloads_hold_nothing(sample_at: SampleAt) -> None:
    group = hold("team", "ada", 2)
    PodGroup.objects.filter(pk=group.pk).update(state=WorkloadState.FINISHED)
    sample_at(0)
    sample_at(10)
    assert queue_use() == {}
    assert Span.objects.count() == 1


@pytest.mark.parametrize(("pause_s", "covered"), [(60, [20, 60]), (61, [20])])
def test_a_longer_pause_than_two_missed_samples_is_a_gap(
    sample_at: SampleAt, pause_s: float, covered: list[float]
) -> None:
    hold("team", "ada", 4)
    sample_at(0)
    sample_at(20)
    assert sample_at(20 + pause_s)
    rows = Span.objects.filter(tier=0).order_by("start")
    assert list(rows.values_list("covered_s", flat=True)) == covered


def test_a_mirror_that_does_not_hear_from_the_cluster_is_not_sampled(mirror: None) -> None:
    assert not sampler.sample(MIDNIGHT)
    write_heartbeat(MIDNIGHT)
    assert sampler.sample(MIDNIGHT + timedelta(seconds=30))
    assert not sampler.sample(MIDNIGHT + timedelta(seconds=31))


def test_two_samplers_at_the_same_time_count_once(sample_at: SampleAt) -> None:
    hold("team", "ada", 1)
    sample_at(0)
    assert sample_at(20)
    assert not sample_at(20.5)
    assert Span.objects.count() == 1


def test_a_clock_that_was_set_back_counts_nothing_twice(sample_at: SampleAt) -> None:
    hold("team", "ada", 1)
    sample_at(3600)
    sample_at(0)
    sample_at(20)
    assert [(row.start, row.covered_s) for row in Span.objects.all()] == [(MIDNIGHT, 20)]


def test_quota_and_limit_are_written_when_they_change(sample_at: SampleAt) -> None:
    sample_at(0)
    sample_at(20)
    assert QueueBounds.objects.count() == 4
    Queue.objects.filter(name="team").update(quota_gpu=10)
    sample_at(40)
    sample_at(60)
    rows = QueueBounds.objects.filter(queue="team").order_by("at")
    assert [(row.at, row.quota, row.limit) for row in rows] == [
        (MIDNIGHT, 8, 16),
        (MIDNIGHT + timedelta(seconds=40), 10, 16),
    ]


def test_a_sample_of_2000_busy_queues_is_2000_rows_in_few_statements(
    sample_at: SampleAt, django_assert_max_num_queries: Callable[[int], object]
) -> None:
    names = [f"q{number}" for number in range(2000)]
    Queue.objects.bulk_create(queue_row(name, quota_gpu=1) for name in names)
    PodGroup.objects.bulk_create(
        PodGroup(
            key=f"ns/{name}", namespace="ns", name=name, queue=name, user="ada", gpu=2,
            allocated_gpu=2, state=WorkloadState.RUNNING, uid=name, version=1, created_at=MIDNIGHT,
        )
        for name in names
    )  # fmt: skip
    sample_at(0)
    with django_assert_max_num_queries(60):  # type: ignore[attr-defined]
        sample_at(20)
    assert QueueUse.objects.count() == 2000
    assert OwnerUse.objects.count() == 2000

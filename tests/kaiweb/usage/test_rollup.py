"""Sums of spans: they equal the samples, are written once, and old rows go."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db.models import Sum

from kaiweb.usage import rollup, tiers
from kaiweb.usage.models import OwnerUse, QueueBounds, QueueUse, Span
from kaiweb.usage.ranges import Range
from kaiweb.usage.series import queue_series, usage_series
from kaiweb.usage.totals import By, capacity, usage_items
from queues.selectors import tree
from tests.kaiweb.usage.conftest import MIDNIGHT, MODEL, end_all, hold, wait_for

pytestmark = pytest.mark.django_db
SampleAt = Callable[[float], bool]
HOUR = 3600
NEXT_DAY = MIDNIGHT + timedelta(days=1)


@pytest.fixture
def scripted_day(sample_at: SampleAt, settings: object) -> None:
    """0-6 h nothing; 6-12 h ada 4; 12-18 h ada 4, bob 8; 18-24 h bob 8 and ada waits for 4.

    A sample every 15 minutes, and an hour of the next day in which nothing runs.
    """
    settings.KAIWEB_USAGE_SAMPLE_S = 900  # type: ignore[attr-defined]
    for minute in range(0, 25 * 60 + 1, 15):
        if (
            minute % 360 == 15
        ):  # just after the change, so that the sample before ends with the old state
            end_all()
            if minute in (375, 735):
                hold("team", "ada", 4)
            if minute in (735, 1095):
                hold("team", "bob", 8)
            if minute == 1095:
                wait_for("team", "ada", 4)
        sample_at(minute * 60)


def test_a_scripted_day_has_exactly_its_gpu_hours(scripted_day: None) -> None:
    span = Range.of(MIDNIGHT, NEXT_DAY, NEXT_DAY + timedelta(hours=1), max_points=100)
    queues, total = usage_items(span, By.QUEUE, tree(), None)
    assert {
        row["key"]: (
            row["gpuHours"], row["inQuotaHours"], row["overQuotaHours"], row["waitingHours"],
        )
        for row in queues
    } == {"team": (144, 120, 24, 24), "dept": (144, 144, 0, 24)}  # fmt: skip
    owners, by_owner = usage_items(span, By.OWNER, tree(), None)
    assert [(row["key"], row["gpuHours"], row["inQuotaHours"]) for row in owners] == [
        ("ada", 48, 40),
        ("bob", 96, 80),
    ]
    models, by_model = usage_items(span, By.MODEL, tree(), None)
    assert [(row["key"], row["gpuHours"], row["waitingHours"]) for row in models] == [
        ("", 0, 24),
        (MODEL, 144, 0),
    ]
    assert total == by_owner == by_model
    # The node has 16 GPUs, of which the mirror says 12 are held all day.
    assert capacity(span) == {
        "capacityHours": 384,
        "allocatedHours": 288,
        "idleHours": 96,
        "allocatedButIdleHours": None,
        "utilisationUnknownHours": 288,
    }


def test_the_sums_of_every_tier_equal_those_of_the_samples(scripted_day: None) -> None:
    def sums(tier: int) -> list[dict[str, object]]:
        rows = OwnerUse.objects.filter(tier=tier, start__gte=MIDNIGHT, start__lt=NEXT_DAY)
        totals = rows.values("queue", "owner", "model").annotate(
            held=Sum("allocated"), inside=Sum("in_quota"), waiting=Sum("waiting")
        )
        return [
            {**row, **{key: round(row[key], 3) for key in ("held", "inside", "waiting")}}
            for row in totals.order_by("queue", "owner", "model")
        ]

    of_samples = sums(tiers.RAW)
    assert len(of_samples) == 3
    for tier in tiers.STEPS:
        assert sums(tier) == of_samples, tier
    assert Span.objects.get(tier=tiers.DAY).covered_s == 24 * HOUR


def test_the_same_range_has_the_same_sums_before_and_after_rolling_up(sample_at: SampleAt) -> None:
    hold("team", "ada", 3)
    for seconds in range(0, 4 * 60 + 1, 20):
        sample_at(seconds)
    now = MIDNIGHT + timedelta(seconds=240)
    span = Range.of(MIDNIGHT, now, now, max_points=10)
    assert [piece.tier for piece in span.pieces()] == [tiers.MINUTE, tiers.RAW]
    before = queue_series(["team"], span)
    assert before["series"][0]["allocated"] == [3, 3, 3, 3]
    rollup.roll_up(now + timedelta(minutes=2))
    assert [piece.tier for piece in span.pieces()] == [tiers.MINUTE]
    assert queue_series(["team"], span) == before


def test_a_span_is_summed_up_once(sample_at: SampleAt) -> None:
    hold("team", "ada", 1)
    for seconds in range(0, 200, 20):
        sample_at(seconds)
    count = QueueUse.objects.count()
    assert rollup.roll_up(MIDNIGHT + timedelta(seconds=200)) == 0
    assert QueueUse.objects.count() == count


def test_a_gap_is_none_and_idle_time_is_zero(sample_at: SampleAt) -> None:
    for seconds in (0, 20, 40, 60):
        sample_at(seconds)
    hold("team", "ada", 2)
    for seconds in (240, 260, 280, 300):
        sample_at(seconds)
    now = MIDNIGHT + timedelta(seconds=300)
    answer = queue_series(["team"], Range.of(MIDNIGHT, now, now, max_points=10))
    assert answer["coveredSeconds"] == [60, 0, 0, 0, 60]
    assert answer["series"][0]["allocated"] == [0, None, None, None, 2]
    assert answer["series"][0]["quota"] == [8, 8, 8, 8, 8]
    hours = usage_series(Range.of(MIDNIGHT, now, now, max_points=10), None)
    assert hours["inQuotaHours"] == [0, None, None, None, pytest.approx(120 / HOUR, abs=0.001)]
    assert hours["idleHours"] == [0.067, None, None, None, 0.067]


def test_rows_go_when_their_tier_is_not_kept_any_longer_and_are_summed_up(
    sample_at: SampleAt,
) -> None:
    hold("team", "ada", 1)
    for seconds in range(0, 421, 20):
        sample_at(seconds)
    long_after = MIDNIGHT + timedelta(days=30)
    assert Span.objects.filter(tier=tiers.FIVE_MINUTES).count() == 1
    rollup.trim(long_after)
    # The hour is not complete yet, so the five minutes stay, and so do the samples after them.
    assert not Span.objects.filter(
        tier=tiers.MINUTE, start__lt=MIDNIGHT + timedelta(seconds=300)
    ).exists()
    assert Span.objects.filter(tier=tiers.FIVE_MINUTES).count() == 1
    rollup.roll_up(long_after)
    rollup.trim(long_after)
    assert set(Span.objects.values_list("tier", flat=True)) == {tiers.HOUR, tiers.DAY}
    assert QueueUse.objects.get(tier=tiers.DAY, queue="team").allocated == 420


def test_the_last_bounds_before_the_retention_stay(mirror: None) -> None:
    days = (0, 1, 2)
    QueueBounds.objects.bulk_create(
        QueueBounds(queue="team", at=MIDNIGHT + timedelta(days=day), quota=day) for day in days
    )
    rollup.trim(MIDNIGHT + timedelta(days=1100 + 1.5))
    assert list(QueueBounds.objects.values_list("quota", flat=True)) == [1, 2]


def test_rows_of_a_busy_cluster_are_bounded() -> None:
    """The figure of docs/guides/usage.md: rows for each queue that is never idle, when all tiers are full."""
    spans = {tier: tiers.retention(tier) / timedelta(seconds=tier or 20) for tier in tiers.ORDER}
    assert spans == {0: 45, 60: 180, 300: 576, 3600: 1488, 86_400: 1100}
    assert sum(spans.values()) == 3389

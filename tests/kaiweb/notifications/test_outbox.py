"""What webhooks are told, when, and what happens if they do not answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from kaiweb.models import ChangeSet
from kaiweb.notifications import outbox, reports, transport
from kaiweb.notifications.models import TEST, Delivery, Webhook
from kaiweb.notifications.transport import Message, Outcome
from queues.models import PodGroup, Queue
from scheduler.models import EvictionRecord, SessionRecord

pytestmark = pytest.mark.django_db
#: A Tuesday.
NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


@pytest.fixture(autouse=True)
def queues(db: None) -> None:
    for name, parent in (("science", ""), ("physics", "science"), ("product", "")):
        Queue.objects.create(name=name, parent=parent, uid=name, version=1, created_at=NOON)


def webhook(*events: str, name: str = "ops", **columns: Any) -> Webhook:
    return Webhook.objects.create(
        name=name, url="https://hooks.example/x", events=list(events),
        created_at=NOON, since=NOON, looked_at=NOON, **columns,
    )  # fmt: skip


def workload(name: str, queue: str, created_at: datetime, **columns: Any) -> PodGroup:
    return PodGroup.objects.create(
        key=f"ns/{name}", namespace="ns", name=name, queue=queue, uid=name, version=1,
        created_at=created_at, **columns,
    )  # fmt: skip


def told() -> list[dict[str, Any]]:
    """Return the events of all messages, oldest message first."""
    rows = Delivery.objects.order_by("id")
    return [fact for row in rows for fact in json.loads(row.body)["events"]]


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Message]]:
    """Let the receivers answer so, one after the other; return what was sent to them."""
    sent: list[Message] = []
    queue: list[Outcome] = []

    def post_all(messages: Sequence[Message], _allowed: Sequence[str]) -> list[Outcome]:
        sent.extend(messages)
        return [queue.pop(0) for _message in messages]

    def answering(*outcomes: Outcome) -> list[Message]:
        queue.extend(outcomes)
        return sent

    monkeypatch.setattr(transport, "post_all", post_all)
    return answering


def test_a_workload_that_waits_too_long_in_the_subtree_is_told_once() -> None:
    webhook("workloadWaits", subtree="science", wait_minutes=30)
    workload("long", "physics", at(-20))
    workload("elsewhere", "product", at(-20))
    workload("held", "physics", at(-20), is_held=True)
    workload("runs", "physics", at(-20), state="running")
    workload("before", "physics", at(-60))
    assert outbox.collect(at(5)) == 0
    assert outbox.collect(at(11)) == 1
    assert outbox.collect(at(12)) == 0
    [event] = told()
    assert (event["workload"], event["queue"], event["waitingSince"]) == (
        "ns/long", "physics", "2026-12-01T11:40:00.000Z",
    )  # fmt: skip


def test_after_an_eviction_a_workload_waits_anew() -> None:
    webhook("workloadWaits", wait_minutes=30)
    workload("again", "physics", at(-300), last_eviction=at(10))
    outbox.collect(at(39))
    assert told() == []
    outbox.collect(at(41))
    assert [event["workload"] for event in told()] == ["ns/again"]


def test_what_the_mirror_sees_late_is_told_and_a_second_worker_tells_nothing() -> None:
    row = webhook("workloadEvicted")
    outbox.collect(at(5))
    columns = {"session": 1, "shard": "default", "rule": "reclaim", "pods": 1, "gpu": 2.0}
    EvictionRecord.objects.create(at=at(4), workload="ns/late", queue="physics", **columns)
    EvictionRecord.objects.create(at=at(-1), workload="ns/old", queue="physics", **columns)
    stale = Webhook.objects.get()
    assert outbox.collect(at(6)) == 1
    # A worker that read the webhook before the other one wrote it.
    assert outbox._collect_for(stale, {}, at(6)) == 0
    assert [event["workload"] for event in told()] == ["ns/late"]
    assert row.told.count() == 1
    outbox.collect(at(30))
    assert row.told.count() == 0


def test_many_events_make_one_bounded_message() -> None:
    webhook("workloadEvicted")
    EvictionRecord.objects.bulk_create(
        EvictionRecord(
            session=1, at=at(1), shard="default", rule="reclaim", workload=f"ns/{number}",
            queue="physics", pods=1, gpu=1.0,
        )
        for number in range(120)
    )  # fmt: skip
    outbox.collect(at(2))
    body = json.loads(Delivery.objects.get().body)
    assert (len(body["events"]), body["more"]) == (outbox.MAX_EVENTS, 120 - outbox.MAX_EVENTS)


def test_the_guide_shows_a_message_as_it_is_sent() -> None:
    guide = Path(__file__).parents[3] / "docs" / "guides" / "notifications.md"
    shown = json.loads(guide.read_text().split("```json")[1].split("```")[0])
    webhook("workloadEvicted")
    EvictionRecord.objects.create(
        session=1, at=at(1), shard="default", rule="reclaim", workload="ns/w", queue="physics",
        pods=1, gpu=1.0,
    )  # fmt: skip
    outbox.collect(at(2))
    sent = json.loads(Delivery.objects.get().body)
    assert list(shown) == list(sent)
    assert list(shown["events"][0]) == list(sent["events"][0])


def test_changes_silent_shards_and_reports_are_told() -> None:
    webhook(
        "changeRequested", "changeApplied", "shardNotReady", "usageReport",
        subtree="physics", report="weekly",
    )  # fmt: skip
    author = User.objects.create_user("emmy")
    for state, queue in (("requested", "physics"), ("applied", "product"), ("draft", "physics")):
        ChangeSet.objects.create(
            author=author, title=state, state=state, edits=[{"name": queue}],
            created_at=at(1), changed_at=at(1),
        )  # fmt: skip
    for shard, last in (("default", at(6)), ("pool-b", at(3))):
        SessionRecord.objects.create(shard=shard, number=1, started_at=last, duration_ms=1)
    outbox.collect(at(7))
    assert [event.get("title") or event["shard"] for event in told()] == ["requested", "pool-b"]
    outbox.collect(NOON + timedelta(days=6))
    report = told()[-1]
    assert (report["from"][:10], report["to"][:10], report["subtree"]) == (
        "2026-11-30", "2026-12-07", "physics",
    )  # fmt: skip


def test_months_end_when_their_last_samples_are_summed_up() -> None:
    january = datetime(2027, 1, 1, tzinfo=UTC)
    early, late = january + timedelta(minutes=14), january + timedelta(minutes=15)
    assert list(reports.ended_periods("monthly", NOON, early)) == []
    assert list(reports.ended_periods("monthly", early, late)) == [
        (datetime(2026, 12, 1, tzinfo=UTC), january)
    ]


def test_a_receiver_that_fails_is_left_alone_for_longer_each_time(answers: Any) -> None:
    row = webhook()
    outbox.delivery(row, "workloadEvicted", [{}], NOON).save()
    sent = answers(
        Outcome(500, "answered 500"), Outcome(error="no answer within 5 s"), Outcome(200)
    )
    assert outbox.deliver(NOON) == 0
    row.refresh_from_db()
    assert (row.failures, row.next_try_at) == (1, NOON + timedelta(seconds=30))
    assert outbox.deliver(NOON + timedelta(seconds=29)) == 0
    assert len(sent) == 1
    outbox.deliver(NOON + timedelta(seconds=31))
    row.refresh_from_db()
    assert row.next_try_at == NOON + timedelta(seconds=91)
    assert outbox.deliver(NOON + timedelta(seconds=92)) == 1
    message = Delivery.objects.get()
    assert (message.state, message.attempts, message.status, message.error) == (
        "delivered", 3, 200, "",
    )  # fmt: skip
    assert {each.headers["webhook-id"] for each in sent} == {message.message}
    row.refresh_from_db()
    assert (row.failures, row.next_try_at) == (0, None)


def test_a_test_is_sent_at_once_tried_once_and_does_not_disturb_the_others(answers: Any) -> None:
    row = webhook(is_enabled=False, failures=3, next_try_at=NOON + timedelta(hours=1))
    outbox.delivery(row, "workloadEvicted", [{}], NOON).save()
    outbox.delivery(row, TEST, [{}], NOON).save()
    sent = answers(Outcome(404, "answered 404"))
    outbox.deliver(at(1))
    assert [json.loads(message.body)["type"] for message in sent] == [TEST]
    assert [message.state for message in Delivery.objects.all()] == ["failed", "pending"]
    row.refresh_from_db()
    assert row.failures == 3


def test_two_workers_do_not_send_the_same_message(answers: Any) -> None:
    outbox.delivery(webhook(), "workloadEvicted", [{}], NOON).save()
    answers(Outcome(200))
    [due] = outbox._due(NOON)
    assert outbox._claim(due, NOON)
    assert not outbox._claim(due, NOON)
    assert outbox._due(NOON) == []
    # The worker died: after a minute another one sends it.
    assert outbox.deliver(NOON + timedelta(seconds=61)) == 1


def test_messages_are_given_up_after_a_day_and_a_hundred_are_kept(answers: Any) -> None:
    row = webhook("workloadEvicted")
    Delivery.objects.bulk_create(
        outbox.delivery(row, "workloadEvicted", [{}], NOON) for _ in range(130)
    )
    outbox.collect(at(1))
    assert row.deliveries.count() == outbox.MAX_DELIVERIES
    outbox.deliver(NOON + timedelta(days=2))
    message = row.deliveries.first()
    assert message is not None
    assert (message.state, message.error) == ("failed", outbox.NEVER_SENT)


def test_without_messages_a_look_at_them_writes_nothing(
    django_assert_num_queries: Callable[[int], AbstractContextManager[Any]],
) -> None:
    webhook()
    with django_assert_num_queries(1) as queries:
        assert outbox.deliver(NOON) == 0
    assert queries.captured_queries[0]["sql"].startswith("SELECT")

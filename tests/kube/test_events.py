"""Events are written once and counted after, at growing intervals, and never block."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from kube.errors import ServerError
from kube.events import WARNING, ObjectEvent, Pace, Recorder
from kube.resources import EVENTS, PODS, QUEUES
from tests.fakes.gateway import FakeGateway


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def wall(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.now)


def recorder(**extra: Any) -> tuple[FakeGateway, Clock, Recorder]:
    gateway, clock = FakeGateway(), Clock()
    return gateway, clock, Recorder(gateway, "binder", clock=clock, wall=clock.wall, **extra)


def about(name: str = "p", message: str = "no room") -> ObjectEvent:
    return ObjectEvent(
        resource=PODS,
        namespace="ns",
        name=name,
        uid=f"uid-{name}",
        type=WARNING,
        reason="Unschedulable",
        message=message,
    )


def stored(gateway: FakeGateway) -> list[dict[str, Any]]:
    return [gateway.raw(EVENTS, name, "ns") for name in gateway.names(EVENTS, "ns")]


def test_a_repeated_event_raises_the_count_of_the_one_written() -> None:
    gateway, clock, event_recorder = recorder()
    for second in range(60):
        clock.now = float(second)
        event_recorder.record(about())
        event_recorder.flush()
    (event,) = stored(gateway)
    assert event["count"] == 36  # written at 0, 5, 15, 35 s
    assert [call[0] for call in gateway.calls] == ["create", "patch", "patch", "patch"]
    assert event["firstTimestamp"] == "2026-01-01T00:00:00Z"
    assert event["lastTimestamp"] == "2026-01-01T00:00:35Z"
    assert event["source"] == {"component": "binder"}
    assert event["involvedObject"]["uid"] == "uid-p"


def test_an_event_with_another_message_is_written_separately() -> None:
    gateway, _, event_recorder = recorder()
    event_recorder.record(about())
    event_recorder.record(about(message="still no room"))
    event_recorder.record(about(name="q"))
    event_recorder.flush()
    assert sorted(
        (item["involvedObject"]["name"], item["message"]) for item in stored(gateway)
    ) == [
        ("p", "no room"),
        ("p", "still no room"),
        ("q", "no room"),
    ]


def test_an_expired_event_is_created_again() -> None:
    gateway, clock, event_recorder = recorder()
    event_recorder.record(about())
    event_recorder.flush()
    gateway.delete(EVENTS, gateway.names(EVENTS)[0], namespace="ns")
    clock.now = 10
    event_recorder.record(about())
    event_recorder.flush()
    assert [item["count"] for item in stored(gateway)] == [1]


def test_a_full_queue_drops_events_and_counts_them() -> None:
    _, _, event_recorder = recorder(capacity=1)
    event_recorder.record(about("a"))
    event_recorder.record(about("b"))
    assert event_recorder.dropped == 1


def test_failed_write_does_not_stop_the_next() -> None:
    gateway, _, event_recorder = recorder()
    gateway.fail_next("create", "events", ServerError("down"))
    event_recorder.record(about("a"))
    event_recorder.record(about("b"))
    event_recorder.flush()
    assert [item["involvedObject"]["name"] for item in stored(gateway)] == ["b"]


def test_cluster_scoped_objects_have_their_events_in_default() -> None:
    gateway, _, event_recorder = recorder()
    event_recorder.record(
        ObjectEvent(
            resource=QUEUES, namespace="", name="q", uid="u", type="Normal", reason="R", message="m"
        )
    )
    event_recorder.flush()
    assert len(gateway.names(EVENTS, "default")) == 1


def test_threads_write_what_is_queued_before_they_end() -> None:
    gateway, _, event_recorder = recorder()
    event_recorder.start()
    for number in range(20):
        event_recorder.record(about(f"p{number}"))
    event_recorder.stop()
    assert len(stored(gateway)) == 20


def test_all_but_one_writer_give_way_while_there_is_something_more_urgent() -> None:
    gateway, _, event_recorder = recorder(writers=2, is_busy=lambda: True, capacity=4)
    assert event_recorder._should_give_way()
    for number in range(3):
        event_recorder.record(about(f"p{number}"))
    assert not event_recorder._should_give_way()  # or events would be lost
    event_recorder.start()
    event_recorder.stop()
    assert len(stored(gateway)) == 3


def test_the_pace_allows_a_burst_and_then_a_fixed_rate() -> None:
    pace = Pace(per_s=10.0, at_once=2.0, _tokens=2.0)
    assert [pace.wait_s(0.0) for _ in range(4)] == [0.0, 0.0, 0.1, 0.2]
    assert pace.wait_s(1.0) == 0.0

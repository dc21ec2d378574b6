"""Watch to row: reflectors on a fake cluster, through the line, into the tables."""

from __future__ import annotations

import queue
from threading import Event
from typing import Any

import pytest

from kube.resources import PODGROUPS, PODS, QUEUES
from kube.watch import Reflector
from queues.mirror.feed import (
    GATHER_IN_BURST_S,
    GATHER_S,
    EventMessage,
    Message,
    MessageQueue,
    Mirror,
)
from queues.mirror.kinds import KINDS
from queues.mirror.views import QueueView
from queues.mirror.writer import Writer
from queues.models import MirrorState, Queue
from tests.fakes.gateway import FakeGateway

pytestmark = pytest.mark.django_db


def body(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"resources": {}, **spec}}


class Feed:
    """One reflector whose passes a test plays by hand."""

    def __init__(self) -> None:
        self.cluster = FakeGateway()
        self.line = MessageQueue()
        self.mirror = Mirror(KINDS, Writer(sleep=lambda _s: None))
        self.reflector = Reflector(self.cluster, QUEUES, QueueView, self.line)

    def follow(self) -> list[str]:
        """One pass of list and watch; return what kind of messages came of it."""
        self.reflector.pass_once(Event())
        messages = self.line.take(timeout_s=0.1)
        self.mirror.consume(messages)
        return [type(message).__name__ for message in messages]

    def rows(self) -> list[str]:
        return list(Queue.objects.values_list("name", flat=True))


@pytest.fixture
def feed() -> Feed:
    return Feed()


def test_a_list_then_events_then_nothing(feed: Feed) -> None:
    feed.cluster.seed(QUEUES, body("a"))
    assert feed.follow() == ["ListMessage"]
    feed.cluster.create(QUEUES, body("b", parentQueue="a"))
    feed.cluster.delete(QUEUES, "a")
    assert feed.follow() == ["EventMessage", "EventMessage"]
    assert feed.rows() == ["b"]
    assert feed.follow() == []


def test_a_gone_version_is_followed_by_a_new_list_that_repairs_the_gap(feed: Feed) -> None:
    feed.cluster.seed(QUEUES, body("a"), body("b"))
    feed.follow()
    feed.cluster.delete(QUEUES, "a")
    feed.cluster.create(QUEUES, body("c"))
    feed.cluster.compacted_before = 10_000
    assert feed.follow() == []
    feed.cluster.compacted_before = 0
    assert feed.follow() == ["ListMessage"]
    assert feed.rows() == ["b", "c"]


def test_the_manager_of_the_spec_is_the_last_who_wrote_it(feed: Feed) -> None:
    managed = [
        {"manager": "helm", "operation": "Apply", "time": "2026-11-29T10:00:00Z"},
        {"manager": "argocd", "operation": "Apply", "time": "2026-11-29T11:00:00Z"},
        {"manager": "queue-controller", "operation": "Update", "subresource": "status",
         "time": "2026-11-29T12:00:00Z"},
    ]  # fmt: skip
    feed.cluster.seed(QUEUES, {**body("a"), "metadata": {"name": "a", "managedFields": managed}})
    feed.follow()
    assert Queue.objects.get().manager == "argocd"


def test_messages_of_several_kinds_keep_their_order_and_gather() -> None:
    line = MessageQueue()
    for resource in (QUEUES, PODS, PODS, PODGROUPS):
        line.apply(resource, None)  # type: ignore[arg-type]
    batch = line.take(timeout_s=0.1)
    assert [message.resource for message in batch] == [QUEUES, PODS, PODS, PODGROUPS]
    assert all(isinstance(message, EventMessage) for message in batch)
    assert line.take(timeout_s=0.0) == []


def test_a_full_gathering_leaves_the_rest_in_the_line() -> None:
    line = MessageQueue()
    for _number in range(5):
        line.replace(QUEUES, None)  # type: ignore[arg-type]
    assert [len(line.take(timeout_s=0.1, max_messages=3)) for _ in range(2)] == [3, 2]


class NotedWaits(queue.Queue[Message]):
    """A queue that never waits but notes how long it should have."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    def get(self, block: bool = True, timeout: float | None = None) -> Message:
        self.waits.append(timeout or 0.0)
        return super().get(block=False)


def test_a_stream_of_single_messages_is_gathered_as_a_burst_until_it_ends() -> None:
    now = 0.0
    line = MessageQueue(clock=lambda: now)
    line._queue = waits = NotedWaits()

    def gathered_s() -> float:
        line.apply(QUEUES, None)  # type: ignore[arg-type]  # what it holds is not read
        assert len(line.take(timeout_s=9.0)) == 1
        return round(waits.waits[-1], 9)

    assert [gathered_s() for _number in range(20)] == [GATHER_S] * 19 + [GATHER_IN_BURST_S]
    now = 2.0
    assert gathered_s() == GATHER_S


def test_how_far_each_kind_was_read_is_on_record(feed: Feed) -> None:
    feed.cluster.seed(QUEUES, body("a"))
    feed.follow()
    state = MirrorState.objects.get()
    assert (state.kind, state.version) == ("Queue", int(feed.reflector.resource_version))
    assert state.listed_at is not None

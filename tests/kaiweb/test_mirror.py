"""The mirror process follows a cluster until it is stopped, and replaces a watch that fails."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connections, transaction

from kaiweb import mirror
from kube.errors import ServerError, UnauthorizedError
from kube.resources import CONFIGS, NAMESPACES, PODGROUPS, PODS, QUEUES
from queues import live
from queues.models import MirrorState, PodGroup, Queue
from scheduler.models import GroupStanding
from tests.fakes.gateway import FakeGateway

# Real threads and their own connections: the database must be a file that all can see.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.integration]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeGateway:
    monkeypatch.setattr(mirror, "CONTACT_EVERY_S", 0.05)
    monkeypatch.setattr(mirror, "TAKE_S", 0.05)
    fake = FakeGateway(follow_s=0.2)
    fake.seed(NAMESPACES, {"metadata": {"name": "default"}}, {"metadata": {"name": "kube-system"}})
    return fake


class Running:
    """The mirror in a thread."""

    def __init__(self, cluster: FakeGateway) -> None:
        self.stop = threading.Event()
        self.fault: list[Exception | None] = []
        self._thread = threading.Thread(target=self._run, args=(cluster,))
        self._thread.start()

    def _run(self, cluster: FakeGateway) -> None:
        self.fault.append(mirror.follow(cluster, self.stop))
        connections.close_all()

    def end(self) -> Exception | None:
        self.stop.set()
        self._thread.join(10)
        return self.fault[0]


@pytest.fixture
def start(cluster: FakeGateway) -> Iterator[Callable[[], Running]]:
    started: list[Running] = []

    def make() -> Running:
        started.append(Running(cluster))
        return started[-1]

    yield make
    for running in started:
        running.end()


def until(is_true: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 10
    while not is_true():
        assert time.monotonic() < deadline, "it did not happen within 10 s"
        time.sleep(0.02)


def test_it_follows_until_it_is_stopped(cluster: FakeGateway, start: Callable[[], Running]) -> None:
    cluster.seed(QUEUES, {"metadata": {"name": "team"}, "spec": {"resources": {}}})
    running = start()
    until(lambda: Queue.objects.filter(name="team").exists())
    cluster.create(PODGROUPS, {"metadata": {"name": "g"}, "spec": {"queue": "team"}}, namespace="a")
    pod = {
        "metadata": {"name": "p", "annotations": {"pod-group-name": "g"}},
        "spec": {"containers": []},
    }
    cluster.create(PODS, pod, namespace="a")
    until(lambda: PodGroup.objects.filter(key="a/g", pods=1).exists())
    assert running.end() is None


def test_what_vanished_while_it_was_down_is_gone_after_its_start(
    cluster: FakeGateway, start: Callable[[], Running]
) -> None:
    cluster.seed(QUEUES, {"metadata": {"name": "old"}, "spec": {"resources": {}}})
    first = start()
    until(lambda: Queue.objects.filter(name="old").exists())
    first.end()
    cluster.delete(QUEUES, "old")
    cluster.create(QUEUES, {"metadata": {"name": "new"}, "spec": {"resources": {}}})
    start()
    until(lambda: list(Queue.objects.values_list("name", flat=True)) == ["new"])


def test_its_heartbeat_is_written_only_while_the_cluster_answers(
    cluster: FakeGateway, start: Callable[[], Running]
) -> None:
    start()
    until(lambda: MirrorState.objects.filter(kind="mirror").exists())
    cluster.delete(NAMESPACES, "default")
    time.sleep(0.2)
    last = MirrorState.objects.get(kind="mirror").seen_at
    time.sleep(0.2)
    assert MirrorState.objects.get(kind="mirror").seen_at == last


def test_refused_credentials_end_it_with_an_error(
    cluster: FakeGateway, start: Callable[[], Running]
) -> None:
    cluster.fail_next("list", "queues", UnauthorizedError("who are you", status=401))
    running = start()
    until(lambda: running.fault)
    assert str(running.fault[0]) == "who are you"


def test_a_watch_that_fails_is_started_again_instead_of_going_blind(
    cluster: FakeGateway, start: Callable[[], Running]
) -> None:
    cluster.seed(QUEUES, {"metadata": {"name": "team"}, "spec": {"resources": {}}})
    cluster.fail_next("list", "queues", ValueError("cannot decode"))  # type: ignore[arg-type]
    start()
    until(lambda: Queue.objects.filter(name="team").exists())


def test_rows_of_another_cluster_are_forgotten_even_if_they_look_newer(
    cluster: FakeGateway, start: Callable[[], Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(50):
        cluster.seed(QUEUES, {"metadata": {"name": f"old{number}"}, "spec": {"resources": {}}})
    first = start()
    until(lambda: Queue.objects.count() == 50)
    first.end()
    epoch = live.epoch()
    fresh = FakeGateway(follow_s=0.2)
    fresh.seed(NAMESPACES, {"metadata": {"name": "kube-system", "uid": "another"}})
    fresh.seed(
        QUEUES, {"metadata": {"name": "old0"}, "spec": {"resources": {}, "parentQueue": "x"}}
    )
    second = Running(fresh)
    try:
        until(lambda: list(Queue.objects.values_list("name", "parent")) == [("old0", "x")])
    finally:
        second.end()
    assert live.epoch() != epoch


def test_it_waits_for_a_cluster_that_does_not_answer_yet(
    cluster: FakeGateway, start: Callable[[], Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror, "CLUSTER_PAUSE_S", 0.05)
    cluster.seed(QUEUES, {"metadata": {"name": "team"}, "spec": {"resources": {}}})
    for _attempt in range(3):
        cluster.fail_next("get", "namespaces", ServerError("connection refused"))
    start()
    until(lambda: Queue.objects.filter(name="team").exists())


def test_what_the_scheduler_says_reaches_the_workload_without_an_event_of_the_cluster(
    cluster: FakeGateway, start: Callable[[], Running]
) -> None:
    cluster.seed(QUEUES, {"metadata": {"name": "team"}, "spec": {"resources": {}}})
    cluster.create(PODGROUPS, {"metadata": {"name": "g"}, "spec": {"queue": "team"}}, namespace="a")
    pod = {
        "metadata": {"name": "p", "annotations": {"pod-group-name": "g"}},
        "spec": {"containers": []},
    }
    cluster.create(PODS, pod, namespace="a")
    start()
    until(lambda: PodGroup.objects.filter(key="a/g", reason_code="NotEvaluated").exists())
    with transaction.atomic():
        GroupStanding.objects.create(key="a/g", shard="default", code="NeverFits", position=1)
        live.record("standing", ["a/g"])
    until(lambda: PodGroup.objects.filter(reason_code="NeverFits", position=1).exists())
    with transaction.atomic():
        GroupStanding.objects.all().delete()
        live.record("standing", ["a/g"])
    until(lambda: PodGroup.objects.filter(reason_code="NotEvaluated", position=None).exists())


def test_pods_that_ask_for_us_by_the_name_in_the_config_are_missed_when_nobody_groups_them(
    cluster: FakeGateway, start: Callable[[], Running]
) -> None:
    config = {"metadata": {"name": "kai-config"}, "spec": {"global": {"schedulerName": "ours"}}}
    cluster.seed(CONFIGS, config)
    for name in ("ours", "theirs"):
        metadata = {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"}
        body = {"metadata": metadata, "spec": {"containers": [], "schedulerName": name}}
        cluster.seed(PODS, {**body, "metadata": {**metadata, "namespace": "a"}})
    start()
    until(lambda: PodGroup.objects.filter(reason_code="Unmanaged").exists())
    assert list(PodGroup.objects.values_list("key", flat=True)) == ["a/pod:ours"]

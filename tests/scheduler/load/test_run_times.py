"""Declared run times in the snapshot of a shard that keeps room."""

from __future__ import annotations

from typing import Any

import pytest

from kube.resources import PODGROUPS, PODS, QUEUES
from scheduler.load.build import SnapshotBuilder
from scheduler.settings.params import ShardParams
from tests.scheduler.load.objects import NOW, Cluster, group, pod, queue

MAXIMUM, STARTED = "kaiweb.dev/max-run-time", "kai.scheduler/last-start-timestamp"


def declared(
    annotations: dict[str, str], *pods: dict[str, Any], keeps_room: bool = True, **of_queue: str
) -> tuple[float | None, float | None]:
    """Return maximum and end of a pod group, seen ten minutes after the times of the snapshot begin."""
    body = queue("q")
    body["metadata"]["annotations"] = of_queue
    cluster = Cluster().put(QUEUES, body).put(PODGROUPS, group("pg", annotations=annotations))
    cluster.put(PODS, *pods)
    builder = SnapshotBuilder(ShardParams(keeps_room=keeps_room), origin=NOW)
    (only,) = builder.build(cluster.store.view(), NOW + 600).cluster.pod_groups
    return only.max_run_time_s, only.ends_by


def running(**more: Any) -> dict[str, Any]:
    return pod("p", group="pg", node="n0", phase="Running", **more)


def test_a_waiting_workload_has_a_maximum_and_no_end() -> None:
    assert declared({MAXIMUM: "1h"}, pod("p", group="pg")) == (3600, None)
    assert declared({}, pod("p", group="pg")) == (None, None)


def test_a_run_ends_its_maximum_after_its_start() -> None:
    assert declared({MAXIMUM: "1h", STARTED: "2026-01-01T00:01:00Z"}, running()) == (3600, 3660)


def test_the_maximum_of_the_queue_counts_too() -> None:
    started = {STARTED: "2026-01-01T00:01:00Z"}
    assert declared(started, running(), **{MAXIMUM: "30m"}) == (1800, 1860)


@pytest.mark.parametrize("started", [{}, {STARTED: "2025-12-31T23:00:00Z"}])
def test_where_the_start_is_that_of_an_earlier_run_the_end_is_not_known(started) -> None:
    assert declared({MAXIMUM: "1h", **started}, running()) == (3600, None)


def test_pods_that_are_leaving_have_no_end() -> None:
    leaving = running(deleted="2026-01-01T00:20:00Z")
    assert declared({MAXIMUM: "1h", STARTED: "2026-01-01T00:01:00Z"}, leaving) == (3600, None)


def test_a_shard_that_keeps_no_room_reads_nothing() -> None:
    annotations = {MAXIMUM: "1h", STARTED: "2026-01-01T00:01:00Z"}
    assert declared(annotations, running(), keeps_room=False) == (None, None)

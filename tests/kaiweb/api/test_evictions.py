"""Sessions with their decisions, and evictions: a list with filters, and sums by pair of queues."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from scheduler.models import EvictionRecord, SessionRecord

pytestmark = pytest.mark.django_db
API = "/api/v1"


@pytest.fixture
def evictions(db: None) -> datetime:
    """Four evictions of the last hour and one of last week; return the present time."""
    now = timezone.now()
    rows = [
        ("reclaim", "ns/a", "team-a", "ns/x", "team-x", 2, 4.0, 1),
        ("reclaim", "ns/b", "team-a", "ns/y", "team-x", 1, 0.5, 2),
        ("preempt", "ns/c", "team-a", "ns/z", "team-a", 1, 1.0, 3),
        ("requeue", "ns/d", "team-b", "", "", 1, 1.0, 4),
        ("reclaim", "ns/old", "team-a", "ns/x", "team-x", 1, 8.0, 60 * 24 * 7),
    ]
    for rule, workload, queue, evictor, evictor_queue, pods, gpu, minutes in rows:
        EvictionRecord.objects.create(
            session=7, at=now - timedelta(minutes=minutes), shard="default", rule=rule,
            workload=workload, queue=queue, evictor=evictor, evictor_queue=evictor_queue,
            pods=pods, gpu=gpu, text="because",
        )  # fmt: skip
    return now


def get(client: APIClient, path: str, **query: Any) -> Any:
    response = client.get(API + path, query)
    assert response.status_code == 200, response.content
    return response.json()


def test_a_session_shows_its_decisions_and_a_list_of_sessions_does_not(client: APIClient) -> None:
    decision = {"action": "allocate", "kind": "bind", "workload": "ns/w"}
    row = SessionRecord.objects.create(
        shard="default", number=1, started_at=datetime(2026, 1, 1, tzinfo=UTC), duration_ms=1,
        decisions=[decision], decided=1,
    )  # fmt: skip
    assert get(client, f"/sessions/{row.pk}")["decisions"] == [decision]
    address = f"/sessions/{row.pk}/decisions"
    assert get(client, address)["items"] == [decision]
    assert get(client, address, kind="bind,evict", workload="ns/w")["items"] == [decision]
    assert get(client, address, kind="evict")["items"] == []
    assert client.get(f"{API}/sessions/{row.pk + 1}/decisions").status_code == 404
    [listed] = get(client, "/sessions")["items"]
    assert listed["decided"] == 1
    assert "decisions" not in listed
    assert client.get(f"{API}/sessions/{10**30}").status_code == 404


def test_one_eviction_is_as_in_the_list(client: APIClient, evictions: datetime) -> None:
    item = get(client, "/evictions")["items"][0]
    assert get(client, f"/evictions/{item['id']}") == item
    assert client.get(f"{API}/evictions/{10**30}").status_code == 404


def test_the_matrix_sums_the_last_day_by_queues_and_rule(
    client: APIClient, evictions: datetime
) -> None:
    sums = [
        (row["queue"], row["evictorQueue"], row["rule"], row["evictions"], row["pods"], row["gpu"])
        for row in get(client, "/evictions/matrix")["items"]
    ]
    assert sums == [
        ("team-a", "team-a", "preempt", 1, 1, 1),
        ("team-a", "team-x", "reclaim", 2, 3, 4.5),
        ("team-b", "", "requeue", 1, 1, 1),
    ]


def test_a_longer_span_has_older_evictions(client: APIClient, evictions: datetime) -> None:
    start = (evictions - timedelta(days=30)).isoformat()
    rows = get(client, "/evictions/matrix", **{"from": start})["items"]
    assert {row["rule"]: row["evictions"] for row in rows} == {
        "preempt": 1, "reclaim": 3, "requeue": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("query", "workloads"),
    [
        ({}, ["ns/d", "ns/c", "ns/b", "ns/a"]),
        ({"queue": "team-a", "evictorQueue": "team-x"}, ["ns/b", "ns/a"]),
        ({"rule": "preempt,requeue"}, ["ns/d", "ns/c"]),
        ({"workload": "ns/a"}, ["ns/a"]),
        ({"evictor": "ns/z"}, ["ns/c"]),
    ],
)
def test_evictions_are_filtered_and_newest_first(
    client: APIClient, evictions: datetime, query: dict[str, str], workloads: list[str]
) -> None:
    rows = get(client, "/evictions", **query)["items"]
    assert [row["workload"] for row in rows] == workloads


def test_a_span_that_ends_before_it_starts_is_refused(client: APIClient) -> None:
    query = {"from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"}
    assert client.get(f"{API}/evictions", query).status_code == 400

"""Watches: resuming, selections that objects enter and leave, bookmarks, forgotten history."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sandbox.apiserver.storage import watchlog
from tests.sandbox.apiserver.conftest import InProcess, configmap

MAPS = "/api/v1/namespaces/default/configmaps"


async def take(events: asyncio.Queue[dict[str, Any]], count: int) -> list[tuple[str, str]]:
    """Return type and name of the next events."""
    changes = []
    for _ in range(count):
        event = await asyncio.wait_for(events.get(), 2)
        changes.append((event["type"], event["object"]["metadata"].get("name", "")))
    return changes


async def test_watch_resumes_after_a_version(cluster: InProcess) -> None:
    first = (await cluster.post(MAPS, configmap("a"))).ok(201)
    await cluster.post(MAPS, configmap("b"))
    version = first["metadata"]["resourceVersion"]
    async with cluster.watch(f"{MAPS}?resourceVersion={version}") as events:
        await cluster.patch(f"{MAPS}/a", {"data": {"x": "1"}})
        await cluster.delete(f"{MAPS}/b")
        assert await take(events, 3) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]


async def test_change_before_the_first_byte_is_not_lost(cluster: InProcess) -> None:
    sent: list[bytes] = []

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":  # a slow client: others write meanwhile
            await cluster.post(MAPS, configmap("between"))
        sent.append(message.get("body", b""))

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(0.05)
        return {"type": "http.disconnect"}

    query = f"watch=true&resourceVersion={cluster.store.version}"
    scope = cluster.scope("GET", MAPS, query, "", "application/json", cluster.token, {})
    await cluster.app(scope, receive, send)
    assert b'"name":"between"' in b"".join(sent)
    assert not cluster.store.collection("configmaps").log.watchers


async def test_watch_without_version_starts_with_what_exists(cluster: InProcess) -> None:
    await cluster.post(MAPS, configmap("b"))
    await cluster.post(MAPS, configmap("a"))
    async with cluster.watch(MAPS) as events:
        assert await take(events, 2) == [("ADDED", "a"), ("ADDED", "b")]


async def test_objects_enter_and_leave_a_selection(cluster: InProcess) -> None:
    await cluster.post(MAPS, configmap("a"))
    async with cluster.watch(f"{MAPS}?labelSelector=on%3Dyes") as events:
        await cluster.patch(f"{MAPS}/a", {"metadata": {"labels": {"on": "yes"}}})
        await cluster.patch(f"{MAPS}/a", {"data": {"x": "1"}})
        await cluster.patch(f"{MAPS}/a", {"metadata": {"labels": {"on": "no"}}})
        await cluster.patch(f"{MAPS}/a", {"data": {"x": "2"}})
        assert await take(events, 3) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
        assert events.empty()


async def test_field_selector_follows_a_pod_to_its_node(cluster: InProcess) -> None:
    pods = "/api/v1/namespaces/default/pods"
    body = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await cluster.post(pods, body)
    async with cluster.watch("/api/v1/pods?fieldSelector=spec.nodeName%3Dn1") as events:
        await cluster.post(f"{pods}/p/binding", {"target": {"kind": "Node", "name": "n1"}})
        assert await take(events, 1) == [("ADDED", "p")]


async def test_watch_sees_only_its_namespace(cluster: InProcess) -> None:
    async with cluster.watch("/api/v1/namespaces/kube-system/configmaps") as events:
        await cluster.post(MAPS, configmap("here"))
        await cluster.post("/api/v1/namespaces/kube-system/configmaps", configmap("there"))
        assert await take(events, 1) == [("ADDED", "there")]


async def test_initial_events_end_with_a_marked_bookmark(cluster: InProcess) -> None:
    await cluster.post(MAPS, configmap("a"))
    query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with cluster.watch(f"{MAPS}?{query}") as events:
        assert await take(events, 1) == [("ADDED", "a")]
        bookmark = await asyncio.wait_for(events.get(), 2)
    assert bookmark["type"] == "BOOKMARK"
    meta = bookmark["object"]["metadata"]
    assert meta["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert meta["resourceVersion"] == str(cluster.store.version)


async def test_initial_events_need_the_match_parameter(cluster: InProcess) -> None:
    answer = await cluster.get(f"{MAPS}?watch=true&sendInitialEvents=true")
    assert answer.code == 422
    assert "resourceVersionMatch" in answer.body["message"]


async def test_forgotten_history_is_gone(
    cluster: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchlog, "HISTORY_EVENTS", 5)
    first = (await cluster.post(MAPS, configmap("a"))).ok(201)["metadata"]["resourceVersion"]
    for number in range(7):
        await cluster.patch(f"{MAPS}/a", {"data": {"n": str(number)}})
    async with cluster.watch(f"{MAPS}?resourceVersion={first}") as events:
        event = await asyncio.wait_for(events.get(), 2)
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")


async def test_old_history_is_compacted(cluster: InProcess) -> None:
    await cluster.post(MAPS, configmap("a"))
    log = cluster.store.collection("configmaps").log
    (change,) = log.changes
    log.compact(change.at + watchlog.HISTORY_AGE_S + 1)
    assert not log.changes
    assert log.dropped == change.version


async def test_timeout_ends_the_stream_with_a_bookmark(cluster: InProcess) -> None:
    query = f"resourceVersion={cluster.store.version}&timeoutSeconds=1&allowWatchBookmarks=true"
    async with cluster.watch(f"{MAPS}?{query}") as events:
        event = await asyncio.wait_for(events.get(), 3)
    assert (event["type"], event["object"]["kind"]) == ("BOOKMARK", "ConfigMap")


async def test_table_watch_names_its_columns_once(cluster: InProcess) -> None:
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    await cluster.post(MAPS, configmap("a", k="v"))
    table = (await cluster.get(MAPS, accept=accept)).ok()
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert table["rows"][0]["cells"][:2] == ["a", 1]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


async def test_a_watch_that_is_busy_collects_events_for_longer() -> None:
    watcher = watchlog.Watcher()
    quiet = [watcher._interval_s() for _ in range(int(watchlog.SHORT_INTERVALS))]
    assert set(quiet) == {watchlog.FLUSH_INTERVAL_S}
    assert watcher._interval_s() == watchlog.BURST_INTERVAL_S
    watcher._counted_at -= 1.0
    assert watcher._interval_s() == watchlog.FLUSH_INTERVAL_S

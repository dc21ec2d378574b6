"""Watches: what is sent, from where on, and when the past is gone."""

from __future__ import annotations

from itertools import islice
from typing import Any

from tests.contract.api import Api
from tests.contract.bodies import configmap, pod, queue

MAPS = "/api/v1/namespaces/{ns}/configmaps"
PODS = "/api/v1/namespaces/{ns}/pods"


def short(events: list[Any]) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"]["name"]) for event in events]


def version(api: Api, path: str = MAPS) -> str:
    list_version: str = api.get(path).ok()["metadata"]["resourceVersion"]
    return list_version


def test_watch_sends_each_change_in_order(api: Api) -> None:
    with api.watch(MAPS, resourceVersion=version(api)) as events:
        body = api.post(MAPS, configmap("a", k="1")).ok(201)
        api.put(f"{MAPS}/a", {**body, "data": {"k": "2"}}).ok()
        api.delete(f"{MAPS}/a").ok()
        first_events = list(islice(events, 3))
    assert short(first_events) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in first_events]
    assert versions == sorted(set(versions))
    assert first_events[2]["object"]["data"] == {"k": "2"}


def test_watch_resumes_after_the_version_given(api: Api) -> None:
    first = api.post(MAPS, configmap("a")).ok(201)["metadata"]["resourceVersion"]
    api.post(MAPS, configmap("b")).ok(201)
    api.post(MAPS, configmap("c")).ok(201)
    with api.watch(MAPS, resourceVersion=first) as events:
        assert short(list(islice(events, 2))) == [("ADDED", "b"), ("ADDED", "c")]


def test_watch_without_version_begins_with_what_is_there(api: Api) -> None:
    api.post(MAPS, configmap("a")).ok(201)
    api.post(MAPS, configmap("b")).ok(201)
    with api.watch(MAPS) as events:
        assert sorted(short(list(islice(events, 2)))) == [("ADDED", "a"), ("ADDED", "b")]


def test_watch_is_limited_to_its_namespace(api: Api) -> None:
    with api.watch(MAPS, resourceVersion=version(api)) as events:
        api.post("/api/v1/namespaces/default/configmaps", configmap(api.namespace)).ok(201)
        api.post(MAPS, configmap("here")).ok(201)
        assert short(list(islice(events, 1))) == [("ADDED", "here")]


def test_label_change_enters_and_leaves_a_selected_watch(api: Api) -> None:
    with api.watch(MAPS, resourceVersion=version(api), labelSelector="on=yes") as events:
        api.post(MAPS, configmap("a", {"on": "no"})).ok(201)
        api.patch(f"{MAPS}/a", {"metadata": {"labels": {"on": "yes"}}}).ok()
        api.patch(f"{MAPS}/a", {"data": {"k": "v"}}).ok()
        api.patch(f"{MAPS}/a", {"metadata": {"labels": {"on": "no"}}}).ok()
        first_events = list(islice(events, 3))
    assert short(first_events) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


def test_field_selected_watch_sees_a_pod_when_it_is_bound(api: Api, unique: str) -> None:
    at = version(api, PODS)
    with api.watch(PODS, resourceVersion=at, fieldSelector=f"spec.nodeName={unique}") as events:
        api.post(PODS, pod("a")).ok(201)
        binding = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": unique}}
        api.post(f"{PODS}/a/binding", binding).ok(201)
        (event,) = islice(events, 1)
    assert short([event]) == [("ADDED", "a")]
    assert event["object"]["spec"]["nodeName"] == unique


def test_watch_of_a_custom_kind(api: Api, unique: str) -> None:
    path = "/apis/scheduling.run.ai/v2/queues"
    with api.watch(path, resourceVersion=version(api, path)) as events:
        api.post(path, queue(unique)).ok(201)
        (event,) = islice(events, 1)
    assert short([event]) == [("ADDED", unique)]
    assert event["object"]["kind"] == "Queue"


def test_watch_ends_after_its_timeout(api: Api) -> None:
    with api.watch(MAPS, resourceVersion=version(api), timeoutSeconds=1) as events:
        assert list(events) == []


def test_watch_from_a_forgotten_version_is_gone(api: Api, unique: str) -> None:
    path = "/apis/scheduling.run.ai/v2/queues"
    api.post(path, queue(unique)).ok(201)
    old = api.server.forget_history(api, f"{path}/{unique}")
    with api.watch(path, resourceVersion=old, timeoutSeconds=2) as events:
        event = next(events)
    status = event["object"]
    assert (event["type"], status["kind"]) == ("ERROR", "Status")
    assert (status["code"], status["reason"]) == (410, "Expired")


def test_initial_events_end_with_a_marked_bookmark(api: Api) -> None:
    api.post(MAPS, configmap("a")).ok(201)
    with api.watch(
        MAPS,
        sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan",
        allowWatchBookmarks="true",
    ) as events:
        first, second = islice(events, 2)
    assert short([first]) == [("ADDED", "a")]
    assert second["type"] == "BOOKMARK"
    annotations = second["object"]["metadata"]["annotations"]
    assert annotations == {"k8s.io/initial-events-end": "true"}

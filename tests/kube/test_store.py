"""The store keeps the newest of each object, its indexes, and what we wrote ourselves."""

from __future__ import annotations

from typing import Any

from kube.gateway import EventType, Listing, WatchEvent
from kube.objects.meta import convert
from kube.objects.pod import Pod
from kube.resources import PODS
from kube.store import Store


def pod(name: str, version: int, *, node: str = "", uid: str = "u") -> Pod:
    return convert(
        {
            "metadata": {
                "name": name,
                "namespace": "ns",
                "uid": uid,
                "resourceVersion": str(version),
            },
            "spec": {"nodeName": node} if node else {},
        },
        Pod,
    )


def event(kind: str, value: Pod) -> WatchEvent[Pod]:
    return WatchEvent(
        type=EventType(kind), object=value, resource_version=value.metadata.resource_version
    )


def store() -> Store:
    pod_store = Store([PODS])
    pod_store.add_index(PODS, "node", lambda value: [value.spec.node_name])
    return pod_store


def names(pod_store: Store) -> list[str]:
    return sorted(value.metadata.name for value in pod_store.view().of(PODS, Pod).values())


def test_older_events_and_duplicates_change_nothing() -> None:
    pod_store = store()
    pod_store.apply(PODS, event("ADDED", pod("a", 5, node="n1")))
    generation = pod_store.generation
    pod_store.apply(PODS, event("MODIFIED", pod("a", 4, node="n0")))
    pod_store.apply(PODS, event("ADDED", pod("a", 5, node="n1")))
    assert pod_store.generation == generation
    assert pod_store.get(PODS, "ns/a").spec.node_name == "n1"


def test_index_follows_changes_and_deletions() -> None:
    pod_store = store()
    pod_store.apply(PODS, event("ADDED", pod("b", 1, node="n1")))
    pod_store.apply(PODS, event("ADDED", pod("a", 2, node="n1")))
    assert [value.metadata.name for value in pod_store.by_index(PODS, "node", "n1")] == ["a", "b"]
    pod_store.apply(PODS, event("MODIFIED", pod("a", 3, node="n2")))
    pod_store.apply(PODS, event("DELETED", pod("b", 4, node="n1")))
    assert pod_store.by_index(PODS, "node", "n1") == []
    assert [value.metadata.name for value in pod_store.by_index(PODS, "node", "n2")] == ["a"]


def test_a_view_does_not_change_after_it_was_taken() -> None:
    pod_store = store()
    pod_store.apply(PODS, event("ADDED", pod("a", 1)))
    before = pod_store.view()
    pod_store.apply(PODS, event("ADDED", pod("b", 2)))
    assert list(before.of(PODS, Pod)) == ["ns/a"]
    assert pod_store.view().generation > before.generation
    assert names(pod_store) == ["a", "b"]


def test_an_assumed_object_older_than_the_last_watch_event_is_dropped() -> None:
    pod_store = store()
    pod_store.assume(PODS, pod("a", 10))
    assert names(pod_store) == ["a"]
    pod_store.apply(PODS, event("DELETED", pod("a", 12)))
    pod_store.assume(
        PODS, pod("a", 10)
    )  # the answer to our create arrives after its deletion was seen
    assert names(pod_store) == []


def test_a_list_removes_what_it_lacks_except_what_was_assumed_later() -> None:
    pod_store = store()
    notified: list[tuple[EventType, Any]] = []
    pod_store.apply(PODS, event("ADDED", pod("old", 1)))
    pod_store.assume(PODS, pod("fresh", 9))
    pod_store.subscribe(lambda _, kind, value: notified.append((kind, value.metadata.name)))
    pod_store.replace(PODS, Listing(items=(pod("kept", 3),), resource_version="8"))
    assert names(pod_store) == ["fresh", "kept"]
    assert notified == [(EventType.MODIFIED, "kept"), (EventType.DELETED, "old")]
    assert pod_store.is_synced()


def test_a_list_older_than_what_was_seen_replaces_everything() -> None:
    pod_store = store()
    pod_store.apply(PODS, event("ADDED", pod("kept", 3, node="n1")))
    pod_store.apply(PODS, event("MODIFIED", pod("kept", 9, node="n2")))
    pod_store.apply(PODS, event("ADDED", pod("lost", 10)))
    pod_store.replace(PODS, Listing(items=(pod("kept", 3, node="n1"),), resource_version="7"))
    assert names(pod_store) == ["kept"]
    assert pod_store.by_index(PODS, "node", "n1")[0].metadata.resource_version == "3"
    pod_store.apply(PODS, event("MODIFIED", pod("kept", 8, node="n3")))
    assert pod_store.get(PODS, "ns/kept").spec.node_name == "n3"


def test_an_object_listed_at_an_older_version_replaces_the_newer_one() -> None:
    pod_store = store()
    notified: list[str] = []
    pod_store.apply(PODS, event("ADDED", pod("kept", 9, node="n2")))
    pod_store.subscribe(lambda _, __, value: notified.append(value.metadata.resource_version))
    pod_store.replace(PODS, Listing(items=(pod("kept", 3, node="n1"),), resource_version="10003"))
    assert pod_store.by_index(PODS, "node", "n1")[0].metadata.resource_version == "3"
    assert notified == ["3"]


def test_late_deletion_of_a_namesake_is_ignored() -> None:
    pod_store = store()
    pod_store.assume(PODS, pod("a", 20, uid="second"))
    pod_store.apply(PODS, event("DELETED", pod("a", 15, uid="first")))
    assert pod_store.get(PODS, "ns/a").metadata.uid == "second"


def test_the_next_event_replaces_an_amended_object() -> None:
    pod_store = store()
    pod_store.apply(PODS, event("ADDED", pod("a", 5)))
    pod_store.amend(PODS, pod("a", 5, node="guess"))
    assert pod_store.get(PODS, "ns/a").spec.node_name == "guess"
    pod_store.amend(PODS, pod("a", 4, node="late"))
    assert pod_store.get(PODS, "ns/a").spec.node_name == "guess"
    pod_store.apply(PODS, event("MODIFIED", pod("a", 6, node="truth")))
    assert pod_store.get(PODS, "ns/a").spec.node_name == "truth"

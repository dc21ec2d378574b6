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
    made = Store([PODS])
    made.add_index(PODS, "node", lambda value: [value.spec.node_name])
    return made


def names(made: Store) -> list[str]:
    return sorted(value.metadata.name for value in made.view().of(PODS, Pod).values())


def test_older_events_and_duplicates_change_nothing() -> None:
    made = store()
    made.apply(PODS, event("ADDED", pod("a", 5, node="n1")))
    generation = made.generation
    made.apply(PODS, event("MODIFIED", pod("a", 4, node="n0")))
    made.apply(PODS, event("ADDED", pod("a", 5, node="n1")))
    assert made.generation == generation
    assert made.get(PODS, "ns/a").spec.node_name == "n1"


def test_index_follows_changes_and_deletions() -> None:
    made = store()
    made.apply(PODS, event("ADDED", pod("b", 1, node="n1")))
    made.apply(PODS, event("ADDED", pod("a", 2, node="n1")))
    assert [value.metadata.name for value in made.by_index(PODS, "node", "n1")] == ["a", "b"]
    made.apply(PODS, event("MODIFIED", pod("a", 3, node="n2")))
    made.apply(PODS, event("DELETED", pod("b", 4, node="n1")))
    assert made.by_index(PODS, "node", "n1") == []
    assert [value.metadata.name for value in made.by_index(PODS, "node", "n2")] == ["a"]


def test_a_view_does_not_change_after_it_was_taken() -> None:
    made = store()
    made.apply(PODS, event("ADDED", pod("a", 1)))
    before = made.view()
    made.apply(PODS, event("ADDED", pod("b", 2)))
    assert list(before.of(PODS, Pod)) == ["ns/a"]
    assert made.view().generation > before.generation
    assert names(made) == ["a", "b"]


def test_an_assumed_object_older_than_the_last_watch_event_is_dropped() -> None:
    made = store()
    made.assume(PODS, pod("a", 10))
    assert names(made) == ["a"]
    made.apply(PODS, event("DELETED", pod("a", 12)))
    made.assume(PODS, pod("a", 10))  # the answer to our create arrives after its deletion was seen
    assert names(made) == []


def test_a_list_removes_what_it_lacks_except_what_was_assumed_later() -> None:
    made = store()
    told: list[tuple[EventType, Any]] = []
    made.apply(PODS, event("ADDED", pod("old", 1)))
    made.assume(PODS, pod("fresh", 9))
    made.subscribe(lambda _, kind, value: told.append((kind, value.metadata.name)))
    made.replace(PODS, Listing(items=(pod("kept", 3),), resource_version="8"))
    assert names(made) == ["fresh", "kept"]
    assert told == [(EventType.MODIFIED, "kept"), (EventType.DELETED, "old")]
    assert made.is_synced()


def test_a_list_older_than_what_was_seen_replaces_everything() -> None:
    made = store()
    made.apply(PODS, event("ADDED", pod("kept", 3, node="n1")))
    made.apply(PODS, event("MODIFIED", pod("kept", 9, node="n2")))
    made.apply(PODS, event("ADDED", pod("lost", 10)))
    made.replace(PODS, Listing(items=(pod("kept", 3, node="n1"),), resource_version="7"))
    assert names(made) == ["kept"]
    assert made.by_index(PODS, "node", "n1")[0].metadata.resource_version == "3"
    made.apply(PODS, event("MODIFIED", pod("kept", 8, node="n3")))
    assert made.get(PODS, "ns/kept").spec.node_name == "n3"


def test_an_object_listed_at_an_older_version_replaces_the_newer_one() -> None:
    made = store()
    told: list[str] = []
    made.apply(PODS, event("ADDED", pod("kept", 9, node="n2")))
    made.subscribe(lambda _, __, value: told.append(value.metadata.resource_version))
    made.replace(PODS, Listing(items=(pod("kept", 3, node="n1"),), resource_version="10003"))
    assert made.by_index(PODS, "node", "n1")[0].metadata.resource_version == "3"
    assert told == ["3"]


def test_late_deletion_of_a_namesake_is_ignored() -> None:
    made = store()
    made.assume(PODS, pod("a", 20, uid="second"))
    made.apply(PODS, event("DELETED", pod("a", 15, uid="first")))
    assert made.get(PODS, "ns/a").metadata.uid == "second"


def test_the_next_event_replaces_an_amended_object() -> None:
    made = store()
    made.apply(PODS, event("ADDED", pod("a", 5)))
    made.amend(PODS, pod("a", 5, node="guess"))
    assert made.get(PODS, "ns/a").spec.node_name == "guess"
    made.amend(PODS, pod("a", 4, node="late"))
    assert made.get(PODS, "ns/a").spec.node_name == "guess"
    made.apply(PODS, event("MODIFIED", pod("a", 6, node="truth")))
    assert made.get(PODS, "ns/a").spec.node_name == "truth"

"""A reflector lists, watches, resumes, and lists again only when it must."""

from __future__ import annotations

from threading import Event

import pytest

from kube.errors import (
    ForbiddenError,
    GoneError,
    KubeError,
    NotFoundError,
    ServerError,
    TooManyRequestsError,
    UnauthorizedError,
)
from kube.objects.cluster import ConfigMap
from kube.process.backoff import Backoff
from kube.resources import CONFIGMAPS, TOPOLOGIES
from kube.store import Store
from kube.watch import ABSENT_KIND_PAUSE_S, Reflector
from tests.fakes.gateway import FakeGateway


def body(name: str) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": "ns"}}


def reflector(gateway: FakeGateway, store: Store) -> Reflector[ConfigMap]:
    backoff = Backoff(first_s=1.0, max_s=4.0, spread=lambda: 1.0)
    return Reflector(gateway, CONFIGMAPS, ConfigMap, store, backoff=backoff)


def names(store: Store) -> list[str]:
    return [key.split("/")[1] for key in sorted(store.view().of(CONFIGMAPS, ConfigMap))]


def test_a_stream_that_ended_is_resumed_without_a_new_list() -> None:
    gateway, store = FakeGateway(), Store()
    gateway.seed(CONFIGMAPS, body("a"))
    follower = reflector(gateway, store)
    assert follower.pass_once(Event()) == 0.0
    gateway.seed(CONFIGMAPS, body("b"))
    gateway.delete(CONFIGMAPS, "a", namespace="ns")
    gateway.fail_next("list", "configmaps", AssertionError("no second list"))  # type: ignore[arg-type]
    assert follower.pass_once(Event()) == 0.0
    assert names(store) == ["b"]
    assert follower.resource_version == "103"


def test_gone_lists_again_and_finds_deletions() -> None:
    gateway, store = FakeGateway(), Store()
    gateway.seed(CONFIGMAPS, body("a"), body("b"))
    follower = reflector(gateway, store)
    follower.pass_once(Event())
    gateway.delete(CONFIGMAPS, "a", namespace="ns")
    gateway.compacted_before = 103
    assert follower.pass_once(Event()) == 1.0
    assert follower.pass_once(Event()) == 0.0
    assert names(store) == ["b"]


def test_pauses_grow_and_start_over_after_success() -> None:
    gateway, store = FakeGateway(), Store()
    follower = reflector(gateway, store)
    for _ in range(4):
        gateway.fail_next("list", "configmaps", ServerError("down"))
    assert [follower.pass_once(Event()) for _ in range(4)] == [1.0, 2.0, 4.0, 4.0]
    assert follower.pass_once(Event()) == 0.0
    gateway.fail_next("watch", "configmaps", ServerError("down"))
    assert follower.pass_once(Event()) == 1.0


def test_broken_stream_lists_again() -> None:
    gateway, store = FakeGateway(), Store()
    gateway.seed(CONFIGMAPS, body("a"))
    follower = reflector(gateway, store)
    follower.pass_once(Event())
    gateway.fail_next("watch", "configmaps", ServerError("reset"))
    follower.pass_once(Event())
    assert follower.resource_version == ""
    gateway.seed(CONFIGMAPS, body("b"))
    follower.pass_once(Event())
    assert names(store) == ["a", "b"]


def test_optional_kind_that_is_not_served_counts_as_empty() -> None:
    gateway, store = FakeGateway(), Store([TOPOLOGIES])
    gateway.fail_next("list", "topologies", NotFoundError("no such kind"))
    follower = Reflector(gateway, TOPOLOGIES, ConfigMap, store, is_optional=True)
    assert follower.pass_once(Event()) == ABSENT_KIND_PAUSE_S
    assert store.is_synced()
    assert store.view().absent == {TOPOLOGIES}
    assert follower.pass_once(Event()) == 0.0
    assert store.view().absent == frozenset()


def test_an_optional_kind_counts_as_empty_after_several_refusals() -> None:
    gateway, store = FakeGateway(), Store([TOPOLOGIES])
    backoff = Backoff(first_s=1.0, max_s=4.0, spread=lambda: 1.0)
    follower = Reflector(gateway, TOPOLOGIES, ConfigMap, store, is_optional=True, backoff=backoff)
    pauses = []
    for _ in range(4):
        assert not store.is_synced()
        gateway.fail_next("list", "topologies", ForbiddenError("not you"))
        pauses.append(follower.pass_once(Event()))
    assert pauses == [1.0, 2.0, 4.0, ABSENT_KIND_PAUSE_S]
    assert store.is_synced()


def test_a_refusal_does_not_empty_a_kind_that_was_listed_before() -> None:
    gateway, store = FakeGateway(), Store([TOPOLOGIES])
    gateway.seed(TOPOLOGIES, {"metadata": {"name": "racks"}})
    follower = Reflector(gateway, TOPOLOGIES, ConfigMap, store, is_optional=True)
    assert follower.pass_once(Event()) == 0.0
    for _ in range(8):
        follower.resource_version = ""
        gateway.fail_next("list", "topologies", ForbiddenError("not yet"))
        assert 0.0 < follower.pass_once(Event()) < ABSENT_KIND_PAUSE_S
        assert list(store.view().of(TOPOLOGIES, ConfigMap)) == ["racks"]


def test_a_429_is_retried_after_the_time_that_the_server_names() -> None:
    gateway, store = FakeGateway(), Store()
    follower = reflector(gateway, store)
    for error in (ServerError("away"), ServerError("away"), ServerError("away")):
        gateway.fail_next("list", "configmaps", error)
        follower.pass_once(Event())
    gateway.fail_next("list", "configmaps", TooManyRequestsError("starting", retry_after_s=1.0))
    assert follower.pass_once(Event()) == 1.5
    assert follower.pass_once(Event()) == 0.0


def test_a_401_ends_the_loop_and_calls_on_fatal() -> None:
    gateway, store = FakeGateway(), Store()
    gateway.fail_next("list", "configmaps", UnauthorizedError("401"))
    heard: list[KubeError] = []
    reflector(gateway, store).run(Event(), on_fatal=heard.append)
    assert [str(error) for error in heard] == ["401"]


def test_a_watch_from_a_version_before_the_history_is_gone() -> None:
    gateway = FakeGateway(compacted_before=200)
    with pytest.raises(GoneError):
        next(gateway.watch(CONFIGMAPS, as_type=ConfigMap, resource_version="150"))

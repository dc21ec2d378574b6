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
    UnauthorizedError,
)
from kube.objects.cluster import ConfigMap
from kube.resources import CONFIGMAPS, TOPOLOGIES
from kube.store import Store
from kube.watch import ABSENT_KIND_PAUSE_S, Backoff, Reflector
from tests.fakes.gateway import FakeGateway


def body(name: str) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": "ns"}}


def reflector(gateway: FakeGateway, store: Store) -> Reflector[ConfigMap]:
    backoff = Backoff(first_s=1.0, most_s=4.0, spread=lambda: 1.0)
    return Reflector(gateway, CONFIGMAPS, ConfigMap, store, backoff=backoff)


def names(store: Store) -> list[str]:
    return [key.split("/")[1] for key in sorted(store.view().of(CONFIGMAPS, ConfigMap))]


def test_resumes_where_it_stopped_without_a_new_list() -> None:
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


def test_pauses_are_spread() -> None:
    assert Backoff(first_s=1.0, spread=lambda: 0.0).pause_s() == 0.5


@pytest.mark.parametrize("refusal", [NotFoundError("no such kind"), ForbiddenError("not you")])
def test_optional_kind_that_cannot_be_read_counts_as_empty(refusal: KubeError) -> None:
    gateway, store = FakeGateway(), Store([TOPOLOGIES])
    gateway.fail_next("list", "topologies", refusal)
    follower = Reflector(gateway, TOPOLOGIES, ConfigMap, store, is_optional=True)
    assert follower.pass_once(Event()) == ABSENT_KIND_PAUSE_S
    assert store.is_synced()
    assert store.view().absent == {TOPOLOGIES}
    assert follower.pass_once(Event()) == 0.0
    assert store.view().absent == frozenset()


def test_refused_credentials_end_the_loop() -> None:
    gateway, store = FakeGateway(), Store()
    gateway.fail_next("list", "configmaps", UnauthorizedError("401"))
    heard: list[KubeError] = []
    reflector(gateway, store).run(Event(), on_fatal=heard.append)
    assert [str(error) for error in heard] == ["401"]


def test_watch_older_than_history_is_gone() -> None:
    gateway = FakeGateway(compacted_before=200)
    with pytest.raises(GoneError):
        next(gateway.watch(CONFIGMAPS, as_type=ConfigMap, resource_version="150"))

"""Edits of the tree at once, as from several web processes: no circle, no orphan, whatever the order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from django.db import connection
from rest_framework.test import APIClient

from kube.objects.cluster import Lease
from kube.resources import LEASES, QUEUES, Resource
from queues.editing import tree_lock
from queues.editing.tree_lock import LEASE, NAMESPACE, lock_of
from queues.errors import BusyError
from queues.models import QuotaChange
from queues.tree.hierarchy import children, problem_of
from queues.tree.shape import shapes_of
from tests.fakes.gateway import FakeGateway
from tests.kaiweb.api.conftest import queue_body

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("sync")]
URL = "/api/v1/queues"
TRIES = 20


class Process:
    """The cluster as one web process sees it; its first look at the tree waits for that of the other."""

    def __init__(self, cluster: FakeGateway, meeting: threading.Barrier) -> None:
        self._cluster = cluster
        self._meeting = meeting

    def list(self, resource: Resource, **options: Any) -> Any:
        listing = self._cluster.list(resource, **options)
        with suppress(threading.BrokenBarrierError):
            self._meeting.wait(timeout=0.03)
        return listing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)


@pytest.fixture
def at_once(cluster: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[int]]:
    """Run requests in threads, each as if in a process of its own; return their status codes."""

    def run(*requests: Callable[[], Any]) -> list[int]:
        meeting = threading.Barrier(len(requests))
        monkeypatch.setattr("kaiweb.api.views.queues.gateway", lambda: Process(cluster, meeting))
        codes = [0] * len(requests)

        def work(place: int, request: Callable[[], Any]) -> None:
            try:
                codes[place] = request().status_code
            finally:
                connection.close()

        threads = [threading.Thread(target=work, args=pair) for pair in enumerate(requests)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return codes

    return run


def problems(cluster: FakeGateway) -> dict[str, str]:
    tree = shapes_of(list(cluster.list(QUEUES, as_type=dict).items))
    return {name: problem_of(tree, name) for name in tree if problem_of(tree, name)}


def move(client: APIClient, name: str, parent: str, tag: str) -> Callable[[], Any]:
    return lambda: client.patch(
        f"{URL}/{name}", {"parent": parent}, format="json", headers={"If-Match": tag}
    )


def test_two_moves_that_would_make_a_circle_never_both_go_through(
    client: APIClient,
    cluster: FakeGateway,
    at_once: Callable[..., list[int]],
    sync: Callable[[], None],
) -> None:
    for _try in range(TRIES):
        for name in ("physics", "product"):
            cluster.patch(QUEUES, name, {"spec": {"parentQueue": None}})
        sync()
        tags = {name: client.get(f"{URL}/{name}")["ETag"] for name in ("physics", "product")}
        codes = at_once(
            move(client, "physics", "product", tags["physics"]),
            move(client, "product", "physics", tags["product"]),
        )
        assert sorted(codes) == [200, 422]
        assert problems(cluster) == {}


def test_a_deletion_and_a_creation_below_never_leave_an_orphan(
    client: APIClient,
    cluster: FakeGateway,
    at_once: Callable[..., list[int]],
    sync: Callable[[], None],
) -> None:
    for _try in range(TRIES):
        cluster.seed(QUEUES, queue_body("doomed"))
        sync()
        tag = client.get(f"{URL}/doomed")["ETag"]
        codes = at_once(
            lambda tag=tag: client.delete(f"{URL}/doomed", headers={"If-Match": tag}),
            lambda: client.post(URL, {"name": "child", "parent": "doomed"}, format="json"),
        )
        assert sorted(codes) in ([201, 422], [204, 422])
        assert problems(cluster) == {}
        for name in ("child", "doomed"):
            if name in cluster.names(QUEUES):
                cluster.delete(QUEUES, name)


def meddle(
    monkeypatch: pytest.MonkeyPatch, verb: str, change: Callable[[FakeGateway], None]
) -> None:
    """Change the tree as with kubectl right before our next write of this kind."""
    real = getattr(FakeGateway, verb)

    def change_then_call(self: FakeGateway, resource: Resource, *args: Any, **options: Any) -> Any:
        if resource == QUEUES:
            monkeypatch.setattr(FakeGateway, verb, real)
            change(self)
        return real(self, resource, *args, **options)

    monkeypatch.setattr(FakeGateway, verb, change_then_call)


def tag_of(client: APIClient, name: str) -> str:
    return str(client.get(f"{URL}/{name}")["ETag"])


def test_a_move_that_kubectl_turned_into_a_circle_is_taken_back(
    client: APIClient, cluster: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    tag = tag_of(client, "physics")
    meddle(
        monkeypatch, "patch",
        lambda fake: fake.patch(QUEUES, "product", {"spec": {"parentQueue": "physics"}}),
    )  # fmt: skip
    edit = {"parent": "product", "priority": 9}
    response = client.patch(f"{URL}/physics", edit, format="json", headers={"If-Match": tag})
    assert (response.status_code, response.json()["errors"][0]["code"]) == (422, "tree-changed")
    spec = cluster.raw(QUEUES, "physics")["spec"]
    assert (spec["parentQueue"], "priority" in spec) == ("science", False)
    assert problems(cluster) == {}
    assert not QuotaChange.objects.exists()


def test_a_creation_below_a_queue_that_kubectl_deleted_is_taken_back(
    client: APIClient, cluster: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    meddle(monkeypatch, "create", lambda fake: fake.delete(QUEUES, "product"))
    response = client.post(URL, {"name": "new", "parent": "product"}, format="json")
    assert response.status_code == 422
    assert "new" not in cluster.names(QUEUES)


def test_a_deleted_queue_that_got_a_child_from_kubectl_is_made_again(
    client: APIClient, cluster: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    tag = tag_of(client, "product")
    spec = cluster.raw(QUEUES, "product")["spec"]
    meddle(monkeypatch, "delete", lambda fake: fake.create(QUEUES, queue_body("late", "product")))
    response = client.delete(f"{URL}/product", headers={"If-Match": tag})
    assert (response.status_code, response.json()["errors"][0]["code"]) == (422, "has-children")
    assert cluster.raw(QUEUES, "product")["spec"] == spec
    tree = shapes_of(list(cluster.list(QUEUES, as_type=dict).items))
    assert (children(tree, "product"), problems(cluster)) == (["late"], {})


def test_an_edit_within_a_queue_takes_no_lock(client: APIClient, cluster: FakeGateway) -> None:
    response = client.patch(
        f"{URL}/physics", {"priority": 9}, format="json",
        headers={"If-Match": tag_of(client, "physics")},
    )  # fmt: skip
    assert response.status_code == 200
    assert cluster.names(LEASES) == []


def test_the_lock_is_given_back_and_a_holder_elsewhere_means_try_again(
    client: APIClient, cluster: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client.post(URL, {"name": "one", "parent": "product"}, format="json").status_code == 201
    lease = cluster.get(LEASES, LEASE, as_type=Lease, namespace=NAMESPACE)
    assert lease.spec.holder_identity == ""
    spec = {"holderIdentity": "another", "leaseDurationSeconds": 10}
    cluster.patch(LEASES, LEASE, {"spec": spec}, namespace=NAMESPACE)
    monkeypatch.setattr(tree_lock, "WAIT_S", 0.05)
    refused = client.post(URL, {"name": "two", "parent": "product"}, format="json")
    assert (refused.status_code, refused.json()["type"].endswith("/unavailable")) == (503, True)
    assert "two" not in cluster.names(QUEUES)


def test_the_lock_of_a_dead_holder_runs_out(
    cluster: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease_terms = tree_lock.LeaseTerms(duration_s=0.2, renew_deadline_s=0.2, retry_s=0.01)
    body = {
        "metadata": {"name": LEASE},
        "spec": {"holderIdentity": "dead", "leaseDurationSeconds": 1},
    }
    cluster.create(LEASES, body, namespace=NAMESPACE)
    lock = lock_of(cluster)
    monkeypatch.setattr(tree_lock, "WAIT_S", 0.05)
    with pytest.raises(BusyError, match="was not free within"), lock.held():
        pass
    lock.elector._observed_at -= lease_terms.duration_s + 1.0
    with lock.held():
        lease = cluster.get(LEASES, LEASE, as_type=Lease, namespace=NAMESPACE)
        assert lease.spec.holder_identity == lock.elector.identity

"""Two concurrent edits, each valid by the stored tree, that together make a circle: the webhook refuses one."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from kube.resources import QUEUES
from queues.admission.objects.pending_places import CACHE_S, PendingPlaces
from queues.admission.routes import VALIDATE_QUEUE, ListedTree, Routes
from queues.tree.hierarchy import problem_of
from queues.tree.shape import read_queue, shapes_of
from tests.fakes.gateway import FakeGateway
from tests.kaiweb.api.conftest import queue_body


@pytest.fixture
def cluster() -> FakeGateway:
    fake = FakeGateway()
    fake.seed(QUEUES, *(queue_body(name) for name in ("a", "b", "c")))
    return fake


def routes_of(cluster: FakeGateway) -> Routes:
    return Routes(tree=ListedTree(cluster))


def refusal(
    routes: Routes, old: dict[str, Any] | None, new: dict[str, Any], *, dry_run: bool = False
) -> str:
    """Return the message with which the webhook refuses a write, empty when it is allowed."""
    operation = "UPDATE" if old else "CREATE"
    request = {
        "uid": "u", "operation": operation, "object": new, "oldObject": old, "dryRun": dry_run,
    }  # fmt: skip
    raw = routes.answer(VALIDATE_QUEUE, json.dumps({"request": request}).encode())
    assert raw is not None
    response = json.loads(raw)["response"]
    message = str(response.get("status", {}).get("message", ""))
    assert response["allowed"] is (not message)
    return message


def moved(cluster: FakeGateway, name: str, parent: str) -> tuple[dict[str, Any], dict[str, Any]]:
    old = cluster.raw(QUEUES, name)
    return old, {**old, "spec": {**old["spec"], "parentQueue": parent}}


def store(cluster: FakeGateway, name: str, parent: str | None) -> None:
    cluster.patch(QUEUES, name, {"spec": {"parentQueue": parent}})


def test_of_two_moves_at_once_that_make_a_circle_one_is_refused(cluster: FakeGateway) -> None:
    routes = routes_of(cluster)
    assert refusal(routes, *moved(cluster, "a", "b")) == ""
    assert refusal(routes, *moved(cluster, "b", "a")) == (
        "queue 'b' cannot be below 'a': another edit is putting 'a' below 'b', "
        "and 'b' would be among its own ancestors"
    )


def test_three_moves_at_once_make_no_circle_either(cluster: FakeGateway) -> None:
    routes = routes_of(cluster)
    assert refusal(routes, *moved(cluster, "a", "b")) == ""
    assert refusal(routes, *moved(cluster, "b", "c")) == ""
    assert refusal(routes, *moved(cluster, "c", "a")) == (
        "queue 'c' cannot be below 'a': another edit is putting 'a' below 'b' below 'c', "
        "and 'c' would be among its own ancestors"
    )


def test_a_creation_that_closes_a_circle_with_a_move_under_way_is_refused(
    cluster: FakeGateway,
) -> None:
    routes = routes_of(cluster)
    assert refusal(routes, *moved(cluster, "a", "new")) == ""
    assert refusal(routes, None, queue_body("new", "a")) == (
        "queue 'new' cannot be below 'a': another edit is putting 'a' below 'new', "
        "and 'new' would be among its own ancestors"
    )


def test_a_move_that_was_stored_and_undone_blocks_no_later_move(cluster: FakeGateway) -> None:
    routes = routes_of(cluster)
    assert refusal(routes, *moved(cluster, "a", "b")) == ""
    store(cluster, "a", "b")
    store(cluster, "a", None)
    assert refusal(routes, *moved(cluster, "b", "a")) == ""


def test_a_move_that_lost_against_another_write_blocks_no_later_move(cluster: FakeGateway) -> None:
    routes = routes_of(cluster)
    assert refusal(routes, *moved(cluster, "a", "b")) == ""
    cluster.patch(QUEUES, "a", {"metadata": {"labels": {"x": "y"}}})
    assert refusal(routes, *moved(cluster, "b", "a")) == ""


def test_a_dry_run_blocks_no_later_move(cluster: FakeGateway) -> None:
    routes = routes_of(cluster)
    assert refusal(routes, *moved(cluster, "a", "b"), dry_run=True) == ""
    assert refusal(routes, *moved(cluster, "b", "a")) == ""


def test_a_move_without_a_watch_event_is_forgotten() -> None:
    now = 0.0
    places = PendingPlaces(clock=lambda: now)
    tree = shapes_of([{**queue_body(name)} for name in ("a", "b")])
    places.add("new", "b", "")
    assert places.circle(tree, "b", "new") == ["new", "b"]
    now = CACHE_S
    assert places.circle(tree, "b", "new") == []


def test_threads_that_ask_at_once_make_no_circle(cluster: FakeGateway) -> None:
    for _try in range(20):
        for name in ("a", "b"):
            store(cluster, name, None)
        routes, start = routes_of(cluster), threading.Barrier(2)

        def write(
            name: str, parent: str, routes: Routes = routes, start: threading.Barrier = start
        ) -> None:
            old, new = moved(cluster, name, parent)
            start.wait()
            if not refusal(routes, old, new):
                store(cluster, name, parent)

        threads = [threading.Thread(target=write, args=pair) for pair in (("a", "b"), ("b", "a"))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        tree = ListedTree(cluster)()
        assert [problem_of(tree, name) for name in ("a", "b")] == ["", ""]


def test_the_tree_follows_edits_and_reads_only_what_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = FakeGateway()
    cluster.seed(QUEUES, *({"metadata": {"name": name}, "spec": {}} for name in ("a", "b", "c")))
    read: list[str] = []

    def counted(body: Any) -> Any:
        read.append(body["metadata"]["name"])
        return read_queue(body)

    monkeypatch.setattr("queues.admission.routes.read_queue", counted)
    tree = ListedTree(cluster)
    assert (set(tree()), read) == ({"a", "b", "c"}, ["a", "b", "c"])
    cluster.patch(QUEUES, "b", {"spec": {"parentQueue": "a"}})
    cluster.delete(QUEUES, "c")
    assert {name: shape.parent for name, shape in tree().items()} == {"a": "", "b": "a"}
    assert read == ["a", "b", "c", "b"]

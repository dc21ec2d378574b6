"""The webhook's tree follows a watch; ancestors are read anew, and edits just allowed count as stored."""

from __future__ import annotations

import json
from threading import Event
from typing import Any

import pytest

from kube.resources import QUEUES
from kube.watch import Reflector
from queues.admission.objects.watched_tree import ASSUMED_S, WatchedTree
from queues.admission.routes import VALIDATE_QUEUE, Routes
from tests.fakes.gateway import FakeGateway
from tests.kaiweb.api.conftest import queue_body


class Webhook:
    """The webhook of a cluster whose watch a test moves on by hand."""

    def __init__(self) -> None:
        self.now = 0.0
        self.cluster = FakeGateway()
        self.cluster.seed(QUEUES, queue_body("root", quota=8))
        self.tree = WatchedTree(self.cluster, clock=lambda: self.now)
        self.reflector: Reflector[Any] = Reflector(self.cluster, QUEUES, dict, self.tree)
        self.routes = Routes(
            tree=self.tree, with_ancestors=self.tree.with_ancestors, remember=self.tree.assume
        )

    def follow(self) -> None:
        self.reflector.pass_once(Event())

    def review(self, new: dict[str, Any], old: dict[str, Any] | None = None) -> dict[str, Any]:
        request = {
            "uid": "u", "operation": "UPDATE" if old else "CREATE", "object": new, "oldObject": old,
        }  # fmt: skip
        raw = self.routes.answer(VALIDATE_QUEUE, json.dumps({"request": request}).encode())
        assert raw is not None
        response: dict[str, Any] = json.loads(raw)["response"]
        return response

    def warnings(self, new: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
        response = self.review(new, old)
        assert response["allowed"]
        return list(response.get("warnings", []))


@pytest.fixture
def webhook() -> Webhook:
    webhook = Webhook()
    webhook.follow()
    return webhook


def team(name: str, parent: str = "root", quota: float = 0) -> dict[str, Any]:
    return queue_body(name, parent=parent, quota=quota)


def test_the_tree_is_listed_until_the_watch_has_begun() -> None:
    webhook = Webhook()
    assert set(webhook.tree()) == {"root"}
    webhook.cluster.create(QUEUES, team("a"))
    assert set(webhook.tree()) == {"root", "a"}
    webhook.follow()
    webhook.cluster.create(QUEUES, team("b"))
    assert set(webhook.tree()) == {"root", "a"}
    webhook.follow()
    webhook.cluster.delete(QUEUES, "a")
    assert set(webhook.tree()) == {"root", "a", "b"}
    webhook.follow()
    assert set(webhook.tree()) == {"root", "b"}


def test_a_parent_that_the_watch_has_not_shown_is_not_missing(webhook: Webhook) -> None:
    webhook.cluster.create(QUEUES, team("dept"))
    assert webhook.warnings(team("leaf", "dept")) == []
    webhook.cluster.delete(QUEUES, "dept")
    assert webhook.warnings(team("leaf", "dept")) == ["parent queue 'dept' does not exist"]


def test_a_circle_is_refused_though_the_watch_has_not_shown_its_other_half(
    webhook: Webhook,
) -> None:
    for name in ("a", "b"):
        webhook.cluster.create(QUEUES, team(name))
    webhook.follow()
    old = webhook.cluster.raw(QUEUES, "b")
    # Another replica of the webhook allowed this move.
    webhook.cluster.patch(QUEUES, "a", {"spec": {"parentQueue": "b"}})
    response = webhook.review({**old, "spec": {**old["spec"], "parentQueue": "a"}}, old)
    assert not response["allowed"]
    assert response["status"]["message"] == (
        "queue 'b' cannot be below 'a': 'b' would be among its own ancestors"
    )


def test_a_sibling_just_allowed_counts_until_the_watch_should_have_shown_it(
    webhook: Webhook,
) -> None:
    assert webhook.warnings(team("a", quota=5)) == []
    (warning,) = webhook.warnings(team("b", quota=5))
    assert "total children gpu quota (10) exceeds parent queue root" in warning
    webhook.now = ASSUMED_S
    assert webhook.warnings(team("c", quota=5)) == []


def test_an_edit_just_allowed_counts_until_the_watch_shows_another_version(
    webhook: Webhook,
) -> None:
    webhook.cluster.create(QUEUES, team("a", quota=5))
    webhook.follow()
    old = webhook.cluster.raw(QUEUES, "a")
    assert webhook.warnings({**old, "spec": team("a", quota=2)["spec"]}, old) == []
    assert webhook.tree()["a"].quota["gpu"] == 2
    webhook.cluster.patch(QUEUES, "a", {"metadata": {"labels": {"x": "y"}}})
    webhook.follow()
    assert webhook.tree()["a"].quota["gpu"] == 5


def test_a_review_of_an_amount_reads_nothing_of_the_cluster(
    webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = webhook.cluster.raw(QUEUES, "root")

    def fail(*_args: object, **_options: object) -> None:
        raise AssertionError("the cluster was read")

    monkeypatch.setattr(FakeGateway, "get", fail)
    monkeypatch.setattr(FakeGateway, "list", fail)
    assert webhook.warnings({**old, "spec": queue_body("root", quota=9)["spec"]}, old) == []

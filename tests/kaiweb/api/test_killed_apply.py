"""A process that is killed half-way through an apply of 50 queues: everything is rolled back, and the audit log says so."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from kaiweb.models import ChangeSet
from kaiweb.planning import change_sets
from kube.resources import QUEUES
from tests.fakes.gateway import FakeGateway
from tests.kaiweb.api.conftest import queue_body

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sync")]
COUNT, HALF = 50, 25
NEW = [f"new-{number:02}" for number in range(COUNT // 2)]
OLD = [f"old-{number:02}" for number in range(COUNT // 2)]


class KilledError(BaseException):
    """Nothing catches it, as nothing is left to run after SIGKILL."""


@pytest.fixture
def filled(cluster: FakeGateway, sync: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """25 queues below product, which are edited; 25 more are created."""
    cluster.seed(QUEUES, *(queue_body(name, "product", quota=0) for name in OLD))
    sync()
    for module in ("changes", "queue_trees"):
        monkeypatch.setattr(f"kaiweb.api.views.{module}.gateway", lambda: cluster)


def by_change_set(client: APIClient) -> None:
    create = [{"name": name, "action": "create", "edit": {"parent": "product"}} for name in NEW]
    edit = [{"name": name, "edit": {"priority": 7}} for name in OLD]
    change = client.post("/api/v1/changes", {"edits": [*create, *edit]}, format="json").json()
    client.post(f"/api/v1/changes/{change['id']}:apply", {}, format="json")


def by_tree(client: APIClient) -> None:
    children = [{"name": name} for name in NEW] + [{"name": name, "priority": 7} for name in OLD]
    tree = {"name": "product", "children": children}
    client.put("/api/v1/queue-trees/product", tree, format="json")


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("apply", [by_change_set, by_tree])
@pytest.mark.parametrize("is_written", [False, True], ids=["before the write", "after the write"])
def test_a_killed_apply_is_rolled_back_as_a_whole(
    client: APIClient,
    cluster: FakeGateway,
    monkeypatch: pytest.MonkeyPatch,
    apply: Callable[[APIClient], None],
    *,
    is_written: bool,
) -> None:
    before = {name: cluster.raw(QUEUES, name)["spec"] for name in cluster.names(QUEUES)}
    write, written_names = change_sets._write, []

    def killed_half_way(*arguments: Any) -> None:
        if len(written_names) == HALF and not is_written:
            raise KilledError
        write(*arguments)
        written_names.append(arguments[2].name)
        if len(written_names) > HALF:
            raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(change_sets, "_write", killed_half_way)
        with pytest.raises(KilledError):
            apply(client)
    assert {name: cluster.raw(QUEUES, name)["spec"] for name in cluster.names(QUEUES)} != before

    change_sets.settle(cluster, timezone.now() + timedelta(minutes=2))

    assert {name: cluster.raw(QUEUES, name)["spec"] for name in cluster.names(QUEUES)} == before
    change = client.get(f"/api/v1/changes/{ChangeSet.objects.get().pk}").json()
    cause = "the process that applied it ended half-way"
    assert (change["state"], change["error"]) == ("rolledBack", cause)
    states = [step["state"] for step in change["steps"]]
    assert (states.count("undone"), states.count("pending")) == (
        len(written_names),
        COUNT - HALF - 1,
    )
    for name in written_names:
        reasons = [
            row["reason"] for row in client.get(f"/api/v1/audit?queue={name}").json()["items"]
        ]
        assert len(reasons) == 2
        assert reasons[0] == f"change set {change['id']}: rolled back, because {cause}"

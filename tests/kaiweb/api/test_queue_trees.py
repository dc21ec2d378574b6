"""Queue trees: read, applied as a whole, pruned, tried without writing, and drained where a limit falls below use."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from kaiweb.api.schema.queue_trees import QueueTree
from kaiweb.api.schema.queues import QueueCreate
from kaiweb.models import ChangeSet
from kaiweb.planning import simulations
from kube.errors import ForbiddenError
from kube.resources import PODGROUPS, PODS, QUEUES
from queues.mirror.feed import Mirror
from queues.mirror.kinds import KINDS
from queues.mirror.writer import Writer
from queues.models import PodGroup, QuotaChange
from tests.fakes.gateway import FakeGateway
from tests.kaiweb.api.conftest import NOON, queue_body
from tests.queues.cluster_objects import a_group, a_pod, listed

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sync", "reach")]
URL = "/api/v1/queue-trees/science"
WANTED = {
    "name": "science",
    "children": [
        {"name": "physics", "quota": {"gpu": 8}, "children": [
            {"name": "lasers", "quota": {"gpu": 2}, "limit": {"gpu": 16}}]},
        {"name": "chem", "quota": {"gpu": 4}},
    ],
}  # fmt: skip


@pytest.fixture
def reach(cluster: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the views reach the fake cluster, and simulations run at once."""
    for name in ("changes", "queue_trees"):
        monkeypatch.setattr(f"kaiweb.api.views.{name}.gateway", lambda: cluster)
    monkeypatch.setattr(simulations, "send", lambda pk: simulations.run(pk, cluster, timezone.now))


def put(client: APIClient, tree: Any = WANTED, query: str = "", **headers: str) -> Any:
    return client.put(URL + query, tree, format="json", headers=headers)


def gpu(cluster: FakeGateway, name: str) -> dict[str, Any]:
    bounds: dict[str, Any] = cluster.raw(QUEUES, name)["spec"]["resources"]["gpu"]
    return bounds


def test_what_is_read_changes_nothing_when_it_is_applied(client: APIClient) -> None:
    read = client.get(URL)
    tree = read.json()
    assert [child["name"] for child in tree["children"]] == ["biology", "physics"]
    assert tree["children"][1]["quota"]["gpu"] == 12
    answer = put(client, tree, "?prune=true", **{"If-Match": read["ETag"]})
    assert (answer.status_code, answer.json()["changed"], answer.json()["plan"]) == (200, False, [])
    assert not ChangeSet.objects.exists()


def test_a_tree_holds_all_fields_of_a_queue_that_can_be_edited() -> None:
    editable = QueueCreate().fields.keys() - {"parent"}
    assert {"userFairness", "gpuModels"} <= editable
    assert QueueTree().fields.keys() == editable | {"children"}


def test_options_of_a_queue_are_written_and_read_as_part_of_a_tree(client: APIClient) -> None:
    options = {"userFairness": True, "gpuModels": {"A100": {"quota": 4, "limit": 8}}}
    tree = {"name": "science", "children": [{"name": "physics", **options}]}
    assert put(client, tree).json()["changed"] is True
    physics = client.get(URL).json()["children"][1]
    assert {key: physics[key] for key in options} == options


def test_an_applied_tree_is_one_change_set_that_can_be_undone(
    client: APIClient, cluster: FakeGateway
) -> None:
    answer = put(client, query="?reason=budget").json()
    assert [(step["queue"], step["action"]) for step in answer["plan"]] == [
        ("lasers", "create"), ("physics", "update"), ("chem", "create"),
    ]  # fmt: skip
    assert (gpu(cluster, "physics")["quota"], gpu(cluster, "chem")["quota"]) == (8, 4)
    assert gpu(cluster, "physics")["limit"] == 16
    assert cluster.raw(QUEUES, "lasers")["spec"]["parentQueue"] == "physics"
    assert "biology" in cluster.names(QUEUES)
    assert put(client).json()["changed"] is False
    reasons = set(QuotaChange.objects.values_list("reason", flat=True))
    assert reasons == {f"change set {answer['change']}: budget"}
    undo = client.post(f"/api/v1/changes/{answer['change']}:revert").json()["id"]
    assert client.post(f"/api/v1/changes/{undo}:apply").status_code == 200
    assert set(cluster.names(QUEUES)) == {"science", "physics", "biology", "product"}


def test_prune_deletes_what_the_document_does_not_name(
    client: APIClient, cluster: FakeGateway
) -> None:
    assert put(client, query="?prune=true").status_code == 200
    assert set(cluster.names(QUEUES)) == {"science", "physics", "lasers", "chem", "product"}


def test_a_dry_run_shows_the_plan_and_the_verdict_and_writes_nothing(
    client: APIClient, cluster: FakeGateway
) -> None:
    answer = put(client, query="?dryRun=true&simulate=true&prune=true").json()
    assert (answer["changed"], answer["dryRun"], answer["change"]) == (True, True, None)
    assert answer["verdict"] in ("safe", "no-effect")
    assert answer["plan"][-1] == {
        "queue": "biology", "action": "delete",
        "diff": [{"pointer": entry["pointer"], "before": entry["before"], "after": None}
                 for entry in answer["plan"][-1]["diff"]],
    }  # fmt: skip
    assert set(cluster.names(QUEUES)) == {"science", "physics", "biology", "product"}
    assert not ChangeSet.objects.exists()


def test_a_queue_named_elsewhere_is_moved(client: APIClient, cluster: FakeGateway) -> None:
    tree = {"name": "science", "children": [{"name": "product"}]}
    assert put(client, tree).status_code == 200
    assert cluster.raw(QUEUES, "product")["spec"]["parentQueue"] == "science"


def test_an_editor_applies_what_is_below_and_nothing_else(
    editor: APIClient, cluster: FakeGateway
) -> None:
    assert put(editor).status_code == 200
    subtree = {"name": "science", "children": [{"name": "product"}]}
    own = {"name": "science", "quota": {"gpu": 99}}
    for tree in (subtree, own):
        assert put(editor, tree, "?dryRun=true").status_code == 403
        assert put(editor, tree).status_code == 403
    assert gpu(cluster, "science")["quota"] == 20


def test_a_refused_step_leaves_the_tree_as_it_was(client: APIClient, cluster: FakeGateway) -> None:
    cluster.refuse("patch", "queues", "physics", ForbiddenError("no"))
    assert put(client).status_code >= 400
    assert set(cluster.names(QUEUES)) == {"science", "physics", "biology", "product"}


def test_a_tree_that_changed_meanwhile_is_not_overwritten(
    client: APIClient, cluster: FakeGateway
) -> None:
    tag = client.get(URL)["ETag"]
    cluster.patch(QUEUES, "biology", {"spec": {"priority": 7}})
    assert put(client, **{"If-Match": tag}).status_code == 412
    assert put(client, **{"If-Match": client.get(URL)["ETag"]}).status_code == 200


@pytest.mark.parametrize(
    ("tree", "query"),
    [
        ([], ""),
        ({}, ""),
        ({"name": "other"}, ""),
        ({"name": "science", "children": {}}, ""),
        ({"name": "science", "children": [1]}, ""),
        ({"name": "science", "parent": "product"}, ""),
        ({"name": "science", "wrong": 1}, ""),
        ({"name": "science", "children": [{"name": "a"}, {"name": "a"}]}, ""),
        ({"name": "science", "children": [{"name": "A\u0000"}]}, ""),
        ({"name": "science", "children": [{"name": f"q{i}"} for i in range(201)]}, ""),
    ],
)
def test_a_document_that_cannot_be_applied_is_refused(
    client: APIClient, cluster: FakeGateway, tree: Any, query: str
) -> None:
    assert put(client, tree, query).status_code == 422
    assert set(cluster.names(QUEUES)) == {"science", "physics", "biology", "product"}


@pytest.mark.parametrize("query", ["?policy=maybe", "?simulate=true", "?prune=perhaps", "?x=1"])
def test_a_wrong_parameter_is_named(client: APIClient, query: str) -> None:
    assert put(client, query=query).status_code == 400


def test_a_deep_document_is_refused(client: APIClient) -> None:
    tree: dict[str, Any] = {"name": "q99"}
    for depth in range(98, 0, -1):
        tree = {"name": f"q{depth}", "children": [tree]}
    assert put(client, {"name": "science", "children": [tree]}).status_code == 422


# ----------------------------------------------------------------------------------- bounds below use


@pytest.fixture
def busy(cluster: FakeGateway, sync: Callable[[], None]) -> FakeGateway:
    """Physics uses 9 GPUs: 3 in a non-preemptible workload, 3 in an old one, 3 in a young one."""
    groups, pods = [], []
    for name in ("fixed", "old", "young"):
        meta = {"name": name, "namespace": "default"}
        cluster.seed(PODGROUPS, {"metadata": meta, "spec": {"queue": "physics"}})
        groups.append(a_group(name, queue="physics"))
        pods.append(a_pod(f"{name}-0", group=name, node="n1", gpus=3))
    cluster.patch(
        QUEUES, "physics", {"status": {"allocated": {"nvidia.com/gpu": "9"}}}, sub="status"
    )
    sync()
    mirror = Mirror(KINDS, Writer(sleep=lambda _s: None), now=lambda: NOON)
    mirror.consume([listed(PODGROUPS, *groups), listed(PODS, *pods)])
    PodGroup.objects.filter(name="fixed").update(preemptibility="non-preemptible")
    PodGroup.objects.filter(name="young").update(started_at=NOON)
    PodGroup.objects.filter(name="old").update(started_at=NOON - timedelta(hours=1))
    return cluster


LOWER = {"name": "science", "children": [{"name": "physics", "limit": {"gpu": 5}}]}


def requeued(cluster: FakeGateway) -> set[str]:
    names = cluster.names(PODGROUPS, "default")
    marks = {name: cluster.raw(PODGROUPS, name, "default")["metadata"] for name in names}
    return {name for name in names if marks[name].get("annotations")}


def test_drain_requeues_preemptible_work_youngest_first_until_the_rest_fits(
    client: APIClient, busy: FakeGateway
) -> None:
    shown = put(client, LOWER, "?policy=drain&dryRun=true").json()
    assert [item["workload"] for item in shown["drains"]] == ["default/young", "default/old"]
    assert requeued(busy) == set()
    answer = put(client, LOWER, "?policy=drain").json()
    assert [(item["workload"], item["error"]) for item in answer["drains"]] == [
        ("default/young", None), ("default/old", None),
    ]  # fmt: skip
    assert requeued(busy) == {"young", "old"}
    entries = QuotaChange.objects.filter(kind="workload", action="requeue")
    assert {entry.target for entry in entries} == {"default/young", "default/old"}


def test_drain_says_what_it_cannot_reach(client: APIClient, busy: FakeGateway) -> None:
    tree = {"name": "science", "children": [{"name": "physics", "limit": {"gpu": 1}}]}
    codes = [item["code"] for item in put(client, tree, "?policy=drain&dryRun=true").json()["warnings"]]  # fmt: skip
    assert "drain-incomplete" in codes


def test_warn_leaves_the_work_and_block_refuses(client: APIClient, busy: FakeGateway) -> None:
    assert put(client, LOWER, "?policy=block").status_code == 422
    answer = put(client, LOWER).json()
    assert "limit-below-allocated" in [item["code"] for item in answer["warnings"]]
    assert (answer["drains"], requeued(busy)) == ([], set())


def test_a_queue_of_a_change_set_may_have_its_own_policy(
    client: APIClient, busy: FakeGateway
) -> None:
    edits = [{"name": "physics", "edit": {"limit": {"gpu": 5}}}]
    body = {"edits": edits, "policy": "block", "policies": {"physics": "drain"}}
    change = client.post("/api/v1/changes", body, format="json").json()
    assert (change["errors"], [item["workload"] for item in change["drains"]]) == (
        [], ["default/young", "default/old"],
    )  # fmt: skip
    applied = client.post(f"/api/v1/changes/{change['id']}:apply").json()
    assert (applied["state"], len(applied["drains"])) == ("applied", 2)
    assert requeued(busy) == {"young", "old"}


def test_draining_needs_the_right_to_requeue(editor: APIClient, busy: FakeGateway) -> None:
    # The token of the editor has the scope queues:write only.
    assert put(editor, LOWER, "?policy=drain").status_code == 403
    assert gpu(busy, "physics")["limit"] == 16


def test_a_tree_without_its_root_is_not_found(client: APIClient) -> None:
    assert client.get("/api/v1/queue-trees/none").status_code == 404


def test_an_admin_creates_a_whole_tree(client: APIClient, cluster: FakeGateway) -> None:
    tree = {"name": "new", "quota": {"gpu": 2}, "children": [{"name": "leaf"}]}
    answer = client.put("/api/v1/queue-trees/new", tree, format="json")
    assert answer.status_code == 200
    assert cluster.raw(QUEUES, "leaf")["spec"]["parentQueue"] == "new"
    assert queue_body("leaf", "new")["spec"]["resources"] == cluster.raw(QUEUES, "leaf")["spec"]["resources"]  # fmt: skip

"""Change sets: planned in a safe order, applied together, rolled back, approved, undone, audited."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.test import APIClient

from kaiweb.models import ChangeSet, ChangeStep, Simulation
from kaiweb.planning import change_sets, simulations
from kaiweb.planning.plan import Body
from kube.errors import ForbiddenError, ServerError
from kube.gateway import Gateway
from kube.resources import QUEUES
from queues.models import QuotaChange, Role, RoleBinding
from tests.fakes.gateway import FakeGateway
from tests.kaiweb.api.conftest import queue_body, token_client

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sync", "reach")]
URL = "/api/v1/changes"
SWAP = [
    {"name": "physics", "edit": {"quota": {"gpu": 8}}},
    {"name": "biology", "edit": {"quota": {"gpu": 12}}},
    {"name": "chem", "action": "create", "edit": {"parent": "science", "quota": {"gpu": 1}}},
    {"name": "product", "action": "delete"},
]


@pytest.fixture
def reach(cluster: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the views reach the fake cluster, and simulations run at once."""
    monkeypatch.setattr("kaiweb.api.views.changes.gateway", lambda: cluster)
    monkeypatch.setattr(simulations, "send", lambda pk: simulations.run(pk, cluster, timezone.now))


def draft(client: APIClient, edits: Any = SWAP, **more: Any) -> Any:
    return client.post(URL, {"edits": edits, **more}, format="json")


def act(client: APIClient, change: Any, verb: str, body: Any = None) -> Any:
    return client.post(f"{URL}/{change.json()['id']}:{verb}", body or {}, format="json")


def quota(cluster: FakeGateway, name: str) -> Any:
    return cluster.raw(QUEUES, name)["spec"]["resources"]["gpu"]["quota"]


def slug(response: Any) -> str:
    return str(response.json()["type"].removeprefix("https://kaiweb.dev/problems/"))


def names(cluster: FakeGateway) -> set[str]:
    return set(cluster.names(QUEUES))


def test_a_draft_shows_what_it_changes_in_the_order_of_writing_and_writes_nothing(
    client: APIClient, cluster: FakeGateway
) -> None:
    response = draft(client)
    assert response.status_code == 201
    plan = response.json()["plan"]
    assert [step["queue"] for step in plan] == ["biology", "chem", "physics", "product"]
    assert plan[0]["diff"] == [{"pointer": "/quota/gpu", "before": 8, "after": 12}]
    assert names(cluster) == {"science", "physics", "biology", "product"}
    assert not QuotaChange.objects.exists()


def test_an_applied_change_is_made_audited_and_undone(
    client: APIClient, cluster: FakeGateway
) -> None:
    change = draft(client, reason="swap")
    applied = act(client, change, "apply")
    assert (applied.status_code, applied.json()["state"]) == (200, "applied")
    assert (quota(cluster, "physics"), quota(cluster, "biology")) == (8, 12)
    assert names(cluster) == {"science", "physics", "biology", "chem"}
    audit = client.get("/api/v1/audit?queue=physics").json()["items"]
    assert [(row["actor"], row["state"]) for row in audit] == [("ada", "done")]
    assert audit[0]["reason"] == f"change set {change.json()['id']}: swap"
    undo = act(client, change, "revert")
    assert undo.status_code == 201
    assert act(client, undo, "apply").json()["state"] == "applied"
    assert (quota(cluster, "physics"), quota(cluster, "biology")) == (12, 8)
    assert names(cluster) == {"science", "physics", "biology", "product"}
    assert quota(cluster, "product") == 10


def test_the_audit_log_of_a_period_has_its_start_and_not_its_end(
    client: APIClient, cluster: FakeGateway
) -> None:
    act(client, draft(client), "apply")
    times = sorted(row["at"] for row in client.get("/api/v1/audit").json()["items"])

    def listed(parameters: str) -> list[str]:
        items = client.get(f"/api/v1/audit?{parameters}").json()["items"]
        return sorted(row["at"] for row in items)

    assert listed(f"since={times[0]}") == times
    assert listed(f"until={times[0]}") == []
    assert client.get("/api/v1/audit?since=yesterday").status_code == 400


def test_admins_export_the_audit_log_as_a_table(
    client: APIClient, viewer: APIClient, cluster: FakeGateway
) -> None:
    act(client, draft(client), "apply")
    answer = client.get("/api/v1/audit?queue=physics", headers={"Accept": "text/csv"})
    [row] = csv.DictReader(io.StringIO(answer.content.decode()))
    [entry] = client.get("/api/v1/audit?queue=physics").json()["items"]
    assert json.loads(row.pop("diff")) == entry.pop("diff")
    assert row == {name: str(value) for name, value in entry.items()}
    assert answer.headers["Content-Disposition"] == 'attachment; filename="audit.csv"'
    assert viewer.get("/api/v1/audit?format=csv").status_code == 403
    assert viewer.get("/api/v1/audit").status_code == 200


def test_a_refused_step_rolls_the_others_back(client: APIClient, cluster: FakeGateway) -> None:
    change = draft(client)
    cluster.refuse("patch", "queues", "physics", ForbiddenError("no"))
    assert act(client, change, "apply").status_code >= 400
    item = client.get(f"{URL}/{change.json()['id']}").json()
    assert (item["state"], item["error"]) == ("rolledBack", "no")
    assert [step["state"] for step in item["steps"]] == ["undone", "undone", "failed", "pending"]
    assert quota(cluster, "biology") == 8
    assert names(cluster) == {"science", "physics", "biology", "product"}


def test_an_apply_whose_process_dies_is_rolled_back_later(
    client: APIClient, cluster: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = draft(client)
    pk = change.json()["id"]
    real = change_sets._write

    def die(*arguments: Any) -> None:
        real(*arguments)
        if arguments[2].name == "physics":
            raise KeyboardInterrupt

    monkeypatch.setattr(change_sets, "_write", die)
    with pytest.raises(KeyboardInterrupt):
        act(client, change, "apply")
    assert ChangeSet.objects.get(pk=pk).state == "applying"
    assert change_sets.settle(cluster, timezone.now()) == 0
    assert change_sets.settle(cluster, timezone.now() + timedelta(minutes=2)) == 1
    assert ChangeSet.objects.get(pk=pk).state == "rolledBack"
    assert (quota(cluster, "physics"), quota(cluster, "biology")) == (12, 8)
    assert names(cluster) == {"science", "physics", "biology", "product"}
    states = list(ChangeStep.objects.values_list("queue", "state"))
    assert states == [
        ("biology", "undone"), ("chem", "undone"), ("physics", "undone"), ("product", "pending")
    ]  # fmt: skip
    assert QuotaChange.objects.filter(reason__contains="ended half-way").count() == 3


def test_a_roll_back_keeps_what_others_changed_meanwhile(
    client: APIClient, cluster: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = draft(client, SWAP[:2])
    real = change_sets._write

    def meddle(*arguments: Any) -> None:
        if arguments[2].name == "physics":
            patch = {"spec": {"resources": {"gpu": {"quota": 99}}}}
            cluster.patch(QUEUES, "biology", patch)
            raise ServerError("gone")
        real(*arguments)

    monkeypatch.setattr(change_sets, "_write", meddle)
    assert act(client, change, "apply").status_code == 503
    assert (quota(cluster, "biology"), quota(cluster, "physics")) == (99, 12)


def test_a_queue_edited_meanwhile_refuses_the_whole_change(
    client: APIClient, cluster: FakeGateway
) -> None:
    change = draft(client)
    cluster.patch(QUEUES, "physics", {"spec": {"priority": 7}})
    refused = act(client, change, "apply")
    assert (refused.status_code, refused.json()["stale"]) == (412, ["physics"])
    assert quota(cluster, "biology") == 8
    renewed = client.patch(f"{URL}/{change.json()['id']}", {"edits": SWAP}, format="json")
    assert renewed.json()["stale"] == []
    assert act(client, change, "apply").status_code == 200


def test_a_field_of_another_manager_is_refused(client: APIClient, cluster: FakeGateway) -> None:
    body = queue_body("git", quota=3)
    owned = {"f:spec": {"f:resources": {"f:gpu": {"f:quota": {}}}}}
    entry = {"manager": "argocd", "operation": "Apply", "fieldsV1": owned}
    body["metadata"]["managedFields"] = [entry]
    cluster.seed(QUEUES, body)
    refused = act(client, draft(client, [{"name": "git", "edit": {"quota": {"gpu": 4}}}]), "apply")
    assert (refused.status_code, slug(refused)) == (409, "field-owned")
    free = draft(client, [{"name": "git", "edit": {"limit": {"gpu": 4}}}])
    assert act(client, free, "apply").status_code == 200


def test_an_editor_may_ask_an_admin(
    client: APIClient, editor: APIClient, cluster: FakeGateway
) -> None:
    change = draft(editor, [{"name": "science", "edit": {"quota": {"gpu": 30}}}])
    assert act(editor, change, "apply").status_code == 403
    assert quota(cluster, "science") == 20
    change = draft(editor, [{"name": "science", "edit": {"quota": {"gpu": 30}}}])
    assert act(editor, change, "request").json()["state"] == "requested"
    assert act(editor, change, "approve").status_code == 403
    assert act(client, change, "approve").json()["decidedBy"] == "ada"
    assert act(editor, change, "apply").json()["state"] == "applied"
    assert quota(cluster, "science") == 30
    assert QuotaChange.objects.get(queue="science").actor == "emmy"


def test_a_rejected_change_goes_back_to_its_author(client: APIClient, editor: APIClient) -> None:
    change = draft(editor, SWAP[:1])
    act(editor, change, "request")
    assert editor.patch(f"{URL}/{change.json()['id']}", {}, format="json").status_code == 409
    assert act(client, change, "reject").json()["state"] == "rejected"
    assert editor.patch(f"{URL}/{change.json()['id']}", {}, format="json").status_code == 200


def test_viewers_draft_nothing_and_others_drafts_are_left_alone(
    client: APIClient, viewer: APIClient
) -> None:
    assert draft(viewer).status_code == 403
    other = User.objects.create_user("olga")
    RoleBinding.objects.create(user=other, role=Role.EDITOR, subtree="science")
    change = draft(client)
    assert act(token_client(other, ["queues:write"]), change, "apply").status_code == 403
    assert viewer.get(f"{URL}/{change.json()['id']}").json()["state"] == "draft"


def test_a_preview_belongs_to_the_change(client: APIClient) -> None:
    change = draft(client)
    preview = act(client, change, "preview").json()["preview"]
    assert client.get(f"/api/v1/simulations/{preview}").json()["verdict"] == "safe"
    wrong = act(client, change, "apply", {"preview": preview + 1})
    assert (wrong.status_code, slug(wrong)) == (409, "preview-stale")
    assert act(client, change, "apply", {"preview": preview}).status_code == 200


def test_an_old_preview_is_made_again_and_may_not_have_become_worse(client: APIClient) -> None:
    change = draft(client)
    preview = act(client, change, "preview").json()["preview"]
    row = Simulation.objects.get(pk=preview)
    row.created_at -= timedelta(seconds=61)
    row.answer = {**row.answer, "verdict": "no-effect"}
    row.save()
    worse = act(client, change, "apply", {"preview": preview})
    assert (worse.status_code, slug(worse)) == (409, "preview-stale")
    newer = Simulation.objects.get(pk=worse.json()["preview"])
    assert (newer.verdict, Simulation.objects.count()) == ("safe", 2)
    Simulation.objects.filter(pk=preview).update(answer=newer.answer)
    assert act(client, change, "apply", {"preview": preview}).status_code == 200
    assert Simulation.objects.count() == 3


def test_an_old_preview_is_refused_to_a_token_that_may_not_simulate(
    client: APIClient, admin: User
) -> None:
    change = draft(client)
    preview = act(client, change, "preview").json()["preview"]
    then = timezone.now() - timedelta(seconds=61)
    Simulation.objects.filter(pk=preview).update(created_at=then)
    refused = act(token_client(admin, ["queues:write"]), change, "apply", {"preview": preview})
    assert (refused.status_code, slug(refused)) == (409, "preview-stale")


def test_the_policy_decides_about_a_bound_below_use(
    client: APIClient, cluster: FakeGateway, sync: Callable[[], None]
) -> None:
    status = {"allocated": {"nvidia.com/gpu": "6"}}
    cluster.patch(QUEUES, "physics", {"status": status}, sub="status")
    sync()
    edits = [{"name": "physics", "edit": {"limit": {"gpu": 4}}}]
    warnings = draft(client, edits).json()["warnings"]
    assert [item["code"] for item in warnings] == ["quota-over-limit", "limit-below-allocated"]
    blocked = act(client, draft(client, edits, policy="block"), "apply")
    assert blocked.status_code == 422
    assert act(client, draft(client, edits), "apply").status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"edits": []},
        {"edits": SWAP[:1] * 2},
        {"edits": SWAP, "policy": "x"},
        {"edits": "x"},
        [],
    ],
)
def test_a_draft_that_cannot_be_read_is_refused(client: APIClient, body: Any) -> None:
    assert client.post(URL, body, format="json").status_code == 422
    assert not ChangeSet.objects.exists()


def test_an_edit_that_breaks_the_tree_is_shown_and_not_applied(
    client: APIClient, cluster: FakeGateway
) -> None:
    change = draft(client, [SWAP[0], {"name": "science", "action": "delete"}])
    assert [finding["code"] for finding in change.json()["errors"]] == ["has-children"]
    assert act(client, change, "apply").status_code == 422
    assert quota(cluster, "physics") == 12


def test_a_change_is_applied_once(client: APIClient) -> None:
    change = draft(client)
    assert act(client, change, "apply").status_code == 200
    assert act(client, change, "apply").status_code in (409, 412)
    assert act(client, draft(client, SWAP[:1]), "revert").status_code == 409


def test_an_edit_that_comes_while_the_change_is_applied_leaves_its_state(
    client: APIClient, cluster: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = draft(client, reason="swap")
    read_queues = change_sets.live_queues

    def apply_meanwhile(gateway: Gateway) -> dict[str, Body]:
        monkeypatch.setattr(change_sets, "live_queues", read_queues)
        assert act(client, change, "apply").status_code == 200
        return read_queues(gateway)

    monkeypatch.setattr(change_sets, "live_queues", apply_meanwhile)
    refused = client.patch(f"{URL}/{change.json()['id']}", {"reason": "late"}, format="json")
    assert (refused.status_code, slug(refused)) == (409, "wrong-state")
    row = ChangeSet.objects.get()
    assert (row.state, row.reason) == ("applied", "swap")


def test_a_stranger_previews_a_change_without_replacing_the_preview_of_its_author(
    client: APIClient, editor: APIClient, cluster: FakeGateway
) -> None:
    change = draft(client)
    own = act(client, change, "preview").json()["preview"]
    reader = token_client(User.objects.create_user("rosa"), ["read", "simulate"])
    other = act(reader, change, "preview")
    assert other.status_code == 200
    assert other.json()["preview"] not in (None, own)
    assert client.get(f"{URL}/{change.json()['id']}").json()["preview"] == own
    assert act(client, change, "apply", {"preview": own}).status_code == 200


def test_a_preview_of_edits_that_were_replaced_meanwhile_is_not_kept(
    client: APIClient, cluster: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = draft(client)
    address = f"{URL}/{change.json()['id']}"

    def edit_meanwhile(_pk: int) -> None:
        edits = [{"name": "physics", "edit": {"quota": {"gpu": 1}}}]
        assert client.patch(address, {"edits": edits}, format="json").status_code == 200

    monkeypatch.setattr(simulations, "send", edit_meanwhile)
    monkeypatch.setattr("kaiweb.api.views.changes.PREVIEW_WAIT_S", 0)
    refused = act(client, change, "preview")
    assert (refused.status_code, slug(refused)) == (409, "preview-stale")
    assert client.get(address).json()["preview"] is None

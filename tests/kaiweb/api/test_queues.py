"""Queues over REST: what is read, what is written to the cluster, and what is refused, untouched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from kube.errors import ConflictError, ServerError
from kube.resources import QUEUES
from queues.models import QuotaChange
from tests.fakes.gateway import FakeGateway
from tests.kaiweb.api.queue_edits import URL, etag, patch, slug

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sync")]


def test_the_list_shows_the_tree_in_base_units(client: APIClient) -> None:
    body = client.get(URL).json()
    assert [item["name"] for item in body["items"]] == ["biology", "physics", "product", "science"]
    physics = body["items"][1]
    assert (physics["parent"], physics["depth"], physics["leaf"]) == ("science", 1, True)
    assert physics["quota"] == {"gpu": 12, "cpuMilli": 0, "memoryBytes": 0}
    assert physics["limit"] == {"gpu": 16, "cpuMilli": "unlimited", "memoryBytes": "unlimited"}
    assert body["items"][3]["children"] == ["biology", "physics"]
    assert body["next"] is None


def test_pages_follow_each_other_while_rows_come_and_go(
    client: APIClient, cluster: FakeGateway, sync: Callable[[], None]
) -> None:
    first = client.get(f"{URL}?limit=2&count=exact").json()
    assert ([item["name"] for item in first["items"]], first["count"]) == (
        ["biology", "physics"],
        4,
    )
    cluster.delete(QUEUES, "physics")
    sync()
    second = client.get(f"{URL}?limit=2&cursor={first['next']}").json()
    assert ([item["name"] for item in second["items"]], second["next"]) == (
        ["product", "science"],
        None,
    )


def test_a_subtree_and_a_search_narrow_the_list(client: APIClient) -> None:
    def names(query: str) -> list[str]:
        return [item["name"] for item in client.get(f"{URL}?{query}").json()["items"]]

    assert names("root=science") == ["biology", "physics", "science"]
    assert names("parent=") == ["product", "science"]
    assert names("q=olog") == ["biology"]
    assert names("sort=-name&limit=1") == ["science"]


@pytest.mark.parametrize(
    ("query", "word"),
    [("colour=red", "colour"), ("limit=0", "limit"), ("limit=x", "limit"), ("cursor=%21", "cursor"),
     ("sort=size", "sort"), ("count=all", "count")],
)  # fmt: skip
def test_a_parameter_we_do_not_understand_is_an_error(
    client: APIClient, query: str, word: str
) -> None:
    response = client.get(f"{URL}?{query}")
    assert (response.status_code, slug(response)) == (400, "bad-request")
    assert word in response.json()["detail"]


def test_an_unchanged_list_is_not_sent_again(client: APIClient) -> None:
    first = client.get(URL)
    again = client.get(URL, headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_a_patch_reaches_the_cluster_and_touches_only_what_it_names(
    client: APIClient, cluster: FakeGateway
) -> None:
    response = patch(
        client, cluster, "physics", {"quota": {"gpu": 9.5, "memoryBytes": 2_000_000_000}}
    )
    assert response.status_code == 200
    resources = cluster.raw(QUEUES, "physics")["spec"]["resources"]
    assert resources["gpu"] == {"quota": 9.5, "limit": 16, "overQuotaWeight": 1}
    assert resources["memory"]["quota"] == 2000
    assert response["ETag"] == etag(cluster, "physics")
    body = response.json()
    assert body["queue"]["quota"] == {"gpu": 9.5, "cpuMilli": 0, "memoryBytes": 2_000_000_000}
    assert body["diff"] == [
        {"pointer": "/quota/gpu", "before": 12, "after": 9.5},
        {"pointer": "/quota/memoryBytes", "before": 0, "after": 2_000_000_000},
    ]
    assert (body["changed"], body["dryRun"]) == (True, False)
    note = QuotaChange.objects.get()
    assert (note.queue, note.action, note.actor, note.diff) == (
        "physics",
        "update",
        "ada",
        body["diff"],
    )


def test_unlimited_unset_and_zero_are_three_things(client: APIClient, cluster: FakeGateway) -> None:
    edit = {"limit": {"gpu": "unlimited", "cpuMilli": None, "memoryBytes": 0}}
    body = patch(client, cluster, "physics", edit).json()
    resources = cluster.raw(QUEUES, "physics")["spec"]["resources"]
    assert (resources["gpu"]["limit"], resources["memory"]["limit"]) == (-1, 0)
    assert "limit" not in resources["cpu"]
    assert body["queue"]["limit"] == {"gpu": "unlimited", "memoryBytes": 0}
    assert {"limit-unset"} <= {warning["code"] for warning in body["warnings"]}


def test_an_edit_that_changes_nothing_writes_nothing(
    client: APIClient, cluster: FakeGateway
) -> None:
    body = patch(client, cluster, "physics", {"quota": {"gpu": 12}}).json()
    assert (body["changed"], body["diff"], cluster.calls) == (False, [], [])
    assert not QuotaChange.objects.exists()


def test_a_dry_run_says_the_same_and_writes_nothing(
    client: APIClient, cluster: FakeGateway
) -> None:
    before = cluster.raw(QUEUES, "physics")
    body = patch(client, cluster, "physics", {"quota": {"gpu": 99}}, "?dryRun=true").json()
    assert (body["dryRun"], body["changed"], body["queue"]["quota"]["gpu"]) == (True, True, 99)
    assert {warning["code"] for warning in body["warnings"]} == {
        "quota-over-limit", "children-over-parent",
    }  # fmt: skip
    assert cluster.raw(QUEUES, "physics") == before
    assert not QuotaChange.objects.exists()


def test_a_write_without_a_version_is_refused(client: APIClient, cluster: FakeGateway) -> None:
    response = client.patch(f"{URL}/physics", {"priority": 1}, format="json")
    assert (response.status_code, slug(response)) == (428, "precondition-required")
    assert client.delete(f"{URL}/physics").status_code == 428
    assert cluster.calls == []


def test_a_stale_version_is_refused_with_the_queue_as_it_is_now(
    client: APIClient, cluster: FakeGateway
) -> None:
    old = etag(cluster, "physics")
    patch(client, cluster, "physics", {"priority": 7})
    response = client.patch(
        f"{URL}/physics", {"quota": {"gpu": 1}}, format="json", headers={"If-Match": old}
    )
    assert (response.status_code, slug(response)) == (412, "precondition-failed")
    current = response.json()["current"]
    assert (current["priority"], current["quota"]["gpu"]) == (7, 12)
    assert current["etag"] == response["ETag"] == etag(cluster, "physics")


def test_a_status_write_between_read_and_patch_is_no_conflict(
    client: APIClient, cluster: FakeGateway
) -> None:
    cluster.fail_next("patch", "queues", ConflictError("modified", status=409, reason="Conflict"))
    assert patch(client, cluster, "physics", {"priority": 3}).status_code == 200
    assert cluster.raw(QUEUES, "physics")["spec"]["priority"] == 3
    assert QuotaChange.objects.count() == 1


def test_a_queue_written_without_end_is_answered_with_try_again(
    client: APIClient, cluster: FakeGateway
) -> None:
    for _ in range(8):
        cluster.fail_next("patch", "queues", ConflictError("modified", status=409))
    response = patch(client, cluster, "physics", {"priority": 3})
    assert (response.status_code, slug(response)) == (503, "unavailable")
    assert response["Retry-After"] == "1"
    assert not QuotaChange.objects.exists()


@pytest.mark.parametrize(
    ("edit", "slug_", "pointer", "code"),
    [
        ({"quota": {"gpu": -2}}, "validation", "/quota/gpu", "negative"),
        ({"quota": {"gpu": -1}}, "validation", "/quota/gpu", "negative"),
        ({"quota": {"gpu": "many"}}, "validation", "/quota/gpu", "number"),
        ({"quota": {"gpu": True}}, "validation", "/quota/gpu", "number"),
        ({"quota": {"gpu": 0.1234}}, "validation", "/quota/gpu", "places"),
        ({"weight": {"gpu": "unlimited"}}, "validation", "/weight/gpu", "number"),
        ({"quota": 4}, "validation", "/quota", "type"),
        ({"priority": "high"}, "validation", "/priority", "priority"),
        ({"reclaimMinRuntime": "soon"}, "validation", "/reclaimMinRuntime", "duration"),
        ({"parent": "nowhere"}, "hierarchy", "/parent", "missing-parent"),
        ({"parent": "physics"}, "hierarchy", "/parent", "cycle"),
        ({"colour": 1}, "validation", "/colour", "unknown-field"),
        ({"displayName": "a\x00"}, "validation", "/displayName", "type"),
        ({"displayName": "a" * 257}, "validation", "/displayName", "length"),
        ({"labels": 3}, "validation", "/labels", "type"),
        ({"labels": {"a/b c": "x"}}, "validation", "/labels/a~1b c", "label-key"),
        ({"labels": {"a": "x" * 64}}, "validation", "/labels/a", "label-value"),
        ({"labels": {"a": 3}}, "validation", "/labels/a", "type"),
        ({"labels": {f"k{n}": "" for n in range(65)}}, "validation", "/labels", "too-many"),
    ],
)
def test_bad_edits_are_refused_with_the_field_and_change_nothing(
    client: APIClient, cluster: FakeGateway, edit: Any, slug_: str, pointer: str, code: str
) -> None:
    before = cluster.raw(QUEUES, "physics")
    response = patch(client, cluster, "physics", edit)
    assert response.status_code == 422
    first = response.json()["errors"][0]
    assert (first["pointer"], first["code"]) == (pointer, code)
    assert first["message"]
    assert slug(response) == slug_
    assert cluster.raw(QUEUES, "physics") == before


def test_a_move_goes_through_when_it_makes_no_cycle(
    client: APIClient, cluster: FakeGateway
) -> None:
    assert patch(client, cluster, "physics", {"parent": "product"}).status_code == 200
    assert cluster.raw(QUEUES, "physics")["spec"]["parentQueue"] == "product"
    response = patch(client, cluster, "product", {"parent": "physics"})
    assert (response.status_code, slug(response)) == (422, "hierarchy")
    assert patch(client, cluster, "physics", {"parent": None}).status_code == 200
    assert "parentQueue" not in cluster.raw(QUEUES, "physics")["spec"]


def test_create_read_and_delete(
    client: APIClient, cluster: FakeGateway, sync: Callable[[], None]
) -> None:
    response = client.post(
        URL, {"name": "chem", "parent": "science", "quota": {"gpu": 2}}, format="json"
    )
    assert (response.status_code, response["Location"]) == (201, f"{URL}/chem")
    spec = cluster.raw(QUEUES, "chem")["spec"]
    assert spec["resources"]["gpu"] == {"quota": 2, "limit": -1, "overQuotaWeight": 1}
    sync()
    read = client.get(f"{URL}/chem")
    assert (read.json()["etag"], read.json()["parent"]) == (etag(cluster, "chem"), "science")
    gone = client.delete(f"{URL}/chem", headers={"If-Match": read["ETag"]})
    assert (gone.status_code, "chem" in cluster.names(QUEUES)) == (204, False)
    actions = list(QuotaChange.objects.order_by("id").values_list("action", flat=True))
    assert actions == ["create", "delete"]


def test_a_name_that_is_taken_or_impossible_is_refused(client: APIClient) -> None:
    taken = client.post(URL, {"name": "physics"}, format="json")
    assert (taken.status_code, slug(taken)) == (409, "conflict")
    assert taken.json()["errors"][0]["pointer"] == "/name"
    for name in ("Upper", "a b", "", None, 7, "a" * 64):
        response = client.post(URL, {"name": name}, format="json")
        assert (response.status_code, slug(response)) == (422, "validation")


def test_a_queue_with_children_is_not_deleted(client: APIClient, cluster: FakeGateway) -> None:
    response = client.delete(f"{URL}/science", headers={"If-Match": etag(cluster, "science")})
    assert (response.status_code, slug(response)) == (422, "hierarchy")
    expected = "cannot delete queue science: it has child queues [biology physics]"
    assert response.json()["detail"] == expected
    assert "science" in cluster.names(QUEUES)


def test_put_replaces_all_editable_fields(client: APIClient, cluster: FakeGateway) -> None:
    body = {"parent": "science", "quota": {"gpu": 3}, "limit": {"gpu": "unlimited"}}
    response = client.put(
        f"{URL}/physics", body, format="json", headers={"If-Match": etag(cluster, "physics")}
    )
    assert response.status_code == 200
    assert cluster.raw(QUEUES, "physics")["spec"] == {
        "parentQueue": "science", "resources": {"gpu": {"quota": 3, "limit": -1}},
    }  # fmt: skip


def test_put_creates_only_when_asked_to(client: APIClient, cluster: FakeGateway) -> None:
    assert client.put(f"{URL}/new", {}, format="json").status_code == 428
    response = client.put(f"{URL}/new", {}, format="json", headers={"If-None-Match": "*"})
    assert (response.status_code, "new" in cluster.names(QUEUES)) == (201, True)
    again = client.put(f"{URL}/new", {}, format="json", headers={"If-None-Match": "*"})
    assert (again.status_code, slug(again)) == (409, "conflict")


def test_an_unknown_queue_is_not_found(client: APIClient) -> None:
    for response in (
        client.get(f"{URL}/ghost"),
        client.patch(f"{URL}/ghost", {}, format="json", headers={"If-Match": '"1"'}),
        client.delete(f"{URL}/ghost", headers={"If-Match": '"1"'}),
    ):
        assert (response.status_code, slug(response)) == (404, "not-found")


def test_a_cluster_that_does_not_answer_is_reported(
    client: APIClient, cluster: FakeGateway
) -> None:
    tag = etag(cluster, "physics")
    cluster.fail_next("get", "queues", ServerError("connection refused"))
    response = client.patch(
        f"{URL}/physics", {"priority": 1}, format="json", headers={"If-Match": tag}
    )
    assert (response.status_code, slug(response)) == (503, "cluster-unreachable")


@pytest.mark.parametrize("query", ["q=%00", "root=a%00", "%00=1"])
def test_a_nul_is_refused(client: APIClient, query: str) -> None:
    assert client.get(f"{URL}?{query}").status_code == 400
    assert client.get(f"{URL}/a%00b").status_code == 400


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b"[1]",
        b'"x"',
        b"\xff",
        b"1e999",
        b'{"quota": {"gpu": 1e999}}',
        b'{"displayName": "\\ud800"}',
        b'{"labels": {"a": "\\ud800"}}',
        b"[" * 100_000,
    ],
)
def test_a_body_that_is_no_object_is_refused(
    client: APIClient, cluster: FakeGateway, raw: bytes
) -> None:
    response = client.patch(
        f"{URL}/physics", raw, content_type="application/json",
        headers={"If-Match": etag(cluster, "physics")},
    )  # fmt: skip
    assert response.status_code in (400, 422)
    assert cluster.calls == []


def test_options_of_a_queue_are_written_as_annotations_and_shown(
    client: APIClient, cluster: FakeGateway, sync: Callable[[], None]
) -> None:
    options = {"userFairness": True, "gpuModels": {"A100": {"quota": 4, "limit": 8}}}
    answer = patch(client, cluster, "physics", options)
    assert answer.status_code == 200
    assert answer.json()["queue"]["userFairness"] is True
    annotations = cluster.raw(QUEUES, "physics")["metadata"]["annotations"]
    assert annotations["kaiweb.dev/user-fairness"] == "true"
    sync()
    shown = client.get(f"{URL}/physics")
    assert shown.json()["gpuModels"] == {"A100": {"quota": 4, "limit": 8, "allocated": 0}}
    assert shown.json()["etag"] == etag(cluster, "physics")
    assert patch(client, cluster, "physics", {"gpuModels": None}).json()["queue"]["gpuModels"] == {}


def test_an_option_of_the_wrong_kind_is_refused(client: APIClient, cluster: FakeGateway) -> None:
    response = patch(client, cluster, "physics", {"gpuModels": {"A100": {"quota": -3}}})
    assert (response.status_code, slug(response)) == (422, "validation")
    assert response.json()["errors"][0]["pointer"] == "/gpuModels/A100/quota"


def test_the_maximum_run_time_of_a_queue_is_an_option(
    client: APIClient, cluster: FakeGateway, sync: Callable[[], None]
) -> None:
    answer = patch(client, cluster, "physics", {"maxRunTime": "8h", "requeueDelay": "30m"})
    assert answer.status_code == 200
    annotations = cluster.raw(QUEUES, "physics")["metadata"]["annotations"]
    assert annotations["kaiweb.dev/max-run-time"] == "8h"
    sync()
    shown = client.get(f"{URL}/physics").json()
    assert (shown["maxRunTime"], shown["requeueDelay"]) == ("8h", "30m")
    response = patch(client, cluster, "physics", {"maxRunTime": "soon"})
    assert response.json()["errors"][0]["pointer"] == "/maxRunTime"
    assert (
        patch(client, cluster, "physics", {"maxRunTime": None}).json()["queue"]["maxRunTime"]
        is None
    )

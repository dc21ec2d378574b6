"""Refusals say which rule and which field, and nothing that was sent is silently left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from kaiweb.api.cluster_refusals import refused_by_rights, refused_by_schema
from kube.errors import ForbiddenError, InvalidError
from kube.resources import QUEUES
from queues.editing.tags import tag_of_body
from queues.models import PodGroup
from tests.fakes.gateway import FakeGateway
from tests.kaiweb.api.conftest import NOON, token_client

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sync")]
URL = "/api/v1/queues"


def tag(cluster: FakeGateway, name: str) -> str:
    return f'"{tag_of_body(cluster.raw(QUEUES, name))}"'


def patch(client: APIClient, cluster: FakeGateway, edit: Any, query: str = "") -> Any:
    headers = {"If-Match": tag(cluster, "physics")}
    if isinstance(edit, bytes):
        return client.patch(
            f"{URL}/physics{query}", edit, content_type="application/json", headers=headers
        )
    return client.patch(f"{URL}/physics{query}", edit, format="json", headers=headers)


def outline(response: Any) -> tuple[int, str, list[tuple[str, str]]]:
    body = response.json()
    return (
        response.status_code,
        body["type"].rpartition("/")[2],
        [(error["pointer"], error["code"]) for error in body["errors"]],
    )


HOOK = 'PATCH /apis/x: 403 admission webhook "{}" denied the request: {}'


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            ForbiddenError(HOOK.format(
                "queue-validation.kai.scheduler",
                "queue 'a' cannot be below 'b': 'a' would be among its own ancestors",
            ), status=403),
            (422, "hierarchy", [("/parent", "admission")]),
        ),
        (
            ForbiddenError(HOOK.format("policy.example.com", "not on a Sunday"), status=403),
            (422, "validation", [("", "admission")]),
        ),
        (
            ForbiddenError('PATCH /apis/x: 403 User "web" cannot patch resource', status=403),
            (403, "forbidden", []),
        ),
        (
            InvalidError(
                'PATCH /apis/x: 422 Queue.scheduling.run.ai "physics" is invalid: '
                "[spec.resources.gpu.quota: Invalid value: -7.0: should be >= -1, "
                'metadata.labels: Invalid value: "a b": a valid label must be, well, valid]',
                status=422,
            ),
            (422, "validation", [("/quota/gpu", "cluster"), ("/labels", "cluster")]),
        ),
        (
            InvalidError("PATCH /apis/x: 422 strict decoding error", status=422),
            (422, "validation", [("", "cluster")]),
        ),
    ],
)  # fmt: skip
def test_a_refusal_of_the_cluster_gets_the_right_type_and_pointer(
    client: APIClient,
    cluster: FakeGateway,
    error: Exception,
    expected: tuple[int, str, list[tuple[str, str]]],
) -> None:
    cluster.fail_next("patch", "queues", error)  # type: ignore[arg-type]
    response = patch(client, cluster, {"priority": 3})
    assert outline(response) == expected
    assert "/apis/" not in response.json()["detail"]


@pytest.mark.parametrize(
    ("path", "pointer"),
    [
        ("metadata.name", "/name"), ("spec.parentQueue", "/parent"), ("spec.priority", "/priority"),
        ("metadata.labels[a/b]", "/labels"), ("spec.resources.memory.limit", "/limit/memoryBytes"),
        ("spec.resources.cpu.overQuotaWeight", "/weight/cpuMilli"), ("spec.other", ""),
    ],
)  # fmt: skip
def test_fields_of_the_object_are_named_as_rest_names_them(path: str, pointer: str) -> None:
    text = f'PATCH /x: 422 Queue.scheduling.run.ai "a" is invalid: {path}: Required value: missing'
    (entry,) = refused_by_schema(Exception(text)).errors
    assert (entry["pointer"], entry["message"]) == (pointer, "Required value: missing")


def test_a_webhook_that_gives_no_reason_is_named_too() -> None:
    refusal = refused_by_rights(
        Exception('POST /x: 403 admission webhook "h" denied the request without explanation')
    )
    assert refusal.detail == "webhook 'h' of the cluster refuses it: without a reason"


def test_problem_json_may_be_all_that_a_client_accepts(
    client: APIClient, cluster: FakeGateway
) -> None:
    headers = {"Accept": "application/problem+json"}
    fine = client.get(f"{URL}/physics", headers=headers)
    assert (fine.status_code, fine["Content-Type"]) == (200, "application/json")
    response = client.get(f"{URL}/ghost", headers=headers)
    assert (response.status_code, response["Content-Type"]) == (404, "application/problem+json")
    assert client.get(URL, headers={"Accept": "text/csv"}).status_code == 406


@pytest.mark.parametrize(
    "raw",
    [b'{"priority": 1, "priority": 2}', b'{"quota": {"gpu": 1, "gpu": 2}}', b'{"priority": NaN}'],
)
def test_a_key_that_occurs_twice_is_refused(
    client: APIClient, cluster: FakeGateway, raw: bytes
) -> None:
    assert outline(patch(client, cluster, raw))[:2] == (400, "bad-request")
    assert cluster.calls == []


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("?dryRun=true&dryRun=false", "?dryRun"), ("?reason=a&reason=b", "?reason"),
        ("?dryRun=maybe", "?dryRun"), (f"?reason={'a' * 1025}", "?reason"),
    ],
)  # fmt: skip
def test_an_ambiguous_or_empty_parameter_writes_nothing(
    client: APIClient, cluster: FakeGateway, query: str, pointer: str
) -> None:
    status, slug, errors = outline(patch(client, cluster, {"priority": 3}, query))
    assert (status, slug, errors[0][0]) == (400, "bad-request", pointer)
    assert cluster.calls == []


def test_filters_that_mean_or_may_be_repeated(client: APIClient) -> None:
    assert client.get("/api/v1/workloads?state=pending&state=running").status_code == 200
    assert client.get("/api/v1/workloads?limit=1&limit=2").status_code == 400


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("post", URL, {"If-Match": '"1"'}),
        ("put", f"{URL}/new", {"If-None-Match": "*", "If-Match": '"1"'}),
        ("put", f"{URL}/new", {"If-None-Match": '"1"'}),
        ("put", f"{URL}/new?fieldManager=ci", {"If-None-Match": "*"}),
        ("put", f"{URL}/physics?force=true", {"If-Match": '"1"'}),
        ("patch", f"{URL}/physics", {"If-Match": 'W/"1"'}),
    ],
)
def test_conditions_that_contradict_the_call_are_refused(
    client: APIClient, cluster: FakeGateway, method: str, path: str, headers: dict[str, str]
) -> None:
    body = {"name": "new"} if "physics" not in path else {}
    response = getattr(client, method)(path, body, format="json", headers=headers)
    assert response.status_code == 400
    assert cluster.calls == []


def test_a_dry_deletion_shows_what_would_happen(
    client: APIClient, cluster: FakeGateway, sync: Callable[[], None]
) -> None:
    PodGroup.objects.create(
        uid="u", version=1, created_at=NOON, key="a/b", namespace="a", name="b", queue="physics",
        state="running",
    )  # fmt: skip
    headers = {"If-Match": tag(cluster, "physics")}
    response = client.delete(f"{URL}/physics?dryRun=true", headers=headers)
    body = response.json()
    assert (response.status_code, body["dryRun"], body["changed"]) == (200, True, True)
    assert [warning["code"] for warning in body["warnings"]] == ["has-workloads"]
    assert {"pointer": "/parent", "before": "science", "after": None} in body["diff"]
    assert "physics" in cluster.names(QUEUES)
    refused = client.delete(
        f"{URL}/science?dryRun=true", headers={"If-Match": tag(cluster, "science")}
    )
    assert outline(refused) == (422, "hierarchy", [("/name", "has-children")])


def test_a_token_reads_only_with_the_scope(admin: User, cluster: FakeGateway) -> None:
    writer = token_client(admin, ["queues:write"])
    assert writer.get("/api/v1/me").status_code == 200
    for path in ("queues", "queues/physics", "workloads", "cluster", "order"):
        response = writer.get(f"/api/v1/{path}")
        assert (response.status_code, outline(response)[1]) == (403, "forbidden")
        assert "'read'" in response.json()["detail"]
    assert writer.post("/api/v1/live/tickets").status_code == 403
    assert patch(writer, cluster, {"priority": 3}).status_code == 200
    for scopes in (["read"], ["admin"]):
        assert token_client(admin, scopes).get(URL).status_code == 200


def test_an_address_with_a_line_break_is_unknown_and_answered_as_a_problem(
    client: APIClient,
) -> None:
    response = client.post("/api/v1/changes/a%0Ab:revert")
    assert (response.status_code, response["Content-Type"]) == (404, "application/problem+json")

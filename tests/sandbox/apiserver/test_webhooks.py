"""Admission webhooks: which are asked, what their answers do, what happens when they are silent."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from sandbox.apiserver.access.webhooks import WebhookUnreachableError
from tests.sandbox.apiserver.conftest import InProcess, configmap, pod

MAPS = "/api/v1/namespaces/default/configmaps"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
Answerer = Callable[[dict[str, Any]], dict[str, Any]]


class Hooks:
    """Stands in for the network between the server and its webhooks."""

    def __init__(self, cluster: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cluster = cluster
        self.requests: list[dict[str, Any]] = []
        self.answer: Answerer = lambda request: {"allowed": True}
        monkeypatch.setattr(cluster.server._webhooks, "_post", self._post)

    async def _post(self, hook: dict[str, Any], review: dict[str, Any]) -> dict[str, Any]:
        self.requests.append(review["request"])
        return self.answer(review["request"])

    async def register(self, kind: str, **fields: Any) -> None:
        rule = {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE", "UPDATE", "DELETE"],
            "resources": ["configmaps"],
        }
        hook = {
            "name": "hook.example.com",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [rule],
            **fields,
        }
        body = {"metadata": {"name": "h"}, "webhooks": [hook]}
        (await self.cluster.post(f"{CONFIGURATIONS}/{kind}webhookconfigurations", body)).ok(201)


@pytest.fixture
def hooks(cluster: InProcess, monkeypatch: pytest.MonkeyPatch) -> Hooks:
    return Hooks(cluster, monkeypatch)


def json_patch(*operations: dict[str, Any]) -> str:
    return b64encode(orjson.dumps(list(operations))).decode()


async def test_mutation_by_patch(cluster: InProcess, hooks: Hooks) -> None:
    await hooks.register("mutating")
    operation = {"op": "add", "path": "/data/added", "value": "yes"}
    hooks.answer = lambda request: {
        "allowed": True,
        "patch": json_patch(operation),
        "warnings": ["look"],
    }
    answer = await cluster.post(MAPS, configmap("a", k="v"))
    assert answer.ok(201)["data"] == {"k": "v", "added": "yes"}
    assert answer.headers["warning"] == '299 - "look"'
    (request,) = hooks.requests
    assert (request["operation"], request["name"], request["namespace"]) == (
        "CREATE",
        "a",
        "default",
    )
    assert request["userInfo"]["username"] == "kaiweb-admin"


async def test_what_a_webhook_adds_is_defaulted_at_once(cluster: InProcess, hooks: Hooks) -> None:
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods"],
    }
    await hooks.register("mutating", rules=[rule])
    volume = {"name": "shared", "configMap": {"name": "c"}}
    operation = {"op": "add", "path": "/spec/volumes", "value": [volume]}
    hooks.answer = lambda request: {"allowed": True, "patch": json_patch(operation)}
    pods = "/api/v1/namespaces/default/pods"
    created = (await cluster.post(pods, pod("a"))).ok(201)
    assert created["spec"]["volumes"][0]["configMap"]["defaultMode"] == 420
    (await cluster.patch(f"{pods}/a", {"metadata": {"annotations": {"a": "b"}}})).ok()


async def test_refusal_keeps_its_code_and_stores_nothing(cluster: InProcess, hooks: Hooks) -> None:
    await hooks.register("validating")
    hooks.answer = lambda request: {
        "allowed": False,
        "status": {"message": "not on a Sunday", "code": 403},
    }
    (await cluster.post(MAPS, configmap("a"))).refused(
        403, 'admission webhook "hook.example.com" denied the request: not on a Sunday'
    )
    hooks.answer = lambda request: {"allowed": False}
    (await cluster.post(MAPS, configmap("a"))).refused(
        400, 'admission webhook "hook.example.com" denied the request without explanation'
    )
    assert (await cluster.get(f"{MAPS}/a")).code == 404


async def test_delete_is_asked_with_the_old_object(cluster: InProcess, hooks: Hooks) -> None:
    await cluster.post(MAPS, configmap("a", k="v"))
    await hooks.register("validating")
    await cluster.delete(f"{MAPS}/a")
    (request,) = hooks.requests
    assert (request["operation"], request["object"]) == ("DELETE", None)
    assert request["oldObject"]["data"] == {"k": "v"}


async def test_a_write_that_comes_between_is_no_conflict_of_who_deletes(
    cluster: InProcess, hooks: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    await cluster.post(MAPS, configmap("a", k="v"))
    await hooks.register("validating")
    reviews: list[dict[str, Any]] = []

    async def meanwhile(_hook: dict[str, Any], review: dict[str, Any]) -> dict[str, Any]:
        if review["request"]["operation"] == "DELETE":
            reviews.append(review["request"]["oldObject"]["data"])
            if len(reviews) == 1:
                (await cluster.patch(f"{MAPS}/a", {"data": {"k": "w"}})).ok()
        return {"allowed": True}

    monkeypatch.setattr(cluster.server._webhooks, "_post", meanwhile)
    (await cluster.delete(f"{MAPS}/a")).ok()
    assert reviews == [{"k": "v"}, {"k": "w"}]
    assert (await cluster.get(f"{MAPS}/a")).code == 404


@pytest.mark.parametrize(
    "fields",
    [
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}},
        {"objectSelector": {"matchLabels": {"a": "b"}}},
        {"matchConditions": [{"name": "c", "expression": "object.metadata.name != 'a'"}]},
        {
            "rules": [
                {
                    "apiGroups": ["*"],
                    "apiVersions": ["*"],
                    "operations": ["UPDATE"],
                    "resources": ["*"],
                }
            ]
        },
        {
            "rules": [
                {
                    "apiGroups": ["*"],
                    "apiVersions": ["*"],
                    "operations": ["*"],
                    "resources": ["*/status"],
                }
            ]
        },
        {
            "rules": [
                {
                    "apiGroups": ["*"],
                    "apiVersions": ["*"],
                    "operations": ["*"],
                    "resources": ["*"],
                    "scope": "Cluster",
                }
            ]
        },
    ],
)
async def test_webhooks_that_do_not_match_are_not_called(
    cluster: InProcess, hooks: Hooks, fields: dict[str, Any]
) -> None:
    await hooks.register("validating", **fields)
    (await cluster.post(MAPS, configmap("a"))).ok(201)
    assert hooks.requests == []


async def test_match_condition_that_holds(cluster: InProcess, hooks: Hooks) -> None:
    condition = {
        "name": "c",
        "expression": "request.operation == 'CREATE' && object.metadata.name == 'a'",
    }
    await hooks.register("validating", matchConditions=[condition])
    (await cluster.post(MAPS, configmap("a"))).ok(201)
    assert len(hooks.requests) == 1


@pytest.mark.parametrize(("policy", "code"), [("Fail", 500), ("Ignore", 201)])
async def test_a_webhook_that_does_not_answer(
    cluster: InProcess, hooks: Hooks, policy: str, code: int
) -> None:
    await hooks.register("validating", failurePolicy=policy)

    def silent(request: dict[str, Any]) -> dict[str, Any]:
        raise WebhookUnreachableError("failed to call webhook: connection refused")

    hooks.answer = silent
    answer = await cluster.post(MAPS, configmap("a"))
    assert answer.code == code
    if code == 500:
        assert answer.body["message"] == (
            'Internal error occurred: failed calling webhook "hook.example.com": failed to call webhook: '
            "connection refused"
        )


async def test_object_that_changes_while_a_webhook_thinks(cluster: InProcess, hooks: Hooks) -> None:
    await cluster.post(MAPS, configmap("a", k="1"))
    await hooks.register("validating", rules=[
        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["configmaps"]}
    ])  # fmt: skip
    raced = False

    def race(request: dict[str, Any]) -> dict[str, Any]:
        nonlocal raced
        if not raced:
            raced = True
            entry = cluster.store.get("configmaps", "default", "a")
            assert entry is not None
            obj = entry.load()
            obj["data"]["other"] = "write"
            cluster.store.update(entry, obj)
        return {"allowed": True}

    hooks.answer = race
    changed = (await cluster.patch(f"{MAPS}/a", {"data": {"k": "2"}})).ok()
    assert changed["data"] == {"k": "2", "other": "write"}


async def test_configurations_themselves_are_never_intercepted(
    cluster: InProcess, hooks: Hooks
) -> None:
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
    await hooks.register("validating", rules=[everything])
    hooks.answer = lambda request: {"allowed": False}
    (await cluster.delete(f"{CONFIGURATIONS}/validatingwebhookconfigurations/h")).ok()

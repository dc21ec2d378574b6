"""Who gets in and who may do what: tokens, roles, reviews, impersonation, service accounts."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.apiserver.access.authn import Authenticator
from sandbox.apiserver.model.errors import ApiError
from tests.sandbox.apiserver.conftest import InProcess, configmap

RBAC = "/apis/rbac.authorization.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def jane(cluster: InProcess, tmp_path: Path) -> str:
    """A token of a user without any rights."""
    path = tmp_path / "tokens.yaml"
    users = yaml.safe_load(path.read_text())
    path.write_text(
        yaml.safe_dump([*users, {"token": "jane-token", "user": "jane", "groups": ["dev"]}])
    )
    return "jane-token"


async def grant(cluster: InProcess, rule: dict[str, Any], subject: dict[str, str]) -> None:
    (
        await cluster.post(
            f"{RBAC}/namespaces/default/roles", {"metadata": {"name": "r"}, "rules": [rule]}
        )
    ).ok(201)
    binding = {
        "metadata": {"name": "r"},
        "subjects": [subject],
        "roleRef": {"kind": "Role", "name": "r"},
    }
    (await cluster.post(f"{RBAC}/namespaces/default/rolebindings", binding)).ok(201)


async def test_wrong_token_is_unauthorized(cluster: InProcess) -> None:
    (await cluster.get(MAPS, token="wrong")).refused(401, "Unauthorized")


@pytest.mark.parametrize("token", ["tök", "a.b.ü", "ñ.é"])
async def test_a_token_with_characters_outside_ascii_is_unauthorized(
    cluster: InProcess, token: str
) -> None:
    (await cluster.get(MAPS, token=token)).refused(401, "Unauthorized")
    review = {"spec": {"token": token}}
    answer = await cluster.post("/apis/authentication.k8s.io/v1/tokenreviews", review)
    assert answer.ok(201)["status"]["error"] == "invalid bearer token"


async def test_no_rights_is_forbidden_and_says_what_lacks(cluster: InProcess, jane: str) -> None:
    (await cluster.get(MAPS, token=jane)).refused(
        403,
        'configmaps is forbidden: User "jane" cannot list resource "configmaps" in API group "" in '
        'the namespace "default"',
    )
    (await cluster.get("/api/v1/nodes/n1", token=jane)).refused(
        403,
        'nodes "n1" is forbidden: User "jane" cannot get resource "nodes" in API group "" at the '
        "cluster scope",
    )


async def test_role_allows_its_verbs_in_its_namespace(cluster: InProcess, jane: str) -> None:
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}
    await grant(cluster, rule, {"kind": "Group", "name": "dev"})
    (await cluster.get(MAPS, token=jane)).ok()
    assert (await cluster.post(MAPS, configmap("a"), token=jane)).code == 403
    assert (await cluster.get("/api/v1/configmaps", token=jane)).code == 403
    assert (await cluster.get("/api/v1/namespaces/kube-system/configmaps", token=jane)).code == 403


async def test_rights_end_with_their_binding(cluster: InProcess, jane: str) -> None:
    rule = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    await grant(cluster, rule, {"kind": "User", "name": "jane"})
    (await cluster.get(MAPS, token=jane)).ok()
    await cluster.delete(f"{RBAC}/namespaces/default/rolebindings/r")
    assert (await cluster.get(MAPS, token=jane)).code == 403


async def test_resource_names_and_subresources(cluster: InProcess, jane: str) -> None:
    rule = {
        "apiGroups": [""],
        "resources": ["configmaps", "pods/status"],
        "resourceNames": ["mine"],
        "verbs": ["get", "patch"],
    }
    await grant(cluster, rule, {"kind": "User", "name": "jane"})
    await cluster.post(MAPS, configmap("mine"))
    (await cluster.get(f"{MAPS}/mine", token=jane)).ok()
    assert (await cluster.get(f"{MAPS}/other", token=jane)).code == 403
    pods = "/api/v1/namespaces/default/pods"
    assert (await cluster.patch(f"{pods}/mine/status", {}, token=jane)).code == 404
    assert (await cluster.patch(f"{pods}/mine", {}, token=jane)).code == 403


async def test_access_reviews(cluster: InProcess, jane: str) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    ask = {
        "spec": {
            "resourceAttributes": {"verb": "list", "resource": "configmaps", "namespace": "default"}
        }
    }
    assert (await cluster.post(path, ask)).ok(201)["status"] == {"allowed": True}
    assert (await cluster.post(path, ask, token=jane)).ok(201)["status"] == {"allowed": False}
    other = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    ask["spec"]["user"] = "jane"  # type: ignore[assignment]
    assert (await cluster.post(other, ask)).ok(201)["status"] == {"allowed": False}


async def test_impersonation_needs_the_right(cluster: InProcess, jane: str) -> None:
    answer = await cluster.get(MAPS, impersonate_user="jane")
    assert 'User "jane" cannot list' in answer.body["message"]
    refused = await cluster.get(MAPS, token=jane, impersonate_user="root")
    assert 'User "jane" cannot impersonate resource "users"' in refused.body["message"]


async def test_service_account_token(cluster: InProcess) -> None:
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    created = (await cluster.post(f"{accounts}/default/token", {"spec": {}})).ok(201)
    token = created["status"]["token"]
    review = "/apis/authentication.k8s.io/v1/tokenreviews"
    status = (await cluster.post(review, {"spec": {"token": token}})).ok(201)["status"]
    assert status["user"]["username"] == "system:serviceaccount:default:default"
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}
    await grant(
        cluster, rule, {"kind": "ServiceAccount", "name": "default", "namespace": "default"}
    )
    (await cluster.get(MAPS, token=token)).ok()


def test_expired_and_forged_tokens(tmp_path: Path) -> None:
    (tmp_path / "pki").mkdir()
    authenticator = Authenticator(tmp_path)
    good = authenticator.issue("ns", "sa", "uid", time.time() + 60)
    assert authenticator.authenticate(f"Bearer {good}").uid == "uid"
    for bad in (authenticator.issue("ns", "sa", "uid", time.time() - 1), good[:-2] + "xx", "a.b.c"):
        with pytest.raises(ApiError, match="Unauthorized"):
            authenticator.authenticate(f"Bearer {bad}")


def test_home_without_an_admin_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pki").mkdir()
    (tmp_path / "tokens.yaml").write_text(yaml.safe_dump([{"token": "t", "user": "u"}]))
    with pytest.raises(ValueError, match="names no user of the group system:masters"):
        Authenticator(tmp_path).admin_token()

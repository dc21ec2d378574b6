"""Who may do what: tokens, roles, reviews."""

from __future__ import annotations

import time

import pytest

from tests.contract.api import APPLY, Answer, Api
from tests.contract.bodies import configmap
from tests.real_cluster.cluster import PLAIN_USER

MAPS = "/api/v1/namespaces/{ns}/configmaps"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
SUBJECT = {"kind": "User", "name": PLAIN_USER, "apiGroup": "rbac.authorization.k8s.io"}


def role_ref(kind: str, name: str) -> dict[str, str]:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}


def wait_allowed(api: Api, path: str) -> None:
    """Wait until a path is no longer forbidden: the role cache of a real server follows within a moment."""
    deadline = time.monotonic() + 5
    while api.get(path).status == 403:
        assert time.monotonic() < deadline, f"{path} is still forbidden after 5 s"
        time.sleep(0.05)


def test_bad_token_is_unauthorized(api: Api) -> None:
    api.server.tokens = {**api.server.tokens, "nobody": "not-a-token"}
    api.as_user("nobody").get("/api/v1/nodes").refused(401, "Unauthorized")


def test_plain_user_is_forbidden_with_a_reason(api: Api) -> None:
    body = api.as_user(PLAIN_USER).get(MAPS).refused(403, "Forbidden")
    assert body["message"] == (
        f'configmaps is forbidden: User "{PLAIN_USER}" cannot list resource "configmaps" in API '
        f'group "" in the namespace "{api.namespace}"'
    )


def test_role_in_a_namespace_allows_there_only(api: Api) -> None:
    plain = api.as_user(PLAIN_USER)
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]
    prefix = f"{RBAC}/namespaces/{{ns}}"
    api.post(f"{prefix}/roles", {"metadata": {"name": "reader"}, "rules": rules}).ok(201)
    binding = {
        "metadata": {"name": "reader"},
        "roleRef": role_ref("Role", "reader"),
        "subjects": [SUBJECT],
    }
    api.post(f"{prefix}/rolebindings", binding).ok(201)
    wait_allowed(plain, MAPS)
    plain.post(MAPS, configmap("a")).refused(403, "Forbidden", "cannot create resource")
    plain.get("/api/v1/namespaces/default/configmaps").refused(403, "Forbidden")


def test_cluster_role_with_names_subresources_and_wildcards(api: Api, unique: str) -> None:
    plain = api.as_user(PLAIN_USER)
    rules = [
        {"apiGroups": [""], "resources": ["nodes"], "resourceNames": [unique], "verbs": ["get"]},
        {"apiGroups": ["scheduling.run.ai"], "resources": ["*/status"], "verbs": ["patch"]},
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
    ]
    api.post(f"{RBAC}/clusterroles", {"metadata": {"name": unique}, "rules": rules}).ok(201)
    binding = {
        "metadata": {"name": unique},
        "roleRef": role_ref("ClusterRole", unique),
        "subjects": [SUBJECT],
    }
    api.post(f"{RBAC}/clusterrolebindings", binding).ok(201)
    wait_allowed(plain, f"/api/v1/nodes/{unique}")
    plain.get(f"/api/v1/nodes/{unique}").refused(404, "NotFound")
    plain.get("/api/v1/nodes/another").refused(403, "Forbidden")
    status = "/apis/scheduling.run.ai/v2/queues/none/status"
    plain.patch(status, {"status": {}}).refused(404, "NotFound")
    plain.patch("/apis/scheduling.run.ai/v2/queues/none", {}).refused(403, "Forbidden")


@pytest.mark.parametrize(
    "path",
    [
        "/apis/unknown.example.com/v1/things",
        "/apis/apps/v9/deployments",
        "/api/v1/namespaces/default/things/a",
        "/api/v1/nodes/a/unknown",
    ],
)
def test_a_plain_user_does_not_learn_which_paths_exist(api: Api, path: str) -> None:
    api.as_user(PLAIN_USER).get(path).refused(403, "Forbidden")
    assert api.get(path).status == 404


def test_an_apply_that_creates_needs_patch_and_create_for_that_name(api: Api) -> None:
    """Check that a role may allow creating just one object by apply; a POST names none, so it stays forbidden."""
    plain = api.as_user(PLAIN_USER)
    rule = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["mine", "changed"]}
    rules = [
        {**rule, "verbs": ["get", "patch"]},
        {**rule, "resourceNames": ["mine"], "verbs": ["create"]},
    ]
    prefix = f"{RBAC}/namespaces/{{ns}}"
    api.post(f"{prefix}/roles", {"metadata": {"name": "owner"}, "rules": rules}).ok(201)
    binding = {
        "metadata": {"name": "owner"},
        "roleRef": role_ref("Role", "owner"),
        "subjects": [SUBJECT],
    }
    api.post(f"{prefix}/rolebindings", binding).ok(201)
    wait_allowed(plain, f"{MAPS}/mine")

    def apply(name: str) -> Answer:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        return plain.patch(f"{MAPS}/{name}", body, APPLY, fieldManager="plain")

    plain.post(MAPS, configmap("mine")).refused(403, "Forbidden", "cannot create resource")
    apply("mine").ok(201)
    apply("changed").refused(403, "Forbidden", "cannot create resource")
    apply("others").refused(403, "Forbidden", "cannot patch resource")


def test_self_subject_access_review(api: Api) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    attributes = {"verb": "create", "resource": "pods", "namespace": api.namespace}
    review = {"spec": {"resourceAttributes": attributes}}
    assert api.post(path, review).ok(201)["status"]["allowed"] is True
    assert api.as_user(PLAIN_USER).post(path, review).ok(201)["status"]["allowed"] is False


def test_service_account_token_is_a_user_of_its_own(api: Api) -> None:
    accounts = "/api/v1/namespaces/{ns}/serviceaccounts"
    api.post(accounts, {"metadata": {"name": "robot"}}).ok(201)
    token = api.post(f"{accounts}/robot/token", {"spec": {}}).ok(201)["status"]["token"]
    api.server.tokens = {**api.server.tokens, "robot": token}
    robot = api.as_user("robot")
    body = robot.get(MAPS).refused(403, "Forbidden")
    assert f'User "system:serviceaccount:{api.namespace}:robot"' in body["message"]
    review = robot.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {}).ok(201)
    groups = review["status"]["userInfo"]["groups"]
    assert f"system:serviceaccounts:{api.namespace}" in groups


def test_discovery_is_open_to_every_user(api: Api) -> None:
    plain = api.as_user(PLAIN_USER)
    assert plain.get("/apis").status == 200
    assert plain.get("/openapi/v3").status == 200

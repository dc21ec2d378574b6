"""Discovery, versions and OpenAPI: what clients read before anything else."""

from __future__ import annotations

from tests.contract.api import Api

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


def test_version_names_major_and_minor(api: Api) -> None:
    body = api.get("/version").ok()
    assert body["major"] == "1"
    assert body["gitVersion"].startswith("v1.")


def test_health_endpoints_answer_ok(api: Api) -> None:
    assert [api.get(path).ok() for path in ("/livez", "/readyz", "/healthz")] == ["ok"] * 3


def test_core_group_offers_v1(api: Api) -> None:
    assert api.get("/api").ok()["versions"] == ["v1"]


def test_group_list_has_built_in_and_custom_groups(api: Api) -> None:
    names = {group["name"] for group in api.get("/apis").ok()["groups"]}
    assert {"apps", "batch", "coordination.k8s.io", "rbac.authorization.k8s.io"} <= names
    assert {"scheduling.run.ai", "kai.scheduler"} <= names


def test_resource_list_describes_pods(api: Api) -> None:
    resources = {item["name"]: item for item in api.get("/api/v1").ok()["resources"]}
    assert resources["pods"]["kind"] == "Pod"
    assert resources["pods"]["namespaced"] is True
    assert resources["pods"]["shortNames"] == ["po"]
    assert {"create", "delete", "get", "list", "patch", "update", "watch"} <= set(
        resources["pods"]["verbs"]
    )
    assert resources["pods/binding"]["kind"] == "Binding"
    assert resources["nodes"]["namespaced"] is False


def test_resource_list_describes_custom_kinds(api: Api) -> None:
    path = "/apis/scheduling.run.ai/v2alpha2"
    resources = {item["name"]: item for item in api.get(path).ok()["resources"]}
    assert resources["podgroups"]["shortNames"] == ["pg"]
    assert set(resources["podgroups/status"]["verbs"]) == {"get", "patch", "update"}


def test_aggregated_discovery_lists_all_groups(api: Api) -> None:
    body = api.get("/apis", accept=AGGREGATED).ok()
    assert body["kind"] == "APIGroupDiscoveryList"
    names = {item["metadata"]["name"] for item in body["items"]}
    assert {"apps", "batch", "scheduling.run.ai"} <= names


def test_openapi_v3_index_and_a_group(api: Api) -> None:
    paths = api.get("/openapi/v3").ok()["paths"]
    assert {"api/v1", "apis/apps/v1", "apis/scheduling.run.ai/v2"} <= set(paths)
    group = api.get(paths["apis/apps/v1"]["serverRelativeURL"]).ok()
    patch = group["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert "fieldValidation" in {item["name"] for item in patch["parameters"]}


def test_unknown_path_is_404(api: Api) -> None:
    assert api.get("/apis/no.such.group/v1/things").status == 404


def test_unknown_resource_of_known_group_is_404(api: Api) -> None:
    assert api.get("/api/v1/namespaces/{ns}/widgets").status == 404

"""Objects in general: identity, versions, dry runs, pages, finalizers, discovery, odd requests."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.apiserver.conftest import STRATEGIC, InProcess, configmap, pod

MAPS = "/api/v1/namespaces/default/configmaps"


def names(listing: dict[str, Any]) -> list[str]:
    return [item["metadata"]["name"] for item in listing["items"]]


async def test_stale_write_is_a_conflict(cluster: InProcess) -> None:
    created = (await cluster.post(MAPS, configmap("a", k="1"))).ok(201)
    await cluster.patch(f"{MAPS}/a", {"data": {"k": "2"}})
    (await cluster.call("PUT", f"{MAPS}/a", created)).refused(
        409,
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply '
        "your changes to the latest version and try again",
    )


async def test_writing_the_same_again_keeps_the_version(cluster: InProcess) -> None:
    created = (await cluster.post(MAPS, configmap("a", k="1"))).ok(201)
    patched = (await cluster.patch(f"{MAPS}/a", {"data": {"k": "1"}})).ok()
    assert patched["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]


async def test_generated_names(cluster: InProcess) -> None:
    body = {"metadata": {"generateName": "run-"}}
    generated = [
        (await cluster.post(MAPS, dict(body))).ok(201)["metadata"]["name"] for _ in range(3)
    ]
    assert len(set(generated)) == 3
    assert all(name.startswith("run-") and len(name) == 9 for name in generated)


async def test_dry_run_stores_nothing(cluster: InProcess) -> None:
    version = cluster.store.version
    answered = (await cluster.post(f"{MAPS}?dryRun=All", configmap("a"))).ok(201)
    assert "resourceVersion" not in answered["metadata"]
    assert cluster.store.version == version
    assert (await cluster.get(f"{MAPS}/a")).code == 404


async def test_all_pages_show_one_snapshot(cluster: InProcess) -> None:
    for name in "abcde":
        await cluster.post(MAPS, configmap(name))
    first = (await cluster.get(f"{MAPS}?limit=2")).ok()
    assert names(first) == ["a", "b"]
    assert first["metadata"]["remainingItemCount"] == 3
    await cluster.delete(f"{MAPS}/c")
    await cluster.post(MAPS, configmap("bb"))
    token = first["metadata"]["continue"]
    second = (await cluster.get(f"{MAPS}?limit=2&continue={token}")).ok()
    assert names(second) == ["c", "d"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    token = second["metadata"]["continue"]
    last = (await cluster.get(f"{MAPS}?limit=2&continue={token}")).ok()
    assert names(last) == ["e"]
    assert "continue" not in last["metadata"]


async def test_page_tokens_belong_to_their_list(cluster: InProcess) -> None:
    for name in "abc":
        await cluster.post(MAPS, configmap(name))
    token = (await cluster.get(f"{MAPS}?limit=1")).ok()["metadata"]["continue"]
    other = await cluster.get(f"/api/v1/configmaps?limit=1&continue={token}")
    assert (other.code, "it belongs to another list" in other.body["message"]) == (400, True)
    cluster.server.parts.snapshots._snapshots.clear()
    gone = await cluster.get(f"{MAPS}?limit=1&continue={token}")
    assert (gone.code, gone.body["reason"]) == (410, "Expired")


async def test_finalizers_hold_an_object(cluster: InProcess) -> None:
    body = configmap("a")
    body["metadata"]["finalizers"] = ["example.com/hold"]
    await cluster.post(MAPS, body)
    assert "deletionTimestamp" in (await cluster.delete(f"{MAPS}/a")).ok()["metadata"]
    more = {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}
    refused = await cluster.patch(f"{MAPS}/a", more)
    assert 'found new finalizers []string{"example.com/more"}' in refused.body["message"]
    await cluster.patch(f"{MAPS}/a", {"metadata": {"finalizers": []}})
    assert (await cluster.get(f"{MAPS}/a")).code == 404


async def test_delete_preconditions(cluster: InProcess) -> None:
    await cluster.post(MAPS, configmap("a"))
    wrong = await cluster.delete(f"{MAPS}/a", {"preconditions": {"uid": "other"}})
    assert wrong.code == 409
    assert "UID in the precondition (other)" in wrong.body["message"]
    (await cluster.get(f"{MAPS}/a")).ok()


async def test_delete_collection_takes_the_selected(cluster: InProcess) -> None:
    for name, label in (("a", "x"), ("b", "y")):
        body = configmap(name)
        body["metadata"]["labels"] = {"l": label}
        await cluster.post(MAPS, body)
    (await cluster.delete(f"{MAPS}?labelSelector=l%3Dx")).ok()
    assert names((await cluster.get(MAPS)).ok()) == ["b"]


async def test_events_are_one_kind_under_two_groups(cluster: InProcess) -> None:
    new = "/apis/events.k8s.io/v1/namespaces/default/events"
    body = {
        "metadata": {"name": "e"},
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
        "note": "Pod bound",
        "reason": "Bound",
        "type": "Normal",
        "reportingController": "binder",
    }
    assert (await cluster.post(new, body)).ok(201)["note"] == "Pod bound"
    old = (
        await cluster.get("/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dp")
    ).ok()
    (event,) = old["items"]
    assert (event["message"], event["reportingComponent"]) == ("Pod bound", "binder")
    assert event["apiVersion"] == "v1"


async def test_aggregated_discovery_has_every_group(cluster: InProcess) -> None:
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    groups = (await cluster.get("/apis", accept=accept)).ok()
    assert {"apps", "batch", "resource.k8s.io"} <= {
        item["metadata"]["name"] for item in groups["items"]
    }
    core = (await cluster.get("/api", accept=accept)).ok()
    (version,) = core["items"][0]["versions"]
    pods = next(r for r in version["resources"] if r["resource"] == "pods")
    assert {"binding", "status", "eviction"} <= {s["subresource"] for s in pods["subresources"]}


async def test_openapi_index_names_a_document_per_group_version(cluster: InProcess) -> None:
    index = (await cluster.get("/openapi/v3")).ok()["paths"]
    assert index["apis/apps/v1"]["serverRelativeURL"].startswith("/openapi/v3/apis/apps/v1?hash=")
    document = (await cluster.get("/openapi/v3/apis/apps/v1")).ok()
    assert "io.k8s.api.core.v1.PodSpec" in document["components"]["schemas"]
    definitions = (await cluster.get("/openapi/v2")).ok()["definitions"]
    spec = definitions["io.k8s.api.apps.v1.Deployment"]["properties"]["spec"]
    assert spec["allOf"] == [{"$ref": "#/definitions/io.k8s.api.apps.v1.DeploymentSpec"}]


async def test_metadata_alone(cluster: InProcess) -> None:
    await cluster.post(MAPS, configmap("a", k="v"))
    accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    listing = (await cluster.get(MAPS, accept=accept)).ok()
    assert listing["kind"] == "PartialObjectMetadataList"
    assert list(listing["items"][0]) == ["kind", "apiVersion", "metadata"]


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/api/v1/unknown", 404),
        ("GET", "/apis/unknown/v1/things", 404),
        ("PUT", MAPS, 405),
        ("POST", f"{MAPS}/a", 405),
        ("GET", f"{MAPS}/a/status", 404),
        ("GET", "/api/v1/pods/a", 404),
        ("GET", f"{MAPS}?resourceVersion=abc", 400),
        ("GET", f"{MAPS}?resourceVersion=999999999", 504),
        ("GET", f"{MAPS}?fieldSelector=spec.x%3D1", 400),
        ("POST", f"{MAPS}?dryRun=Some", 422),
    ],
)
async def test_odd_requests(cluster: InProcess, method: str, path: str, code: int) -> None:
    assert (await cluster.call(method, path, {} if method != "GET" else None)).code == code


async def test_media_types_are_checked(cluster: InProcess) -> None:
    assert (await cluster.post(MAPS, configmap("a"), media="text/html")).code == 415
    assert (await cluster.patch(f"{MAPS}/a", {}, "application/json")).code == 415
    only_protobuf = "application/vnd.kubernetes.protobuf"
    assert (await cluster.get(MAPS, accept=only_protobuf)).code == 406
    both = f"{only_protobuf},application/json"
    (await cluster.get(MAPS, accept=both)).ok()


async def test_body_that_is_no_object_is_refused(cluster: InProcess) -> None:
    for body in (b"{", b"[]", b'"text"', b""):
        assert (await cluster.post(MAPS, body)).code == 400


async def test_yaml_bodies_are_read(cluster: InProcess) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}\ndata: {k: v}\n"
    created = (await cluster.post(MAPS, text, media="application/yaml")).ok(201)
    assert created["data"] == {"k": "v"}


async def test_wrong_kind_in_the_body(cluster: InProcess) -> None:
    answer = await cluster.post(MAPS, pod("a"))
    assert (answer.code, "must be of type ConfigMap" in answer.body["message"]) == (400, True)


async def test_node_status_by_strategic_patch(cluster: InProcess) -> None:
    node = {
        "metadata": {"name": "n1"},
        "status": {
            "capacity": {"nvidia.com/gpu": 8},
            "conditions": [{"type": "Ready", "status": "False"}],
        },
    }
    created = (await cluster.post("/api/v1/nodes", node)).ok(201)
    assert created["status"]["capacity"] == {"nvidia.com/gpu": "8"}
    patch = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    changed = (await cluster.patch("/api/v1/nodes/n1/status", patch, STRATEGIC)).ok()
    assert changed["status"]["conditions"] == [{"type": "Ready", "status": "True"}]
    assert changed["status"]["capacity"] == {"nvidia.com/gpu": "8"}

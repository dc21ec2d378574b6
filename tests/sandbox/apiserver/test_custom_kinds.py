"""CRDs: serving, pruning, refusing, subresources, versions, and going away."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.apiserver.conftest import InProcess, widget, widget_definition

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
SPEC = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 0},
        "colour": {"type": "string", "default": "red"},
        "frozen": {
            "type": "string",
            "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "immutable"}],
        },
    },
}


async def serve(cluster: InProcess, **version: Any) -> None:
    options = {"subresources": {"status": {}}, **version}
    (await cluster.post(CRDS, widget_definition(SPEC, **options))).ok(201)


async def test_new_kind_is_established_and_discovered(cluster: InProcess) -> None:
    await serve(cluster)
    definition = (await cluster.get(f"{CRDS}/widgets.example.com")).ok()
    conditions = {c["type"]: c["status"] for c in definition["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    listed = (await cluster.get("/apis/example.com/v1")).ok()
    assert [r["name"] for r in listed["resources"]] == ["widgets", "widgets/status"]
    document = (await cluster.get("/openapi/v3/apis/example.com/v1")).ok()
    schema = document["components"]["schemas"]["com.example.v1.Widget"]
    assert schema["properties"]["spec"] == SPEC
    patch = document["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"]["patch"]
    assert "fieldValidation" in [p["name"] for p in patch["parameters"]]
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]


async def test_object_is_pruned_defaulted_and_counted(cluster: InProcess) -> None:
    await serve(cluster)
    answer = await cluster.post(WIDGETS, widget("a", size=1, shape="round"))
    created = answer.ok(201)
    assert created["spec"] == {"size": 1, "colour": "red"}
    assert answer.headers["warning"] == '299 - "unknown field \\"spec.shape\\""'
    changed = (await cluster.patch(f"{WIDGETS}/a", {"spec": {"size": 2}})).ok()
    labelled = (await cluster.patch(f"{WIDGETS}/a", {"metadata": {"labels": {"a": "b"}}})).ok()
    assert [o["metadata"]["generation"] for o in (created, changed, labelled)] == [1, 2, 2]


async def test_strict_validation_refuses_unknown_fields(cluster: InProcess) -> None:
    await serve(cluster)
    (
        await cluster.post(f"{WIDGETS}?fieldValidation=Strict", widget("a", size=1, shape="x"))
    ).refused(
        400,
        'Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field '
        '"spec.shape"',
    )


async def test_refusals_leave_nothing_behind(cluster: InProcess) -> None:
    await serve(cluster)
    (await cluster.post(WIDGETS, widget("a"))).refused(
        422,
        'Widget.example.com "a" is invalid: [spec.size: Required value, <nil>: Invalid value: null: some '
        "validation rules were not checked because the object was invalid; correct the existing errors "
        "to complete validation]",
    )
    assert (await cluster.get(f"{WIDGETS}/a")).code == 404


async def test_transition_rule(cluster: InProcess) -> None:
    await serve(cluster)
    await cluster.post(WIDGETS, widget("a", size=1, frozen="x"))
    (await cluster.patch(f"{WIDGETS}/a", {"spec": {"frozen": "y"}})).refused(
        422, 'Widget.example.com "a" is invalid: spec.frozen: Invalid value: "y": immutable'
    )


async def test_the_status_endpoint_writes_the_status_only(cluster: InProcess) -> None:
    await serve(cluster)
    body = {**widget("a", size=1), "status": {"phase": "x"}}
    assert "status" not in (await cluster.post(WIDGETS, body)).ok(201)
    patch = {"metadata": {"labels": {"l": "1"}}, "spec": {"size": 9}, "status": {"phase": "y"}}
    changed = (await cluster.patch(f"{WIDGETS}/a/status", patch)).ok()
    assert changed["status"] == {"phase": "y"}
    assert changed["spec"]["size"] == 1
    assert "labels" not in changed["metadata"]
    assert changed["metadata"]["generation"] == 1


async def test_replacing_needs_a_version(cluster: InProcess) -> None:
    await serve(cluster)
    created = (await cluster.post(WIDGETS, widget("a", size=1))).ok(201)
    (await cluster.call("PUT", f"{WIDGETS}/a", widget("a", size=2))).refused(
        422,
        'widgets.example.com "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be '
        "specified for an update",
    )
    created["spec"]["size"] = 3
    (await cluster.call("PUT", f"{WIDGETS}/a", created)).ok()
    answer = await cluster.call("PUT", f"{WIDGETS}/a", created)
    assert (answer.code, answer.body["reason"]) == (409, "Conflict")


async def test_printer_columns_and_scale(cluster: InProcess) -> None:
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
    columns = [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {
            "name": "Ready",
            "type": "string",
            "jsonPath": '.status.conditions[?(@.type=="Ready")].status',
        },
    ]
    await serve(
        cluster, additionalPrinterColumns=columns, subresources={"status": {}, "scale": scale}
    )
    await cluster.post(WIDGETS, widget("a", size=4))
    status = {"status": {"conditions": [{"type": "Ready", "status": "True"}], "size": 2}}
    await cluster.patch(f"{WIDGETS}/a/status", status)
    table = (await cluster.get(WIDGETS, accept="application/json;as=Table;v=v1;g=meta.k8s.io")).ok()
    assert [c["name"] for c in table["columnDefinitions"]] == ["Name", "Size", "Ready"]
    assert table["rows"][0]["cells"] == ["a", 4, "True"]
    scale = (await cluster.get(f"{WIDGETS}/a/scale")).ok()
    assert (scale["spec"], scale["status"]) == ({"replicas": 4}, {"replicas": 2})
    await cluster.patch(f"{WIDGETS}/a/scale", {"spec": {"replicas": 7}})
    assert (await cluster.get(f"{WIDGETS}/a")).ok()["spec"]["size"] == 7


async def test_two_versions_share_their_objects(cluster: InProcess) -> None:
    definition = widget_definition(SPEC)
    second = {**definition["spec"]["versions"][0], "name": "v2", "storage": False}
    definition["spec"]["versions"].append(second)
    (await cluster.post(CRDS, definition)).ok(201)
    body = {**widget("a", size=1), "apiVersion": "example.com/v2"}
    new = "/apis/example.com/v2/namespaces/default/widgets"
    assert (await cluster.post(new, body)).ok(201)["apiVersion"] == "example.com/v2"
    assert (await cluster.get(f"{WIDGETS}/a")).ok()["apiVersion"] == "example.com/v1"
    group = (await cluster.get("/apis/example.com")).ok()
    assert group["preferredVersion"]["version"] == "v2"


async def test_objects_go_with_their_definition(cluster: InProcess) -> None:
    await serve(cluster)
    await cluster.post(WIDGETS, widget("a", size=1))
    (await cluster.delete(f"{CRDS}/widgets.example.com")).ok()
    assert (await cluster.get(WIDGETS)).code == 404
    assert not cluster.store.collection("widgets.example.com").entries


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"metadata": {"name": "foo"}},
            'CustomResourceDefinition.apiextensions.k8s.io "foo" is invalid: metadata.name: Invalid '
            'value: "foo": must be spec.names.plural+"."+spec.group',
        ),
        (
            {"spec": {**widget_definition({"description": "no type"})["spec"]}},
            'CustomResourceDefinition.apiextensions.k8s.io "widgets.example.com" is invalid: '
            "spec.validation.openAPIV3Schema.properties[spec].type: Required value: must not be empty "
            "for specified object fields",
        ),
    ],
)
async def test_bad_definitions(cluster: InProcess, change: dict[str, Any], message: str) -> None:
    (await cluster.post(CRDS, {**widget_definition(SPEC), **change})).refused(422, message)


async def test_rule_that_does_not_compile_is_refused_with_the_definition(
    cluster: InProcess,
) -> None:
    broken = {"type": "string", "x-kubernetes-validations": [{"rule": "self >>> 1"}]}
    answer = await cluster.post(CRDS, widget_definition(broken))
    assert answer.code == 422
    assert "x-kubernetes-validations[0].rule" in answer.body["message"]
    assert "compilation failed" in answer.body["message"]

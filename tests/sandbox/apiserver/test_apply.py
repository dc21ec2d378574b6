"""Server-side apply: ownership, sharing, removal, conflicts and the paths they name."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.apiserver.patch.apply import shown_path
from sandbox.apiserver.patch.fieldset import from_fields_v1, to_fields_v1
from tests.sandbox.apiserver.conftest import (
    APPLY,
    STRATEGIC,
    Answer,
    InProcess,
    widget,
    widget_definition,
)

MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


async def apply_data(cluster: InProcess, manager: str, query: str = "", **data: str) -> Answer:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}
    return await cluster.patch(f"{MAPS}/a?fieldManager={manager}{query}", body, APPLY)


def owners(obj: dict[str, Any]) -> dict[str, list[str]]:
    """Return the data keys that each manager owns."""
    return {
        entry["manager"]: sorted(
            field.removeprefix("f:")
            for field in entry["fieldsV1"].get("f:data", {})
            if field != "."
        )
        for entry in obj["metadata"].get("managedFields", [])
    }


def deployment(*containers: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [*containers]}},
        },
    }


async def test_apply_creates_and_then_changes_nothing(cluster: InProcess) -> None:
    first = (await apply_data(cluster, "m1", x="1")).ok(201)
    second = (await apply_data(cluster, "m1", x="1")).ok()
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert owners(second) == {"m1": ["x"]}


async def test_equal_values_are_shared_and_survive_one_owner(cluster: InProcess) -> None:
    await apply_data(cluster, "m1", x="1", y="2")
    await apply_data(cluster, "m2", x="1")
    applied = (await apply_data(cluster, "m1", y="2")).ok()
    assert applied["data"] == {"x": "1", "y": "2"}
    assert owners(applied) == {"m1": ["y"], "m2": ["x"]}


async def test_fields_left_out_are_removed(cluster: InProcess) -> None:
    await apply_data(cluster, "m1", x="1", y="2")
    applied = (await apply_data(cluster, "m1", y="2")).ok()
    assert applied["data"] == {"y": "2"}


async def test_containers_that_removal_empties_go_too(cluster: InProcess) -> None:
    definition = widget_definition({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    (await cluster.post(crds, definition)).ok(201)
    url = "/apis/example.com/v1/namespaces/default/widgets/w?fieldManager=m"
    full = widget("w", a={"b": {"c": 1}}, kept={"d": {}}, x=1)
    (await cluster.patch(url, full, APPLY)).ok(201)
    less = (await cluster.patch(url, widget("w", kept={"d": {}}, x=1), APPLY)).ok()
    assert less["spec"] == {"kept": {"d": {}}, "x": 1}


async def test_conflict_names_manager_and_field_and_changes_nothing(cluster: InProcess) -> None:
    await apply_data(cluster, "m1", x="1")
    answer = await apply_data(cluster, "m2", x="9")
    answer.refused(409, 'Apply failed with 1 conflict: conflict with "m1": .data.x')
    assert answer.body["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "m1"', "field": ".data.x"}
    ]
    assert (await cluster.get(f"{MAPS}/a")).ok()["data"] == {"x": "1"}


async def test_several_conflicts_are_listed_by_manager(cluster: InProcess) -> None:
    await apply_data(cluster, "m1", x="1", y="1")
    answer = await apply_data(cluster, "m2", x="9", y="9")
    answer.refused(409, 'Apply failed with 2 conflicts: conflicts with "m1":\n- .data.x\n- .data.y')


async def test_force_takes_the_field_over(cluster: InProcess) -> None:
    await apply_data(cluster, "m1", x="1", y="1")
    applied = (await apply_data(cluster, "m2", "&force=true", x="9")).ok()
    assert applied["data"] == {"x": "9", "y": "1"}
    assert owners(applied) == {"m1": ["y"], "m2": ["x"]}


async def test_plain_patch_takes_fields_without_asking(cluster: InProcess) -> None:
    await apply_data(cluster, "m1", x="1", y="1")
    patched = (await cluster.patch(f"{MAPS}/a?fieldManager=m3", {"data": {"x": "3"}})).ok()
    assert owners(patched) == {"m1": ["y"], "m3": ["x"]}
    answer = await apply_data(cluster, "m1", x="1", y="1")
    answer.refused(409, 'Apply failed with 1 conflict: conflict with "m3" using v1: .data.x')


async def test_fields_from_before_the_first_apply_have_an_owner(cluster: InProcess) -> None:
    body = {"metadata": {"name": "a"}, "data": {"x": "1"}}
    created = (await cluster.post(MAPS, body)).ok(201)
    assert "managedFields" not in created["metadata"]
    answer = await apply_data(cluster, "m1", x="2")
    answer.refused(
        409, 'Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.x'
    )


async def test_kubectl_moves_from_client_to_server_without_conflict(cluster: InProcess) -> None:
    last = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"1"}}'
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": last}
    body = {"metadata": {"name": "a", "annotations": annotations}, "data": {"x": "1", "y": "1"}}
    (await cluster.post(MAPS, body)).ok(201)
    assert (await apply_data(cluster, "kubectl", x="2")).ok()["data"] == {"x": "2", "y": "1"}
    answer = await apply_data(cluster, "kubectl", x="2", y="2")
    answer.refused(
        409, 'Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.y'
    )


async def test_keyed_lists_merge_and_lose_only_own_items(cluster: InProcess) -> None:
    url = f"{DEPLOYMENTS}/d?fieldManager="
    await cluster.patch(url + "m1", deployment({"name": "main", "image": "m"}), APPLY)
    side = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"template": {"spec": {"containers": [{"name": "side", "image": "s"}]}}},
    }
    (await cluster.patch(url + "m2", side, APPLY)).ok()
    with_port = {"name": "main", "image": "m", "ports": [{"containerPort": 80}]}
    (await cluster.patch(url + "m1", deployment(with_port), APPLY)).ok()
    final = (
        await cluster.patch(url + "m1", deployment({"name": "main", "image": "m"}), APPLY)
    ).ok()
    ports_of = {c["name"]: c.get("ports") for c in final["spec"]["template"]["spec"]["containers"]}
    assert ports_of == {"main": None, "side": None}


async def test_a_port_without_protocol_is_tcp(cluster: InProcess) -> None:
    container = {"name": "main", "image": "m", "ports": [{"containerPort": 80}]}
    created = (
        await cluster.patch(f"{DEPLOYMENTS}/d?fieldManager=m1", deployment(container), APPLY)
    ).ok(201)
    fields = created["metadata"]["managedFields"][0]["fieldsV1"]
    main = fields["f:spec"]["f:template"]["f:spec"]["f:containers"]['k:{"name":"main"}']
    assert list(main["f:ports"]) == ['k:{"containerPort":80,"protocol":"TCP"}']


async def test_status_has_owners_of_its_own(cluster: InProcess) -> None:
    await cluster.patch(
        f"{DEPLOYMENTS}/d?fieldManager=m1", deployment({"name": "main", "image": "m"}), APPLY
    )
    status = {"status": {"replicas": 1}}
    changed = (
        await cluster.patch(f"{DEPLOYMENTS}/d/status?fieldManager=ctl", status, STRATEGIC)
    ).ok()
    entries = {e["manager"]: e for e in changed["metadata"]["managedFields"]}
    assert entries["ctl"]["subresource"] == "status"
    assert entries["ctl"]["fieldsV1"] == {"f:status": {"f:replicas": {}}}


async def test_resetting_managed_fields(cluster: InProcess) -> None:
    await apply_data(cluster, "m1", x="1")
    cleared = (await cluster.patch(f"{MAPS}/a", {"metadata": {"managedFields": [{}]}})).ok()
    assert "managedFields" not in cleared["metadata"]


@pytest.mark.parametrize(
    ("query", "body", "code", "message"),
    [
        (
            "",
            {},
            422,
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
        ),
        ("?fieldManager=m", {"kind": "Secret"}, 400, "invalid object type: /v1, Kind=Secret"),
        (
            "?fieldManager=m",
            {"metadata": {"name": "a", "managedFields": [{"manager": "x", "operation": "Apply"}]}},
            400,
            "metadata.managedFields must be nil",
        ),
        (
            "?fieldManager=m",
            {"colour": "red"},
            500,
            "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .colour: field not declared in schema",
        ),
    ],
)
async def test_refusals(
    cluster: InProcess, query: str, body: dict[str, Any], code: int, message: str
) -> None:
    whole = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, **body}
    (await cluster.patch(f"{MAPS}/a{query}", whole, APPLY)).refused(code, message)


def test_path_is_shown_as_people_write_it() -> None:
    path = ("f:spec", "f:ports", 'k:{"containerPort":80,"protocol":"TCP"}', "f:name")
    assert shown_path(path) == '.spec.ports[containerPort=80,protocol="TCP"].name'
    assert shown_path(("f:metadata", "f:finalizers", 'v:"x/y"')) == '.metadata.finalizers[="x/y"]'


SEGMENTS = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"'])


@settings(deadline=None)
@given(st.sets(st.lists(SEGMENTS, min_size=1, max_size=4).map(tuple), min_size=1))
def test_fields_survive_their_written_form(fields: set[tuple[str, ...]]) -> None:
    assert from_fields_v1(to_fields_v1(fields)) == fields

"""Protobuf bodies: what the table reads, and what it refuses to guess."""

from __future__ import annotations

import pytest

from sandbox.apiserver.data.bundle import bundle, protobuf_fields
from sandbox.apiserver.model.errors import ApiError
from sandbox.apiserver.schema.openapi_v2_protobuf import _field, _text, _varint
from sandbox.apiserver.wire.protobuf import MAGIC, decode_object, is_protobuf
from tests.sandbox.apiserver.conftest import InProcess

MEDIA = "application/vnd.kubernetes.protobuf"


def number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    return MAGIC + _field(1, _text(1, api_version) + _text(2, kind)) + _field(2, raw)


def test_access_review() -> None:
    attributes = _text(2, "create") + _text(5, "pods") + _text(1, "default")
    raw = _field(1, b"") + _field(2, _field(1, attributes)) + _field(3, number(1, 0))
    assert decode_object(envelope("authorization.k8s.io/v1", "SelfSubjectAccessReview", raw)) == {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {
            "resourceAttributes": {"verb": "create", "resource": "pods", "namespace": "default"}
        },
        "status": {"allowed": False},
    }


def test_zero_of_a_pointer_is_kept_and_of_a_plain_field_dropped() -> None:
    spec = number(1, 0) + number(5, 0) + number(7, 0)
    raw = _field(1, _text(1, "d")) + _field(2, spec)
    decoded = decode_object(envelope("apps/v1", "Deployment", raw))
    assert decoded["spec"] == {"replicas": 0}


def test_maps_times_quantities_and_ports() -> None:
    labels = _field(11, _text(1, "a") + _text(2, "b"))
    when = number(1, 1_700_000_000) + number(2, 250_000_000)
    lease = _field(1, _text(1, "l") + labels) + _field(2, _text(1, "me") + _field(4, when))
    decoded = decode_object(envelope("coordination.k8s.io/v1", "Lease", lease))
    assert decoded["metadata"] == {"name": "l", "labels": {"a": "b"}}
    assert decoded["spec"]["renewTime"] == "2023-11-14T22:13:20.250000Z"
    port = number(3, 80) + _field(4, number(1, 0) + number(2, 8080))
    service = _field(1, _text(1, "s")) + _field(2, _field(1, port))
    decoded = decode_object(envelope("v1", "Service", service))
    assert decoded["spec"]["ports"] == [{"port": 80, "targetPort": 8080}]
    hard = _field(1, _text(1, "pods") + _field(2, _text(1, "3")))
    quota = decode_object(envelope("v1", "ResourceQuota", _field(2, hard)))
    assert quota["spec"] == {"hard": {"pods": "3"}}


def test_two_kinds_named_event_are_distinguished_by_group() -> None:
    core = decode_object(envelope("v1", "Event", _text(4, "text")))
    new = decode_object(envelope("events.k8s.io/v1", "Event", _text(10, "text")))
    assert (core["message"], new["note"]) == ("text", "text")


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (envelope("example.com/v1", "Nonsense", b""), 415),
        (envelope("v1", "ConfigMap", _text(99, "content")), 415),
        (b"no magic", 400),
        (envelope("v1", "ConfigMap", b"\x0a\xff"), 400),
        (envelope("v1", "ConfigMap", _field(1, number(1, 5))), 400),
        (envelope("v1", "ConfigMap", _field(1, _field(8, number(1, 1 << 60)))), 400),
    ],
)
def test_refusals(data: bytes, code: int) -> None:
    with pytest.raises(ApiError) as caught:
        decode_object(data)
    assert caught.value.code == code


def test_every_named_message_exists() -> None:
    plain = {"text", "bytes", "int", "bool", "time", "quantity", "port", "json"}
    messages = protobuf_fields().messages
    assert set(protobuf_fields().kinds.values()) <= set(messages)
    for name, fields in messages.items():
        for _, code in fields.values():
            bare = code.rstrip("?").removesuffix("[]").removesuffix("{}").removesuffix("[]")
            assert bare in plain or bare in messages, (name, code)


def test_every_kind_that_can_be_written_has_its_fields() -> None:
    kinds_written = {
        f"{group_version}/{resource['kind']}"
        for group_version, resources in bundle(with_gangs=True).groups.items()
        for resource in resources
        if {"create", "update"} & set(resource["verbs"]) and "/" not in resource["name"]
    }
    # The clients of custom resource definitions send JSON.
    kinds_written = {kind for kind in kinds_written if not kind.startswith("apiextensions.k8s.io/")}
    assert kinds_written <= set(protobuf_fields().kinds)


def test_inlined_fields_lists_with_a_name_and_raw_json() -> None:
    volume = _text(1, "data") + _field(2, _field(2, b""))
    host_path = _text(1, "host") + _field(2, _field(1, _text(1, "/dev")))
    spec = _field(1, volume) + _field(1, host_path)
    pod = decode_object(envelope("v1", "Pod", _field(2, spec)))
    assert pod["spec"]["volumes"] == [
        {"name": "data", "emptyDir": {}},
        {"name": "host", "hostPath": {"path": "/dev"}},
    ]
    extra = _field(5, _text(1, "scopes") + _field(2, _text(1, "a") + _text(1, "b")))
    review = decode_object(
        envelope("authorization.k8s.io/v1", "SubjectAccessReview", _field(2, extra))
    )
    assert review["spec"] == {"extra": {"scopes": ["a", "b"]}}
    managed = _text(1, "kubectl") + _field(7, _text(1, '{"f:data":{}}'))
    config_map = decode_object(envelope("v1", "ConfigMap", _field(1, _field(17, managed))))
    assert config_map["metadata"]["managedFields"] == [
        {"manager": "kubectl", "fieldsV1": {"f:data": {}}}
    ]


async def test_protobuf_body_end_to_end(cluster: InProcess) -> None:
    data = envelope(
        "v1", "ConfigMap", _field(1, _text(1, "p")) + _field(2, _text(1, "k") + _text(2, "v"))
    )
    assert is_protobuf(MEDIA, data)
    created = (await cluster.post("/api/v1/namespaces/default/configmaps", data, media=MEDIA)).ok(
        201
    )
    assert created["data"] == {"k": "v"}

"""Schemas: what is dropped, filled in and refused."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.apiserver.data.bundle import bundle
from sandbox.apiserver.model.resources import Registry
from sandbox.apiserver.model.shapes import Shape
from sandbox.apiserver.schema import validation

POD = "io.k8s.api.core.v1.Pod"


def shape(**body: Any) -> Shape:
    return Shape(body, lambda name: {})


def sentences(value: Any, of: Shape, path: str = "spec") -> list[str]:
    return [cause.sentence for cause in validation.validate(value, of, path)]


@pytest.fixture(scope="module")
def pod_shape() -> Shape:
    return Registry(bundle()).shape(POD)


def test_sift_drops_unknown_fields_and_nulls_of_built_in_kinds(pod_shape: Shape) -> None:
    pod = {
        "metadata": {"name": "a", "labels": None, "colour": "red"},
        "spec": {"containers": [{"name": "c", "size": 1}], "nodeSelector": {}, "volumes": []},
    }
    findings = validation.sift(pod, pod_shape)
    assert sorted(path for path, _ in findings or ()) == [
        ".metadata.colour",
        ".spec.containers[0].size",
    ]
    assert pod == {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}]}}


def test_sift_finds_nothing_in_a_good_object(pod_shape: Shape) -> None:
    assert validation.sift({"spec": {"containers": [{"name": "c"}]}}, pod_shape) is None


def test_sift_reports_wrong_types(pod_shape: Shape) -> None:
    findings = validation.sift({"spec": {"containers": "x", "nodeName": 5}}, pod_shape)
    assert findings == [
        (
            ".spec.containers",
            "json: cannot unmarshal string into Go struct field {place} of type array",
        ),
        (
            ".spec.nodeName",
            "json: cannot unmarshal number into Go struct field {place} of type string",
        ),
    ]


def test_sift_canonicalises_quantities(pod_shape: Shape) -> None:
    resources = {"limits": {"cpu": "1000m", "memory": "1024Mi", "nvidia.com/gpu": 2}}
    pod = {"spec": {"containers": [{"name": "c", "resources": resources}]}}
    assert validation.sift(pod, pod_shape) is None
    assert resources == {"limits": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "2"}}


def test_prune_follows_structural_schemas() -> None:
    of = shape(
        type="object",
        properties={
            "known": {"type": "string"},
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "closed": {"type": "object"},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "list": {
                "type": "array",
                "items": {"type": "object", "properties": {"a": {"type": "string"}}},
            },
        },
    )
    value = {
        "known": "x",
        "extra": 1,
        "open": {"any": 1},
        "closed": {"any": 1},
        "map": {"k": "v"},
        "list": [{"a": "1", "b": "2"}],
    }
    assert validation.prune(value, of) == [".extra", ".closed.any", ".list[0].b"]
    assert value == {
        "known": "x",
        "open": {"any": 1},
        "closed": {},
        "map": {"k": "v"},
        "list": [{"a": "1"}],
    }


def test_defaults_fill_gaps_and_replace_forbidden_nulls() -> None:
    of = shape(
        type="object",
        properties={
            "a": {"type": "string", "default": "x"},
            "b": {"type": "string", "nullable": True},
            "c": {"type": "string"},
            "d": {
                "type": "object",
                "default": {},
                "properties": {"e": {"type": "integer", "default": 3}},
            },
        },
    )
    value: dict[str, Any] = {"a": None, "b": None, "c": None}
    validation.fill_defaults(value, of)
    assert value == {"a": "x", "b": None, "d": {"e": 3}}


@pytest.mark.parametrize(
    ("body", "value", "expected"),
    [
        (
            {"type": "string"},
            1,
            'spec: Invalid value: "integer": spec in body must be of type string: "integer"',
        ),
        (
            {"type": "integer"},
            1.5,
            'spec: Invalid value: "number": spec in body must be of type integer: "number"',
        ),
        (
            {"type": "string", "enum": ["A", "B"]},
            "C",
            'spec: Unsupported value: "C": supported values: "A", "B"',
        ),
        (
            {"type": "string", "minLength": 2},
            "a",
            'spec: Invalid value: "a": spec in body should be at least 2 chars long',
        ),
        ({"type": "string", "maxLength": 1}, "ab", "spec: Too long: may not be more than 1 bytes"),
        (
            {"type": "string", "pattern": "^a$"},
            "b",
            "spec: Invalid value: \"b\": spec in body should match '^a$'",
        ),
        (
            {"type": "integer", "minimum": 0},
            -1,
            "spec: Invalid value: -1: spec in body should be greater than or equal to 0",
        ),
        (
            {"type": "number", "maximum": 1},
            2.5,
            "spec: Invalid value: 2.5: spec in body should be less than or equal to 1",
        ),
        (
            {"type": "array", "minItems": 1, "items": {}},
            [],
            "spec: Invalid value: 0: spec in body should have at least 1 items",
        ),
        (
            {"type": "array", "maxItems": 1, "items": {}},
            [1, 2],
            "spec: Too many: 2: must have at most 1 items",
        ),
        ({"type": "object", "required": ["x"]}, {}, "spec.x: Required value"),
        (
            {"type": "array", "x-kubernetes-list-type": "set", "items": {}},
            ["a", "a"],
            'spec[1]: Duplicate value: "a"',
        ),
        (
            {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object"},
            },
            [{"name": "a"}, {"name": "a"}],
            'spec[1]: Duplicate value: {"name":"a"}',
        ),
        (
            {"x-kubernetes-int-or-string": True},
            1.5,
            'spec: Invalid value: "number": spec in body must be of type integer,string: "number"',
        ),
        (
            {"type": "string", "format": "date-time"},
            "noon",
            'spec: Invalid value: "noon": spec in body must be of type date-time: "noon"',
        ),
        (
            {"type": "integer", "format": "int32"},
            1 << 40,
            "spec: Invalid value: 1099511627776: spec in body must be a valid int32",
        ),
    ],
)
def test_refusals(body: dict[str, Any], value: Any, expected: str) -> None:
    assert sentences(value, shape(**body)) == [expected]


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ({"type": "integer"}, 2.0),
        ({"type": "string", "nullable": True}, None),
        ({"x-kubernetes-int-or-string": True}, "5"),
        ({"x-kubernetes-int-or-string": True}, 5),
        ({"type": "object", "additionalProperties": {"type": "string"}}, {"k": "v"}),
        ({"anyOf": [{"minimum": 5}, {"maximum": 1}], "type": "integer"}, 0),
    ],
)
def test_acceptances(body: dict[str, Any], value: Any) -> None:
    assert sentences(value, shape(**body)) == []


def test_no_branch_of_any_of_holds() -> None:
    of = shape(type="integer", anyOf=[{"minimum": 5}, {"maximum": 1}])
    (sentence,) = sentences(3, of)
    assert sentence.endswith("must validate at least one schema (anyOf)")

"""Selectors: which labels and fields each form selects, and what is refused."""

from __future__ import annotations

import pytest

from sandbox.apiserver.model.errors import ApiError
from sandbox.apiserver.model.selectors import (
    field_selector,
    label_selector,
    object_selector,
    required_field,
)

KNOWN = {"metadata.name", "metadata.namespace", "status.phase"}


@pytest.mark.parametrize(
    ("text", "labels", "expected"),
    [
        ("a=b", {"a": "b"}, True),
        ("a=b", {"a": "c"}, False),
        ("a==b", {"a": "b"}, True),
        ("a!=b", {"a": "b"}, False),
        ("a!=b", {}, True),
        ("a in (b, c)", {"a": "c"}, True),
        ("a in (b,c)", {}, False),
        ("a notin (b,c)", {"a": "d"}, True),
        ("a notin (b,c)", {}, True),
        ("a", {"a": ""}, True),
        ("a", {}, False),
        ("!a", {}, True),
        ("!a", {"a": "x"}, False),
        ("a=", {"a": ""}, True),
        ("n>3", {"n": "4"}, True),
        ("n<3", {"n": "4"}, False),
        ("n>3", {"n": "x"}, False),
        ("a=b,c in (d,e),!f", {"a": "b", "c": "e"}, True),
        ("a=b,c in (d,e),!f", {"a": "b", "c": "e", "f": ""}, False),
        ("kai.scheduler/node-pool notin (x)", {"kai.scheduler/node-pool": "y"}, True),
    ],
)
def test_label_selector(text: str, labels: dict[str, str], expected: bool) -> None:
    selects = label_selector(text)
    assert selects is not None
    assert selects(labels) is expected


def test_empty_selectors_select_without_a_predicate() -> None:
    assert label_selector(" ") is None
    assert field_selector("", KNOWN) is None
    assert object_selector({}) is None


def test_unparsable_requirement_is_refused() -> None:
    with pytest.raises(ApiError, match="unable to parse requirement") as caught:
        label_selector("a b c")
    assert caught.value.code == 400


def test_object_selector_joins_labels_and_expressions() -> None:
    selects = object_selector(
        {
            "matchLabels": {"app": "x"},
            "matchExpressions": [
                {"key": "tier", "operator": "NotIn", "values": ["db"]},
                {"key": "app", "operator": "Exists"},
                {"key": "old", "operator": "DoesNotExist"},
            ],
        }
    )
    assert selects is not None
    assert selects({"app": "x", "tier": "web"})
    assert not selects({"app": "x", "tier": "db"})
    assert not selects({"app": "x", "old": ""})


def test_field_selector_treats_a_missing_field_as_empty() -> None:
    selects = field_selector("status.phase!=Running,metadata.name=a", KNOWN)
    assert selects is not None
    assert selects({"metadata.name": "a"})
    assert not selects({"metadata.name": "a", "status.phase": "Running"})


def test_unknown_field_is_named() -> None:
    with pytest.raises(ApiError, match=r"field label not supported: spec\.foo"):
        field_selector("spec.foo=1", KNOWN)
    with pytest.raises(ApiError, match=r'"spec\.foo" is not a known field selector'):
        field_selector("spec.foo=1", {"metadata.name", "metadata.namespace"})


def test_required_field_finds_the_demanded_value() -> None:
    assert required_field("status.phase=Running,metadata.name==a", "metadata.name") == "a"
    assert required_field("metadata.name!=a", "metadata.name") is None

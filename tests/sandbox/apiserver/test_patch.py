"""Patches: merge, strategic with its directives, JSON operations."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.apiserver.data.bundle import bundle
from sandbox.apiserver.model.errors import ApiError
from sandbox.apiserver.model.resources import Registry
from sandbox.apiserver.model.shapes import Shape
from sandbox.apiserver.patch.merge import apply_merge
from sandbox.apiserver.patch.operations import apply_operations
from sandbox.apiserver.patch.strategic import apply_strategic


@pytest.fixture(scope="module")
def pod_shape() -> Shape:
    return Registry(bundle()).shape("io.k8s.api.core.v1.Pod")


def containers(*names: str, **fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": name, **fields} for name in names]}}


def names(pod: dict[str, Any]) -> list[str]:
    return [container["name"] for container in pod["spec"]["containers"]]


def test_merge_patch_deletes_by_null_and_replaces_lists() -> None:
    value = {"a": {"b": 1, "c": 2}, "l": [1, 2], "x": 1}
    patch = {"a": {"b": None, "d": {"e": None, "f": 3}}, "l": [3], "x": {"y": 1}}
    assert apply_merge(value, patch) == {"a": {"c": 2, "d": {"f": 3}}, "l": [3], "x": {"y": 1}}
    assert value == {"a": {"b": 1, "c": 2}, "l": [1, 2], "x": 1}


def test_strategic_merges_containers_by_name(pod_shape: Shape) -> None:
    patch = {"spec": {"containers": [{"name": "b", "image": "new"}]}}
    patched = apply_strategic(containers("a", "b", image="old"), patch, pod_shape)
    assert patched["spec"]["containers"] == [
        {"name": "a", "image": "old"},
        {"name": "b", "image": "new"},
    ]


def test_strategic_puts_new_items_first(pod_shape: Shape) -> None:
    assert names(apply_strategic(containers("a"), containers("b"), pod_shape)) == ["b", "a"]


def test_strategic_set_element_order_decides_the_order_of_the_list(pod_shape: Shape) -> None:
    patch = containers("c")
    patch["spec"]["$setElementOrder/containers"] = [{"name": "a"}, {"name": "b"}, {"name": "c"}]
    assert names(apply_strategic(containers("a", "b"), patch, pod_shape)) == ["a", "b", "c"]


def test_strategic_delete_and_replace_directives(pod_shape: Shape) -> None:
    deletion = {"spec": {"containers": [{"name": "a", "$patch": "delete"}]}}
    assert names(apply_strategic(containers("a", "b"), deletion, pod_shape)) == ["b"]
    replacement = {"spec": {"containers": [{"$patch": "replace"}, {"name": "z"}]}}
    assert names(apply_strategic(containers("a", "b"), replacement, pod_shape)) == ["z"]


def test_strategic_set_and_delete_from_primitive_list(pod_shape: Shape) -> None:
    value = {"metadata": {"finalizers": ["x/a", "x/b"]}}
    added = apply_strategic(value, {"metadata": {"finalizers": ["x/c", "x/a"]}}, pod_shape)
    assert sorted(added["metadata"]["finalizers"]) == ["x/a", "x/b", "x/c"]
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x/a"]}}
    assert apply_strategic(value, patch, pod_shape) == {"metadata": {"finalizers": ["x/b"]}}


def test_strategic_replaces_atomic_lists(pod_shape: Shape) -> None:
    value = {"spec": {"containers": [{"name": "a", "command": ["x", "y"]}]}}
    patch = {"spec": {"containers": [{"name": "a", "command": ["z"]}]}}
    assert apply_strategic(value, patch, pod_shape)["spec"]["containers"][0]["command"] == ["z"]


def test_strategic_retain_keys_drops_the_keys_it_does_not_list() -> None:
    value = {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}
    patch = {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}
    assert apply_strategic(value, patch, None) == {"strategy": {"type": "Recreate"}}


def test_strategic_without_merge_key_is_refused(pod_shape: Shape) -> None:
    with pytest.raises(ApiError, match="does not contain declared merge key: name"):
        apply_strategic(containers("a"), {"spec": {"containers": [{"image": "x"}]}}, pod_shape)


def test_json_patch_is_all_or_nothing() -> None:
    value = {"a": 1, "l": [1]}
    operations = [{"op": "add", "path": "/l/-", "value": 2}, {"op": "remove", "path": "/a"}]
    assert apply_operations(value, operations) == {"l": [1, 2]}
    failing = [{"op": "remove", "path": "/a"}, {"op": "test", "path": "/l/0", "value": 9}]
    with pytest.raises(ApiError) as caught:
        apply_operations(value, failing)
    assert caught.value.code == 422
    assert value == {"a": 1, "l": [1]}


def test_json_patch_must_be_a_list() -> None:
    with pytest.raises(ApiError, match="error decoding patch") as caught:
        apply_operations({}, {"op": "add"})
    assert caught.value.code == 400

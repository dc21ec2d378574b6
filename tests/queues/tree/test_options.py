"""The options of a queue: annotations, read and written in one place."""

from __future__ import annotations

import json

import pytest

from kube.keys import GPU_MODELS, MAX_RUN_TIME, REQUEUE_DELAY, USER_FAIRNESS
from queues.editing import edits
from queues.editing.bodies import patch_between
from queues.editing.tags import tag_of_body
from queues.tree import hierarchy
from queues.tree.options import NO_OPTIONS, ModelBounds, read_options
from queues.tree.shape import QueueShape, read_queue, shapes_of


def body(**annotations: str) -> dict:
    return {**edits.new_queue("a"), "metadata": {"name": "a", "annotations": annotations}}


def test_without_annotations_a_queue_is_as_in_kai() -> None:
    options, findings = read_options({"example.com/other": "true"})
    assert (options.user_fairness, options.gpu_models, findings) == (False, {}, ())


def test_options_are_read_from_annotations() -> None:
    models = json.dumps({"H100": {"limit": 4}, "A100": {"quota": 8, "limit": -1}})
    options, findings = read_options({USER_FAIRNESS: "true", GPU_MODELS: models})
    assert findings == ()
    assert options.user_fairness
    assert options.gpu_models == {
        "A100": ModelBounds(quota=8, limit=-1),
        "H100": ModelBounds(limit=4),
    }


@pytest.mark.parametrize(
    ("key", "text", "pointer"),
    [
        (USER_FAIRNESS, "yes", "/userFairness"),
        (MAX_RUN_TIME, "8 hours", "/maxRunTime"),
        (REQUEUE_DELAY, "-5m", "/requeueDelay"),
        (GPU_MODELS, "{", "/gpuModels"),
        (GPU_MODELS, "[" * 100_000, "/gpuModels"),
        (GPU_MODELS, "[]", "/gpuModels"),
        (GPU_MODELS, '{"": {}}', "/gpuModels"),
        (GPU_MODELS, '{"A100": 4}', "/gpuModels/A100"),
        (GPU_MODELS, '{"A100": {"weight": 4}}', "/gpuModels/A100"),
        (GPU_MODELS, '{"A100": {"quota": -2}}', "/gpuModels/A100/quota"),
        (GPU_MODELS, '{"A100": {"limit": NaN}}', "/gpuModels/A100/limit"),
        (GPU_MODELS, '{"A100": {"limit": 1e400}}', "/gpuModels/A100/limit"),
    ],
)
def test_what_cannot_be_read_is_a_finding_and_counts_as_absent(key, text, pointer) -> None:
    options, findings = read_options({key: text})
    assert options == NO_OPTIONS
    assert [finding.pointer for finding in findings] == [pointer]


def test_the_webhook_refuses_an_option_that_cannot_be_read() -> None:
    queue = body(**{GPU_MODELS: "none"})
    findings = hierarchy.check({}, old=None, new=queue, rules=hierarchy.ADMISSION)
    assert [f.pointer for f in hierarchy.errors(findings)] == ["/gpuModels"]


def test_an_edit_sets_options_and_its_inverse_removes_them() -> None:
    before = body(other="kept")
    options = {"userFairness": True, "gpuModels": {"A100": {"quota": 8, "limit": "unlimited"}}}
    after, faults = edits.apply(before, options)
    assert faults == ()
    assert after["metadata"]["annotations"] == {
        "other": "kept",
        USER_FAIRNESS: "true",
        GPU_MODELS: '{"A100": {"quota": 8, "limit": -1}}',
    }
    assert [(d.pointer, d.before, d.after) for d in edits.differences(before, after)] == [
        ("/userFairness", None, True),
        ("/gpuModels", None, {"A100": {"quota": 8, "limit": "unlimited"}}),
    ]
    back, faults = edits.apply(after, {"userFairness": None, "gpuModels": None})
    assert (back, faults) == (before, ())
    assert patch_between(after, back) == {
        "metadata": {"annotations": {USER_FAIRNESS: None, GPU_MODELS: None}}
    }


def test_durations_are_options_as_people_write_them() -> None:
    after, faults = edits.apply(body(), {"maxRunTime": "8h", "requeueDelay": "30m"})
    assert faults == ()
    assert after["metadata"]["annotations"] == {MAX_RUN_TIME: "8h", REQUEUE_DELAY: "30m"}
    assert [(d.pointer, d.after) for d in edits.differences(body(), after)] == [
        ("/maxRunTime", "8h"),
        ("/requeueDelay", "30m"),
    ]
    assert [fault.pointer for fault in edits.apply(body(), {"maxRunTime": 8})[1]] == ["/maxRunTime"]


def test_a_replacement_drops_options_it_does_not_name_and_keeps_other_annotations() -> None:
    current = body(**{USER_FAIRNESS: "true", "other": "kept"})
    replaced, _ = edits.apply(edits.bare_queue("a", current["metadata"]), {})
    assert replaced["metadata"]["annotations"] == {"other": "kept"}


@pytest.mark.parametrize("edit", [{"userFairness": "yes"}, {"gpuModels": {"A100": {"quota": "x"}}}])
def test_an_edit_of_the_wrong_kind_is_a_fault(edit) -> None:
    assert [fault.code for fault in edits.apply(body(), edit)[1]] == ["type"]


def test_a_changed_option_changes_the_tag_of_an_edit() -> None:
    plain = {**body(), "metadata": {"name": "a", "uid": "u", "generation": 1}}
    fair, _ = edits.apply(plain, {"userFairness": True})
    assert tag_of_body(plain) != tag_of_body(fair)


def test_a_shape_carries_the_options() -> None:
    shape: QueueShape = read_queue(body(**{USER_FAIRNESS: "true"}))[0]
    assert shape.options.user_fairness


def model_body(name: str, parent: str = "", quota: float = -1, **models: dict) -> dict:
    created, faults = edits.apply(
        edits.new_queue(name),
        {"gpuModels": models, "quota": {"gpu": "unlimited" if quota < 0 else quota}},
    )
    assert faults == ()
    if parent:
        created["spec"]["parentQueue"] = parent
    return created


def codes(new: dict, *others: dict) -> list[tuple[str, str]]:
    tree = shapes_of(others)
    findings = hierarchy.check(tree, old=None, new=new)
    assert hierarchy.errors(findings) == ()
    return [(f.pointer, f.code) for f in findings if f.pointer.startswith("/gpuModels")]


def test_bounds_of_models_are_compared_with_each_other_and_the_total() -> None:
    queue = model_body("a", quota=4, A100={"quota": 3, "limit": 2}, H100={"quota": 2})
    assert codes(queue) == [
        ("/gpuModels/A100/quota", "quota-over-limit"),
        ("/gpuModels", "models-over-quota"),
    ]


def test_the_sum_of_the_children_is_compared_with_the_parent_model_by_model() -> None:
    top = model_body("top", A100={"quota": 4, "limit": 6})
    sibling = model_body("one", "top", A100={"quota": 3})
    fits = model_body("two", "top", A100={"quota": 1, "limit": 6}, H100={"quota": 9})
    assert codes(fits, top, sibling) == []
    over = model_body("two", "top", A100={"quota": 2, "limit": 7})
    assert codes(over, top, sibling) == [
        ("/gpuModels/A100/limit", "limit-over-parent"),
        ("/gpuModels/A100/quota", "children-over-parent"),
    ]

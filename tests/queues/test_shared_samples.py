"""The sample manifests beside the checkout, where they are: each refusal reads as its annotation says, no file is a riddle."""

from __future__ import annotations

from typing import Any

import pytest

from queues.admission.routes import (
    MUTATE_POD,
    VALIDATE_POD,
    VALIDATE_POD_GROUP,
    VALIDATE_QUEUE,
    VALIDATE_TOPOLOGY,
)
from queues.grouping.base import Settings
from queues.grouping.offline.manifests import read_manifests
from queues.grouping.offline.report import group_objects
from queues.tree.shape import shapes_of
from tests.queues.admission.reviews import Answer, ask
from tests.shared import shared_path

pytestmark = pytest.mark.shared
PATHS = {"PodGroup": VALIDATE_POD_GROUP, "Queue": VALIDATE_QUEUE, "Topology": VALIDATE_TOPOLOGY}
# ConditionState by the custom resource's own schema, not by a webhook.
SCHEMA_TEXTS = ("can only be used at the lowest level", "nodeLabel must be unique")


def objects(*names: str) -> list[dict[str, Any]]:
    return read_manifests(shared_path("spec", "sample-manifests", f"{name}.yaml") for name in names)


def judged(body: dict[str, Any]) -> Answer:
    if body["kind"] != "Pod":
        return ask(PATHS[body["kind"]], body)
    mutated = ask(MUTATE_POD, {**body, "metadata": {**body["metadata"], "namespace": "lab"}})
    return ask(VALIDATE_POD, mutated.object) if mutated.allowed else mutated


@pytest.mark.parametrize(
    "name", ["24-gpu-fraction-rejected", "31-topology-rejected", "61-podgroup-rejected"]
)
def test_refusals_read_as_stated(name: str) -> None:
    judged_objects = 0
    for body in objects(name):
        notes = body["metadata"]["annotations"]
        expected = notes.get("example.test/expect", "")
        if any(text in expected for text in SCHEMA_TEXTS):
            continue
        answer = judged(body)
        judged_objects += 1
        if expected:
            assert not answer.allowed
            assert answer.message.startswith(expected)
        else:
            assert answer.allowed
            assert answer.warnings == [notes["example.test/warn"]]
    assert judged_objects > 0


def test_a_queue_without_resources_is_refused() -> None:
    (body,) = objects("62-queue-rejected")
    answer = ask(VALIDATE_QUEUE, body, tree=shapes_of(objects("01-queues")))
    assert answer.message == "resources must be specified"


def test_the_queue_tree_is_accepted_queue_by_queue() -> None:
    known: list[dict[str, Any]] = []
    warnings: list[str] = []
    for body in objects("01-queues"):
        answer = ask(VALIDATE_QUEUE, body, tree=shapes_of(known))
        assert answer.allowed
        warnings += answer.warnings
        known.append(body)
    assert warnings == ["priority 50 differs from that of all siblings"]


def test_every_file_is_grouped_and_only_the_faulty_job_fails() -> None:
    folder = shared_path("spec", "sample-manifests")
    errors = {}
    for file in sorted(folder.glob("*.yaml")):
        report = group_objects(read_manifests([file]), Settings())
        errors |= {f"{file.stem}: {pod}": r.error for pod, r in report.pods.items() if r.error}
    assert len(errors) == 1
    ((where, error),) = errors.items()
    assert where.startswith("10-job: default/bad-batch-")
    assert error.startswith("invalid min-member annotation value")

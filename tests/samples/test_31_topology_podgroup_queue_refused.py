"""Samples 31, 61 and 62: topologies, pod groups and a queue that are refused, or accepted with a warning."""

from __future__ import annotations

import pytest

from kube.resources import PODGROUPS
from tests.samples.expected_answers import check_answer, objects_of
from tests.samples.sample import Json, Sample

pytestmark = pytest.mark.timeout(240)
FILES = ("31-topology-refused.yaml", "61-podgroup-refused.yaml", "62-queue-refused.yaml")
CASES = {body["metadata"]["name"]: body for file in FILES for body in objects_of(file)}


@pytest.mark.parametrize("body", CASES.values(), ids=CASES.keys())
def test_the_answer_is_as_annotated_on_the_object(sample: Sample, body: Json) -> None:
    check_answer(sample, body)


def test_only_the_pod_group_with_a_warning_was_created(sample: Sample) -> None:
    assert set(sample.all(PODGROUPS)) == {"greedy"}

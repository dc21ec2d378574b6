"""Sample 24: requests for parts of a GPU that contradict themselves are refused with the reason."""

from __future__ import annotations

import pytest

from kube.resources import PODS
from tests.samples.expected_answers import check_answer, objects_of
from tests.samples.sample import Json, Sample

pytestmark = pytest.mark.timeout(240)
CASES = {body["metadata"]["name"]: body for body in objects_of("24-fraction-refused.yaml")}


@pytest.mark.parametrize("body", CASES.values(), ids=CASES.keys())
def test_the_answer_is_as_annotated_on_the_object(sample: Sample, body: Json) -> None:
    check_answer(sample, body)


def test_no_refused_pod_was_created(sample: Sample) -> None:
    assert set(sample.all(PODS)) & CASES.keys() == set()

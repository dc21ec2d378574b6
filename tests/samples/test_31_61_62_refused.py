"""Samples 31, 61 and 62: topologies, pod groups and a queue that are refused, or accepted with a warning."""

from __future__ import annotations

import pytest

from kube.resources import PODGROUPS
from tests.samples.place import Json, Place
from tests.samples.refusals import check_answer, objects_of

pytestmark = pytest.mark.timeout(240)
FILES = ("31-topology-refused.yaml", "61-podgroup-refused.yaml", "62-queue-refused.yaml")
CASES = {body["metadata"]["name"]: body for file in FILES for body in objects_of(file)}


@pytest.mark.parametrize("body", CASES.values(), ids=CASES.keys())
def test_the_answer_is_the_one_it_names(place: Place, body: Json) -> None:
    check_answer(place, body)


def test_only_the_one_with_a_warning_is_there(place: Place) -> None:
    assert set(place.all(PODGROUPS)) == {"greedy"}

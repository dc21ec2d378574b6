"""Sample 24: requests for parts of a GPU that contradict themselves are refused with the reason."""

from __future__ import annotations

import pytest

from kube.resources import PODS
from tests.samples.place import Json, Place
from tests.samples.refusals import check_answer, objects_of

pytestmark = pytest.mark.timeout(240)
CASES = {body["metadata"]["name"]: body for body in objects_of("24-fraction-refused.yaml")}


@pytest.mark.parametrize("body", CASES.values(), ids=CASES.keys())
def test_the_answer_is_the_one_it_names(place: Place, body: Json) -> None:
    check_answer(place, body)


def test_none_of_them_is_there(place: Place) -> None:
    assert set(place.all(PODS)) & CASES.keys() == set()

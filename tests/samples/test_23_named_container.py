"""Sample 23: the container that gets the part of a GPU is the one that is named."""

from __future__ import annotations

import pytest

from tests.samples.expected_answers import check_answer, objects_of
from tests.samples.sample import Json, Sample
from tests.samples.shared_gpus import config_map_prefix, maps_of

pytestmark = pytest.mark.timeout(240)
INJECTED = {"NVIDIA_VISIBLE_DEVICES", "RUNAI_NUM_OF_GPUS", "GPU_PORTION"}
(UNKNOWN,) = objects_of("23-refused.yaml")


@pytest.fixture(scope="module")
def bound(sample: Sample) -> Sample:
    sample.apply("23-named-container.yaml")
    sample.wait_bound("for-the-second", "for-the-first-start", count=2)
    return sample


def injected(container: Json) -> set[str]:
    return {variable["name"] for variable in container.get("env", ())}


@pytest.mark.parametrize(
    ("name", "index", "chosen"),
    [("for-the-second", "1", "learner"), ("for-the-first-start", "i0", "prelude")],
)
def test_only_the_named_container_is_pointed_at_the_maps(
    bound: Sample, name: str, index: str, chosen: str
) -> None:
    pod = bound.pod(name)
    assert set(maps_of(bound, pod)) == {index, f"{index}-evar"}
    prefix = config_map_prefix(pod)
    containers = [*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())]
    for container in containers:
        if container["name"] != chosen:
            assert (injected(container), container.get("envFrom")) == (set(), None)
            continue
        assert injected(container) == INJECTED
        sources = {
            variable["valueFrom"]["configMapKeyRef"]["name"] for variable in container["env"]
        }
        assert sources == {f"{prefix}-{index}"}
        assert [source["configMapRef"]["name"] for source in container["envFrom"]] == [
            f"{prefix}-{index}-evar"
        ]
    data = maps_of(bound, pod)[index]["data"]
    assert data["GPU_PORTION"] == "0.25"
    assert data["NVIDIA_VISIBLE_DEVICES"].startswith("GPU-")


def test_a_container_that_is_not_there_is_refused(bound: Sample) -> None:
    check_answer(bound, UNKNOWN)

"""Beside sample 20: with HAMi-core switched on in the Config, webhook and binder set a memory limit too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kube.resources import CONFIGS
from tests.samples.lanes import MANIFESTS
from tests.samples.parts import config_map_prefix, holders_of, maps_of
from tests.samples.place import Place
from tests.samples.singletons import CONFIG, config_given_back, wait_for

pytestmark = pytest.mark.timeout(300)
LIMIT = "CUDA_DEVICE_MEMORY_LIMIT"
POD = (MANIFESTS / "20-memory-limit.yaml").read_text()
FENCED = {
    "spec": {
        "binder": {
            "plugins": {"hamicore": {"enabled": True}},
            "resourceReservation": {"podResources": {"requests": {"cpu": "3m"}}},
        }
    }
}


@pytest.fixture(scope="module")
def fenced(place: Place) -> Iterator[Place]:
    before = place.stack.pids()
    with config_given_back(place.lane):
        place.lane.gateway.patch(CONFIGS, CONFIG, FENCED)

        def are_new() -> bool:
            now = place.stack.pids()
            return all(now.get(name, before[name]) != before[name] for name in ("web", "binding"))

        place.wait(are_new, "webhook and binder started anew", timeout_s=90)
        wait_for(place.lane, CONFIGS, CONFIG, "Ready", "True")
        place.wait(lambda: " created" in place.answer_to(POD), "an answer of the webhook")
        place.wait_bound("fenced", count=1)
        yield place


def test_the_container_reads_its_limit_from_what_the_binder_writes(fenced: Place) -> None:
    pod = fenced.pod("fenced")
    (container,) = pod["spec"]["containers"]
    (limit,) = (one for one in container["env"] if one["name"] == LIMIT)
    assert limit["valueFrom"]["configMapKeyRef"] == {
        "name": f"{config_map_prefix(pod)}-0",
        "key": LIMIT,
        "optional": True,
    }
    memory = int(fenced.node_of("fenced")["metadata"]["labels"]["nvidia.com/gpu.memory"])
    assert maps_of(fenced, pod)["0"]["data"][LIMIT] == f"{memory // 4}m"


def test_the_reservation_has_the_resources_the_config_gives_it(fenced: Place) -> None:
    (holder,) = holders_of(fenced, fenced.pod("fenced")["metadata"]["labels"]["runai-gpu-group"])
    (container,) = holder["spec"]["containers"]
    assert container["resources"] == {
        "requests": {"cpu": "3m", "nvidia.com/gpu": "1"},
        "limits": {"nvidia.com/gpu": "1"},
    }

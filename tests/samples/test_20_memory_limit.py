"""Beside sample 20: with HAMi-core switched on in the Config, webhook and binder set a memory limit too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kube.resources import CONFIGS
from tests.samples.cluster_config import CONFIG, config_restored, wait_for
from tests.samples.installations import MANIFESTS
from tests.samples.sample import Sample
from tests.samples.shared_gpus import config_map_prefix, holders_of, maps_of

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
def fenced(sample: Sample) -> Iterator[Sample]:
    before = sample.stack.pids()
    with config_restored(sample.installation):
        sample.installation.gateway.patch(CONFIGS, CONFIG, FENCED)

        def are_new() -> bool:
            now = sample.stack.pids()
            return all(now.get(name, before[name]) != before[name] for name in ("web", "binding"))

        sample.wait(are_new, "webhook and binder started anew", timeout_s=90)
        wait_for(sample.installation, CONFIGS, CONFIG, "Ready", "True")
        sample.wait(lambda: " created" in sample.answer_to(POD), "an answer of the webhook")
        sample.wait_bound("fenced", count=1)
        yield sample


def test_the_container_reads_its_limit_from_what_the_binder_writes(fenced: Sample) -> None:
    pod = fenced.pod("fenced")
    (container,) = pod["spec"]["containers"]
    (limit,) = (variable for variable in container["env"] if variable["name"] == LIMIT)
    assert limit["valueFrom"]["configMapKeyRef"] == {
        "name": f"{config_map_prefix(pod)}-0",
        "key": LIMIT,
        "optional": True,
    }
    memory = int(fenced.node_of("fenced")["metadata"]["labels"]["nvidia.com/gpu.memory"])
    assert maps_of(fenced, pod)["0"]["data"][LIMIT] == f"{memory // 4}m"


def test_the_reservation_has_the_resources_the_config_gives_it(fenced: Sample) -> None:
    (holder,) = holders_of(fenced, fenced.pod("fenced")["metadata"]["labels"]["runai-gpu-group"])
    (container,) = holder["spec"]["containers"]
    assert container["resources"] == {
        "requests": {"cpu": "3m", "nvidia.com/gpu": "1"},
        "limits": {"nvidia.com/gpu": "1"},
    }

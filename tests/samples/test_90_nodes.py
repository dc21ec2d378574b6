"""Sample 90: machines made with kubectl, of three kinds, on which simulated kubelets run pods."""

from __future__ import annotations

from typing import Any

import pytest

from kube.resources import NODES
from tests.samples.sample import PLAIN_POD, Sample

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def nodes(sample: Sample) -> dict[str, Any]:
    return sample.all(NODES)


def test_the_machines_are_ready_and_untainted(nodes: dict[str, Any]) -> None:
    assert len(nodes) == 9
    for body in nodes.values():
        assert not body["spec"].get("taints")
        ready = [c for c in body["status"]["conditions"] if c["type"] == "Ready"]
        assert [condition["status"] for condition in ready] == ["True"]


@pytest.mark.parametrize(
    ("name", "resources"),
    [
        ("ibex-1", {"nvidia.com/gpu": "8"}),
        ("kite-3", {"nvidia.com/gpu": "4"}),
        ("sliced-1", {"nvidia.com/mig-1g.10gb": "14", "nvidia.com/mig-2g.20gb": "2"}),
        ("hay-1", {}),
    ],
)
def test_they_offer_whole_gpus_slices_or_none(
    nodes: dict[str, Any], name: str, resources: dict[str, str]
) -> None:
    for part in ("capacity", "allocatable"):
        offered = nodes[name]["status"][part]
        assert {k: v for k, v in offered.items() if "/" in k} == resources


def test_pods_run_on_each_kind(sample: Sample) -> None:
    sample.apply_text(PLAIN_POD.format(name="whole", limits='nvidia.com/gpu: "8"'))
    sample.apply_text(PLAIN_POD.format(name="slice", limits='nvidia.com/mig-1g.10gb: "1"'))
    sample.apply_text(PLAIN_POD.format(name="plain", limits="cpu: 100m"))

    def runs(name: str) -> bool:
        return bool(sample.pod(name)["status"].get("phase") == "Running")

    for name in ("whole", "slice", "plain"):
        sample.wait(lambda name=name: runs(name), f"running pod {name}")
    assert sample.node_of("whole")["metadata"]["labels"]["nvidia.com/gpu.count"] == "8"
    assert sample.pod("slice")["spec"]["nodeName"] == "sliced-1"

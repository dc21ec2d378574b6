"""Sample 66: with plugin numa a pod goes only where one zone holds all of it, and says so when none does."""

from __future__ import annotations

import json

import pytest

from kube.resources import SHARDS
from kube.values.quantity import parse_quantity
from tests.samples.cluster_config import wait_for
from tests.samples.node_pool_pods import ONE_GPU, pod_yaml
from tests.samples.sample import Sample

pytestmark = pytest.mark.timeout(300)

PREDICTED = "kai.scheduler/numa-placement-predicted"
REASON = "node cannot NUMA-align the pod's resources under its Topology Manager policy"


def pod(name: str, *, guaranteed: bool = True) -> str:
    amounts = {"cpu": "4", "memory": "8Gi", **ONE_GPU}
    limits = amounts if guaranteed else ONE_GPU
    return pod_yaml(name, queue="s66-bench", pool="flint", limits=limits, requests=amounts)


def prediction(sample: Sample, name: str) -> list[tuple[str, dict[str, float]]]:
    """Return the zones of the annotation with their amounts as plain numbers."""
    zones = json.loads(sample.pod(name)["metadata"]["annotations"][PREDICTED])
    assert all(set(zone) == {"zone", "amount"} for zone in zones)
    return [
        (zone["zone"], {key: float(parse_quantity(text)) for key, text in zone["amount"].items()})
        for zone in zones
    ]


def reasons_of(sample: Sample, name: str) -> str:
    return " ".join(
        str((group.get("status") or {}).get("schedulingConditions"))
        for group in sample.pod_groups_of(name)
    )


@pytest.fixture(scope="module")
def bench(sample: Sample) -> Sample:
    """The pool, and two pods of which each fills a zone of the one machine that can align them."""
    sample.apply("66-definition.yaml")
    sample.kubectl(
        "wait", "--for=condition=Established", "crd/noderesourcetopologies.topology.node.k8s.io",
        "--timeout=60s",
    )  # fmt: skip
    sample.add_nodes("66-nodes.yaml")
    sample.apply("66-numa-shard.yaml")
    for name in ("first", "second"):
        sample.apply_text(pod(name))
        sample.wait_bound(name, count=1)
    return sample


def test_a_pod_goes_where_one_zone_holds_all_of_it(bench: Sample) -> None:
    assert {bench.pod(name)["spec"]["nodeName"] for name in ("first", "second")} == {"flint-1"}


def test_the_predicted_zone_is_written_on_the_pod(bench: Sample) -> None:
    amounts = {"cpu": 4.0, "memory": 8.0 * 2**30, "nvidia.com/gpu": 1.0}
    assert prediction(bench, "first") == [("node-0", amounts)]
    assert prediction(bench, "second") == [("node-1", amounts)]


def test_a_pod_that_no_zone_holds_waits_and_says_why(bench: Sample) -> None:
    bench.apply_text(pod("third"))
    bench.wait(lambda: REASON in reasons_of(bench, "third"), REASON)
    assert bench.bound("third") == []


def test_only_devices_of_a_burstable_pod_are_aligned(bench: Sample) -> None:
    bench.apply_text(pod("loose", guaranteed=False))
    bench.wait_bound("loose", count=1)
    assert bench.pod("loose")["spec"]["nodeName"] == "flint-2"
    assert prediction(bench, "loose") == [("node-0", {"nvidia.com/gpu": 1.0})]


def test_the_zone_of_a_pod_that_left_is_free_again(bench: Sample) -> None:
    bench.kubectl("delete", "pod", "first", "--grace-period=0", "--force", "--wait=false")
    bench.wait_bound("third", count=1)
    assert prediction(bench, "third")[0][0] == "node-0"


def test_without_the_plugin_zones_do_not_matter(bench: Sample) -> None:
    bench.installation.gateway.patch(
        SHARDS, "flint", {"spec": {"plugins": {"numa": {"enabled": False}}}}
    )
    wait_for(bench.installation, SHARDS, "flint", "Ready", "True")
    bench.apply_text(pod("careless"))
    bench.wait_bound("careless", count=1)
    assert bench.pod("careless")["spec"]["nodeName"] == "flint-2"
    assert PREDICTED not in bench.pod("careless")["metadata"]["annotations"]

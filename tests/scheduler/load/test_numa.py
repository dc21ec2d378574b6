"""Where a pod's devices and processors sit: as the exporter on the node saw it, else as we predicted it."""

from __future__ import annotations

import json

import pytest

from kube.objects.meta import convert
from kube.objects.pod import Pod
from kube.resources import BINDREQUESTS, NODES, PODGROUPS, PODS
from scheduler.apply.bind_requests import bind_request_body
from scheduler.core.cluster.inputs import NumaShare
from scheduler.core.decisions import ActionName, Bind, TaskRef
from scheduler.load.build import SnapshotBuilder
from scheduler.settings.params import ShardParams
from tests.scheduler.load.objects import NOW, Cluster, bind_request, group, node, pod

OBSERVED = "kai.scheduler/numa-placement-observed"
PREDICTED = "kai.scheduler/numa-placement-predicted"
#: What the exporter writes: zones in order, whole processors, devices, bytes.
SEEN = '[{"zone":"node-0","amount":{"cpu":"8","nvidia.com/gpu":"2","hugepages-2Mi":"4194304"}}]'
SEEN_SHARES = (
    NumaShare(
        zone="node-0", amounts=(("cpu", 8000.0), ("gpu", 2.0), ("hugepages-2Mi", 4194304000.0))
    ),
)
ZONES = [{"zone": "node-1", "amount": {"cpu": "4"}}]
ZONE_SHARES = (NumaShare(zone="node-1", amounts=(("cpu", 4000.0),)),)
OLD = '[{"zone":"node-2","amount":{"cpu":"2"}}]'
OLD_SHARES = (NumaShare(zone="node-2", amounts=(("cpu", 2000.0),)),)


def shares(
    annotations: dict[str, str], request_zones: list[dict[str, object]] | None = None
) -> tuple[NumaShare, ...]:
    cluster = Cluster().put(NODES, node("n0")).put(PODGROUPS, group("pg"))
    bound_to = "" if request_zones else "n0"
    cluster.put(PODS, pod("p", group="pg", node=bound_to, annotations=annotations))
    if request_zones:
        cluster.put(BINDREQUESTS, bind_request("p", "n0", predictedNUMAZones=request_zones))
    built = SnapshotBuilder(ShardParams(), origin=NOW).build(cluster.store.view(), NOW)
    return built.cluster.pod_groups[0].tasks[0].numa


@pytest.mark.parametrize(
    ("annotations", "zones", "expected"),
    [
        ({OBSERVED: SEEN, PREDICTED: OLD}, ZONES, SEEN_SHARES),
        ({PREDICTED: OLD}, ZONES, ZONE_SHARES),
        ({PREDICTED: OLD}, None, OLD_SHARES),
        ({OBSERVED: SEEN}, None, SEEN_SHARES),
        ({}, None, ()),
    ],
)
def test_what_was_seen_counts_more_than_what_was_predicted(
    annotations: dict[str, str],
    zones: list[dict[str, object]] | None,
    expected: tuple[NumaShare, ...],
) -> None:
    assert shares(annotations, zones) == expected


@pytest.mark.parametrize(
    "garbage", ["no json", '{"zone":"node-0"}', '[{"zone":"node-0","amount":{"cpu":"eight"}}]']
)
def test_an_annotation_that_cannot_be_read_is_as_none(garbage: str) -> None:
    assert shares({OBSERVED: garbage, PREDICTED: OLD}) == OLD_SHARES
    assert shares({OBSERVED: garbage}) == ()


def test_a_prediction_comes_back_from_the_annotation_as_it_was_made() -> None:
    decision = Bind(
        TaskRef("ns", "p", "uid-p"), "pg", "ns", "n0", ActionName.ALLOCATE, numa=SEEN_SHARES
    )
    body = bind_request_body(decision, convert(pod("p"), Pod), ShardParams(), fence=0)
    zones = body["spec"]["predictedNUMAZones"]
    assert zones == [
        {
            "zone": "node-0",
            "amount": {"cpu": "8", "nvidia.com/gpu": "2", "hugepages-2Mi": "4194304"},
        }
    ]
    assert shares({PREDICTED: json.dumps(zones)}) == SEEN_SHARES

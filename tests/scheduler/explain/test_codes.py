"""One code for why a pod group waits, from the evidence of real cycles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kube.keys import REASON_CODE
from kube.resources import CONFIGMAPS, EVENTS, NODES, PODGROUPS, PODS, QUEUES
from queues.workloads.reasons import Standing
from scheduler.loop.cycle import CycleSummary
from tests.scheduler.load.objects import group, node, pod, queue
from tests.scheduler.loop.harness import FREE, NOTHING, Harness
from tests.scheduler.loop.harness import harness as open_harness

FULL = {"nvidia.com/gpu": "8"}


@pytest.fixture
def harness() -> Iterator[Harness]:
    with open_harness() as opened:
        yield opened


def standing(summary: CycleSummary, name: str) -> Standing:
    return summary.standings[f"ns/{name}"]


def reading(config_map: str) -> dict[str, Any]:
    return {"name": "main", "envFrom": [{"configMapRef": {"name": config_map}}]}


def running(harness: Harness, name: str, **more: Any) -> None:
    harness.seed(PODGROUPS, group(name))
    body = pod(f"{name}-0", group=name, node="n0", phase="Running", requests=FULL, **more)
    harness.seed(PODS, body)


def test_more_than_any_node_has_never_fits(harness: Harness) -> None:
    harness.cluster(nodes=2).pending("huge", gpus=9)
    assert standing(harness.cycle(), "huge") == Standing(code="NeverFits", position=1)


def test_devices_in_use_are_a_shortage_of_devices(harness: Harness) -> None:
    running(harness.cluster(), "tenant")
    harness.pending("next", gpus=1)
    assert standing(harness.cycle(), "next") == Standing(code="DeviceShortage", position=1)


def test_a_selector_that_no_node_matches_fits_no_node(harness: Harness) -> None:
    harness.cluster(nodes=3).pending("choosy", pod={"nodeSelector": {"disk": "tape"}})
    assert standing(harness.cycle(), "choosy").code == "NoNodeFits"


def test_of_the_nodes_it_may_use_what_most_lack_is_the_reason(harness: Harness) -> None:
    harness.seed(NODES, node("small", gpus=1, labels={"disk": "tape"}), node("n1"), node("n2"))
    harness.cluster(nodes=0).pending("choosy", gpus=2, pod={"nodeSelector": {"disk": "tape"}})
    assert standing(harness.cycle(), "choosy").code == "DeviceShortage"


def test_a_lack_of_cores_is_no_shortage_of_devices(harness: Harness) -> None:
    few = {"cpu": "1", "memory": "128Gi", "pods": "110", "nvidia.com/gpu": "8"}
    harness.seed(NODES, *(node(f"n{n}", allocatable=few) for n in range(2)), node("n2", gpus=0))
    hungry = {"requests": {"cpu": "2", "nvidia.com/gpu": "1"}}
    harness.cluster(nodes=0).pending(
        "hungry", pod={"containers": [{"name": "c", "resources": hungry}]}
    )
    assert standing(harness.cycle(), "hungry").code == "NoNodeFits"


def test_a_missing_config_map_is_a_matter_of_volumes(harness: Harness) -> None:
    harness.cluster().pending("reader", pod={"containers": [reading("absent")]})
    assert standing(harness.cycle(), "reader").code == "VolumeOrClaim"


@pytest.mark.parametrize(
    ("amounts", "spec", "code"),
    [
        ({**FREE, "limit": 1}, {}, "OverLimit"),
        (NOTHING, {"preemptibility": "non-preemptible"}, "NonPreemptibleOverQuota"),
    ],
)
def test_what_the_queue_refuses_has_kais_code(
    harness: Harness, amounts: dict[str, Any], spec: dict[str, Any], code: str
) -> None:
    harness.cluster(queue_gpu=amounts).pending("two", gpus=2, **spec)
    assert standing(harness.cycle(), "two").code == code


def test_within_its_preemption_delay_that_is_the_reason(harness: Harness) -> None:
    running(harness.cluster(queue_gpu=NOTHING), "tenant")
    harness.seed(
        QUEUES, queue("q2", resources={"cpu": FREE, "memory": FREE, "gpu": FREE}, parentQueue="top")
    )
    harness.pending("patient", queue="q2", preemptionDelay="5m")
    assert standing(harness.cycle(), "patient").code == "PreemptionDelayNotElapsed"


def test_who_came_too_late_in_this_cycle_is_behind_and_knows_whom(harness: Harness) -> None:
    harness.cluster().pending("first", gpus=8).pending("second", gpus=4).pending("third", gpus=2)
    summary = harness.cycle()
    text = "There was room when the cycle began; workloads ahead of it took it: ns/first"
    assert standing(summary, "second") == Standing(code="OrderBehind", text=text, position=1)
    assert standing(summary, "third") == Standing(code="OrderBehind", text=text, position=2)
    # The cycle after, the room is gone from the start.
    assert standing(harness.cycle(seconds=1), "second").code == "DeviceShortage"


def test_room_that_was_too_small_for_the_whole_gang_is_no_matter_of_order(harness: Harness) -> None:
    harness.cluster().pending("first", gpus=1).pending("gang", gpus=5, pods=2)
    assert standing(harness.cycle(), "gang").code == "DeviceShortage"


def test_a_node_that_the_pod_may_not_use_was_never_room_for_it(harness: Harness) -> None:
    harness.cluster().pending("first", gpus=8)
    harness.pending("choosy", pod={"nodeSelector": {"disk": "tape"}})
    assert standing(harness.cycle(), "choosy").code == "NoNodeFits"


def test_what_a_group_of_ones_own_took_is_not_somebody_ahead(harness: Harness) -> None:
    harness.cluster().pending("elastic", gpus=4, pods=3, minMember=1)
    assert standing(harness.cycle(), "elastic").code == "DeviceShortage"


def test_a_place_that_is_being_freed_names_who_is_waited_for(harness: Harness) -> None:
    running(harness.cluster(), "tenant", deleted="2026-01-01T00:00:10Z")
    harness.pending("next", gpus=8)
    assert standing(harness.cycle(), "next") == Standing(
        code="WaitingForVictims",
        text="Its place on n0 is being freed; waiting for the end of ns/tenant-0",
    )


def test_a_topology_constraint_that_cannot_be_met_has_a_code_of_its_own(harness: Harness) -> None:
    constraint = {"topology": "nowhere", "requiredTopologyLevel": "rack"}
    harness.cluster().pending("packed", topologyConstraint=constraint)
    assert standing(harness.cycle(), "packed").code == "TopologyFragmented"


def test_a_queue_with_children_runs_no_work(harness: Harness) -> None:
    harness.cluster().pending("misplaced", queue="top")
    assert standing(harness.cycle(), "misplaced") == Standing(
        code="QueueOrphan", text="Queue 'top' has child queues; only leaf queues run work"
    )


def test_who_is_ready_only_in_part_has_no_standing(harness: Harness) -> None:
    harness.cluster().pending("half", pods=1, minMember=2)
    assert harness.cycle().standings == {}


def test_events_carry_the_code(harness: Harness) -> None:
    running(harness.cluster(), "tenant")
    harness.pending("next").cycle()
    codes = {
        (event["involvedObject"]["kind"], event["metadata"]["annotations"].get(REASON_CODE))
        for key in list(harness.gateway.objects)
        if key[0] == EVENTS
        for event in [harness.gateway.raw(EVENTS, key[2], key[1])]
        if event["reason"] == "Unschedulable"
    }
    assert codes == {("Pod", "DeviceShortage"), ("PodGroup", "DeviceShortage")}


def test_config_maps_that_exist_are_no_reason(harness: Harness) -> None:
    harness.seed(CONFIGMAPS, {"metadata": {"name": "there", "namespace": "ns"}})
    harness.cluster().pending("reader", pod={"containers": [reading("there")]})
    assert harness.cycle().standings == {}

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
from tests.scheduler.loop.rig import FREE, NOTHING, Rig
from tests.scheduler.loop.rig import rig as open_rig

FULL = {"nvidia.com/gpu": "8"}


@pytest.fixture
def rig() -> Iterator[Rig]:
    with open_rig() as made:
        yield made


def standing(summary: CycleSummary, name: str) -> Standing:
    return summary.standings[f"ns/{name}"]


def reading(config_map: str) -> dict[str, Any]:
    return {"name": "main", "envFrom": [{"configMapRef": {"name": config_map}}]}


def running(rig: Rig, name: str, **more: Any) -> None:
    rig.seed(PODGROUPS, group(name))
    body = pod(f"{name}-0", group=name, node="n0", phase="Running", requests=FULL, **more)
    rig.seed(PODS, body)


def test_more_than_any_node_has_never_fits(rig: Rig) -> None:
    rig.cluster(nodes=2).pending("huge", gpus=9)
    assert standing(rig.cycle(), "huge") == Standing(code="NeverFits", position=1)


def test_devices_in_use_are_a_shortage_of_devices(rig: Rig) -> None:
    running(rig.cluster(), "tenant")
    rig.pending("next", gpus=1)
    assert standing(rig.cycle(), "next") == Standing(code="DeviceShortage", position=1)


def test_a_selector_that_no_node_matches_fits_no_node(rig: Rig) -> None:
    rig.cluster(nodes=3).pending("choosy", pod={"nodeSelector": {"disk": "tape"}})
    assert standing(rig.cycle(), "choosy").code == "NoNodeFits"


def test_of_the_nodes_it_may_use_what_most_lack_is_the_reason(rig: Rig) -> None:
    rig.seed(NODES, node("small", gpus=1, labels={"disk": "tape"}), node("n1"), node("n2"))
    rig.cluster(nodes=0).pending("choosy", gpus=2, pod={"nodeSelector": {"disk": "tape"}})
    assert standing(rig.cycle(), "choosy").code == "DeviceShortage"


def test_a_lack_of_cores_is_no_shortage_of_devices(rig: Rig) -> None:
    few = {"cpu": "1", "memory": "128Gi", "pods": "110", "nvidia.com/gpu": "8"}
    rig.seed(NODES, *(node(f"n{n}", allocatable=few) for n in range(2)), node("n2", gpus=0))
    hungry = {"requests": {"cpu": "2", "nvidia.com/gpu": "1"}}
    rig.cluster(nodes=0).pending("hungry", pod={"containers": [{"name": "c", "resources": hungry}]})
    assert standing(rig.cycle(), "hungry").code == "NoNodeFits"


def test_a_missing_config_map_is_a_matter_of_volumes(rig: Rig) -> None:
    rig.cluster().pending("reader", pod={"containers": [reading("absent")]})
    assert standing(rig.cycle(), "reader").code == "VolumeOrClaim"


@pytest.mark.parametrize(
    ("amounts", "spec", "code"),
    [
        ({**FREE, "limit": 1}, {}, "OverLimit"),
        (NOTHING, {"preemptibility": "non-preemptible"}, "NonPreemptibleOverQuota"),
    ],
)
def test_what_the_queue_refuses_has_kais_code(
    rig: Rig, amounts: dict[str, Any], spec: dict[str, Any], code: str
) -> None:
    rig.cluster(queue_gpu=amounts).pending("two", gpus=2, **spec)
    assert standing(rig.cycle(), "two").code == code


def test_within_its_preemption_delay_that_is_the_reason(rig: Rig) -> None:
    running(rig.cluster(queue_gpu=NOTHING), "tenant")
    rig.seed(
        QUEUES, queue("q2", resources={"cpu": FREE, "memory": FREE, "gpu": FREE}, parentQueue="top")
    )
    rig.pending("patient", queue="q2", preemptionDelay="5m")
    assert standing(rig.cycle(), "patient").code == "PreemptionDelayNotElapsed"


def test_who_came_too_late_in_this_cycle_is_behind_and_knows_whom(rig: Rig) -> None:
    rig.cluster().pending("first", gpus=8).pending("second", gpus=4).pending("third", gpus=2)
    summary = rig.cycle()
    text = "There was room when the cycle began; workloads ahead of it took it: ns/first"
    assert standing(summary, "second") == Standing(code="OrderBehind", text=text, position=1)
    assert standing(summary, "third") == Standing(code="OrderBehind", text=text, position=2)
    # The cycle after, the room is gone from the start.
    assert standing(rig.cycle(seconds=1), "second").code == "DeviceShortage"


def test_room_that_was_too_small_for_the_whole_gang_is_no_matter_of_order(rig: Rig) -> None:
    rig.cluster().pending("first", gpus=1).pending("gang", gpus=5, pods=2)
    assert standing(rig.cycle(), "gang").code == "DeviceShortage"


def test_a_node_that_the_pod_may_not_use_was_never_room_for_it(rig: Rig) -> None:
    rig.cluster().pending("first", gpus=8)
    rig.pending("choosy", pod={"nodeSelector": {"disk": "tape"}})
    assert standing(rig.cycle(), "choosy").code == "NoNodeFits"


def test_what_a_group_of_ones_own_took_is_not_somebody_ahead(rig: Rig) -> None:
    rig.cluster().pending("elastic", gpus=4, pods=3, minMember=1)
    assert standing(rig.cycle(), "elastic").code == "DeviceShortage"


def test_a_place_that_is_being_freed_names_who_is_waited_for(rig: Rig) -> None:
    running(rig.cluster(), "tenant", deleted="2026-01-01T00:00:10Z")
    rig.pending("next", gpus=8)
    assert standing(rig.cycle(), "next") == Standing(
        code="WaitingForVictims",
        text="Its place on n0 is being freed; waiting for the end of ns/tenant-0",
    )


def test_a_topology_wish_that_cannot_be_met_is_told_apart(rig: Rig) -> None:
    wish = {"topology": "nowhere", "requiredTopologyLevel": "rack"}
    rig.cluster().pending("packed", topologyConstraint=wish)
    assert standing(rig.cycle(), "packed").code == "TopologyFragmented"


def test_a_queue_with_children_runs_no_work(rig: Rig) -> None:
    rig.cluster().pending("misplaced", queue="top")
    assert standing(rig.cycle(), "misplaced") == Standing(
        code="QueueOrphan", text="Queue 'top' has child queues; only leaf queues run work"
    )


def test_who_is_ready_only_in_part_has_no_standing(rig: Rig) -> None:
    rig.cluster().pending("half", pods=1, minMember=2)
    assert rig.cycle().standings == {}


def test_events_carry_the_code(rig: Rig) -> None:
    running(rig.cluster(), "tenant")
    rig.pending("next").cycle()
    found = {
        (event["involvedObject"]["kind"], event["metadata"]["annotations"].get(REASON_CODE))
        for key in list(rig.gateway.objects)
        if key[0] == EVENTS
        for event in [rig.gateway.raw(EVENTS, key[2], key[1])]
        if event["reason"] == "Unschedulable"
    }
    assert found == {("Pod", "DeviceShortage"), ("PodGroup", "DeviceShortage")}


def test_config_maps_that_exist_are_no_reason(rig: Rig) -> None:
    rig.seed(CONFIGMAPS, {"metadata": {"name": "there", "namespace": "ns"}})
    rig.cluster().pending("reader", pod={"containers": [reading("there")]})
    assert rig.cycle().standings == {}

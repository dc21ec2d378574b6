"""What a pod group's condition says: queues, gangs, topology, delays, the long form, and how it changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kube.resources import NODES, PODGROUPS, PODS, SHARDS
from tests.scheduler.explain.waiting_pod import (
    NO_NODES,
    args,
    message_of_group,
    queues,
    reasons,
    sits,
    taken,
    wants,
)
from tests.scheduler.load.objects import group, meta, node, pod
from tests.scheduler.loop.harness import Harness
from tests.scheduler.loop.harness import harness as open_harness

ONE_GPU = {"nvidia.com/gpu": "1"}
SUBGROUP = "kai.scheduler/subgroup-name"
LACKS_GPUS = f"{NO_NODES}: 1 node(s) didn't have enough resources: GPUs."
DEPTHS = ("allocate", "consolidation", "reclaim", "preempt")
FIRM: Any = {"preemptibility": "non-preemptible"}


@pytest.fixture
def harness() -> Iterator[Harness]:
    with open_harness() as opened:
        yield opened


# ------------------------------------------------------------------------------------------ queues

LIMIT = "The queue quota has reached the allowable limit of"
OVER_LIMIT = [
    (
        {"quota": 1, "limit": 2.5},
        {"nvidia.com/gpu": "2"},
        {"nvidia.com/gpu": "1"},
        f"{LIMIT} GPUs. Limit is 2.5 GPUs, currently 2 GPUs allocated and workload requested 1 GPUs",
    ),
    (
        {"cpu": {"quota": 1, "limit": 1500}},
        {"cpu": "1"},
        {"cpu": "750m"},
        f"{LIMIT} CPU cores. Limit is 1.5 cores, currently 1 cores allocated and workload requested "
        "0.75 cores",
    ),
    (
        {"memory": {"quota": 1, "limit": 3000}},
        {"memory": "2G"},
        {"memory": "1500M"},
        f"{LIMIT} memory. Limit is 3 GB, currently 2 GB allocated and workload requested 1.5 GB",
    ),
]


@pytest.mark.parametrize(("cells", "held", "requested", "text"), OVER_LIMIT)
def test_limits(harness: Harness, cells: Any, held: Any, requested: Any, text: str) -> None:
    taken(queues(harness, **cells), held).seed(NODES, node("n0"))
    assert message_of_group(wants(harness, requested)) == f"OverLimit: {text}."
    assert reasons(harness) == [("OverLimit", text)]
    assert harness.condition("p")["message"] == f"OverLimit: {text}."


OVER = "Non-preemptible workload is over quota. Workload requested"
ELSE = "Use a preemptible workload to go over quota."
OVER_QUOTA = [
    (
        {"quota": 2.5, "limit": -1},
        {"nvidia.com/gpu": "2"},
        {"nvidia.com/gpu": "1"},
        f"{OVER} 1 GPUs, but The queue quota is 2.5 GPUs, while 2 GPUs are already allocated for "
        f"non-preemptible pods. {ELSE}",
    ),
    (
        {"cpu": {"quota": 1500, "limit": -1}},
        {"cpu": "1"},
        {"cpu": "750m"},
        f"{OVER} 0.75 CPU cores, but The queue quota is 1.5 cores, while 1 cores are already "
        f"allocated for non-preemptible pods. {ELSE}",
    ),
    (
        {"memory": {"quota": 3000, "limit": -1}},
        {"memory": "2G"},
        {"memory": "1500M"},
        f"{OVER} 1.5 GB memory, but The queue quota is 3 GB, while 2 GB are already allocated for "
        f"non-preemptible pods. {ELSE}",
    ),
]


@pytest.mark.parametrize(("cells", "held", "requested", "text"), OVER_QUOTA)
def test_quota_for_what_cannot_be_preempted(
    harness: Harness, cells: Any, held: Any, requested: Any, text: str
) -> None:
    taken(queues(harness, **cells), held, **FIRM).seed(NODES, node("n0"))
    harness.seed(PODGROUPS, group("pg", **FIRM)).seed(
        PODS, pod("p", group="pg", requests=requested)
    )
    assert message_of_group(harness) == f"NonPreemptibleOverQuota: {text}."
    assert reasons(harness) == [("NonPreemptibleOverQuota", text)]


def test_the_figures_behind_a_limit(harness: Harness) -> None:
    """Exact fractions and -1 for unlimited, where KAI cuts them to whole GPUs and writes 0."""
    taken(queues(harness, quota=0.5, limit=2.5), {"nvidia.com/gpu": "2", "cpu": "1500m"})
    harness.seed(NODES, node("n0")).seed(PODGROUPS, group("firm", **FIRM))
    harness.seed(PODS, sits("firm-0", {"memory": "1G"}, group="firm"))
    wants(harness, {"nvidia.com/gpu": "1", "cpu": "250m"}).cycle()
    (condition,) = harness.group_conditions("pg")
    (reason,) = condition["reasons"]
    assert reason["details"] == {
        "queueDetails": {
            "name": "q",
            "queueRequestedResources": {
                "cpu": "1750m",
                "memory": "1000000000",
                "nvidia.com/gpu": "3",
            },
            "queueDeservedResources": {"cpu": "-1m", "memory": "-1", "nvidia.com/gpu": "500m"},
            "queueAllocatedResources": {
                "cpu": "1500m",
                "memory": "1000000000",
                "nvidia.com/gpu": "2",
            },
            "queueAllocatedNonPreemptibleResources": {
                "cpu": "0",
                "memory": "1000000000",
                "nvidia.com/gpu": "0",
            },
            "queueResourceLimits": {"cpu": "-1m", "memory": "-1", "nvidia.com/gpu": "2500m"},
            "podGroupRequestedResources": {
                "cpu": "250m",
                "memory": "0",
                "nvidia.com/gpu": "1",
            },
            "podGroupRequestedNonPreemptibleResources": {
                "cpu": "0",
                "memory": "0",
                "nvidia.com/gpu": "0",
            },
        }
    }


def test_a_queue_that_is_not_there(harness: Harness) -> None:
    queues(harness).seed(NODES, node("n0")).seed(PODGROUPS, group("pg", queue="nowhere"))
    harness.seed(PODS, pod("p", group="pg"))
    text = "QueueDoesNotExist: Queue 'nowhere' does not exist."
    assert message_of_group(harness) == text
    assert harness.condition("p")["message"] == text
    assert reasons(harness) == [("QueueDoesNotExist", "Queue 'nowhere' does not exist")]


def test_a_queue_with_children(harness: Harness) -> None:
    queues(harness).seed(NODES, node("n0")).seed(PODGROUPS, group("pg", queue="top"))
    harness.seed(PODS, pod("p", group="pg"))
    text = "QueueOrphan: Queue 'top' has child queues; only leaf queues run work."
    assert message_of_group(harness) == text
    assert harness.condition("p")["message"] == text
    assert reasons(harness) == [
        ("QueueOrphan", "Queue 'top' has child queues; only leaf queues run work")
    ]


def test_an_eviction_waits_for_the_preemption_delay(harness: Harness) -> None:
    queues(harness).seed(NODES, node("n0", gpus=1))
    taken(harness, ONE_GPU)
    harness.seed(PODGROUPS, group("pg", preemptionDelay="5m", priorityClassName="x"))
    harness.seed(PODS, pod("p", group="pg", requests=ONE_GPU))
    assert message_of_group(harness) == (
        f"Unable to schedule podgroup: Resources were not found for pod ns/p due to: {LACKS_GPUS}. \n"
        "Workload is within its preemption delay window (5m0s) and may not trigger evictions before "
        "2026-01-01T00:05:00Z."
    )
    assert reasons(harness)[1] == (
        "PreemptionDelayNotElapsed",
        "Workload is within its preemption delay window (5m0s) and may not trigger evictions before "
        "2026-01-01T00:05:00Z",
    )


# ------------------------------------------------------------------------------------------- gangs


def test_one_pod(harness: Harness) -> None:
    taken(queues(harness), ONE_GPU).seed(NODES, node("n0", gpus=1))
    text = f"Resources were not found for pod ns/p due to: {LACKS_GPUS}"
    assert message_of_group(wants(harness, ONE_GPU)) == f"PodSchedulingErrors: {text}."


def test_a_gang(harness: Harness) -> None:
    queues(harness).seed(NODES, node("n0", gpus=2)).seed(PODGROUPS, group("pg", minMember=3))
    harness.seed(PODS, *(pod(f"p{n}", group="pg", requests=ONE_GPU) for n in range(3)))
    assert message_of_group(harness) == (
        "PodSchedulingErrors: Resources were found for 2 pods while 3 are required for gang "
        f"scheduling. Additional pods cannot be scheduled due to: {LACKS_GPUS}."
    )


def test_a_gang_with_subgroups(harness: Harness) -> None:
    subgroups = [{"name": "lead", "minMember": 1}, {"name": "work", "minMember": 2}]
    queues(harness).seed(NODES, node("n0", gpus=2)).seed(
        PODGROUPS, group("pg", subGroups=subgroups)
    )
    for name, sub in (("l", "lead"), ("w0", "work"), ("w1", "work")):
        harness.seed(PODS, pod(name, group="pg", requests=ONE_GPU, labels={SUBGROUP: sub}))
    text = (
        "Resources were found for 2 pods from all sub-groups while sub-group work requires 2 pods for "
        "gang scheduling. Additional pods cannot be scheduled in this sub-group due to: "
        f"{LACKS_GPUS}"
    )
    assert message_of_group(harness) == f"PodSchedulingErrors: {text}."
    with open_harness() as detailed:
        args(queues(detailed), detailed_fit_errors="true").seed(NODES, node("n0", gpus=2))
        detailed.seed(PODGROUPS, group("pg", subGroups=subgroups))
        for name, sub in (("l", "lead"), ("w0", "work"), ("w1", "work")):
            detailed.seed(PODS, pod(name, group="pg", requests=ONE_GPU, labels={SUBGROUP: sub}))
        assert message_of_group(detailed).startswith(
            "\nPodSchedulingErrors.\nsubgroup work: Resources were found for 2 pods from all "
            "sub-groups while sub-group work requires 2 pods for gang scheduling. Additional pods "
            "cannot be scheduled in this sub-group due to: "
        )


# --------------------------------------------------------------------------- how conditions change


def test_transitions_count_over_all_pools(harness: Harness) -> None:
    old = [
        _condition("a100", "7"),
        _condition("default", "2"),
        _condition("t4", "nonsense"),
    ]
    taken(queues(harness), ONE_GPU).seed(NODES, node("n0", gpus=1))
    harness.seed(PODGROUPS, group("pg", status={"schedulingConditions": old}))
    harness.seed(PODS, pod("p", group="pg", requests=ONE_GPU)).cycle()
    conditions = harness.group_conditions("pg")
    assert [(c["nodePool"], c["transitionID"]) for c in conditions] == [
        ("a100", "7"),
        ("t4", "nonsense"),
        ("default", "8"),
    ]
    assert conditions[2]["lastTransitionTime"] == "2026-01-01T00:00:00Z"


def test_an_unchanged_condition_moves_to_the_end(harness: Harness) -> None:
    text = f"PodSchedulingErrors: Resources were not found for pod ns/p due to: {LACKS_GPUS}."
    old = [{**_condition("default", "5"), "message": text}, _condition("a100", "4")]
    taken(queues(harness), ONE_GPU).seed(NODES, node("n0", gpus=1))
    harness.seed(PODGROUPS, group("pg", status={"schedulingConditions": old}))
    harness.seed(PODS, pod("p", group="pg", requests=ONE_GPU)).cycle()
    transitions = [(c["nodePool"], c["transitionID"]) for c in harness.group_conditions("pg")]
    assert transitions == [("a100", "4"), ("default", "6")]
    harness.cycle(seconds=1)
    assert [
        (c["nodePool"], c["transitionID"]) for c in harness.group_conditions("pg")
    ] == transitions


def test_a_condition_that_differs_only_in_its_reasons_is_not_rewritten(harness: Harness) -> None:
    text = f"PodSchedulingErrors: Resources were not found for pod ns/p due to: {LACKS_GPUS}."
    old = [{**_condition("default", "5"), "message": text, "reasons": [{"reason": "Other"}]}]
    taken(queues(harness), ONE_GPU).seed(NODES, node("n0", gpus=1))
    harness.seed(PODGROUPS, group("pg", status={"schedulingConditions": old}))
    harness.seed(PODS, pod("p", group="pg", requests=ONE_GPU)).cycle()
    assert harness.group_conditions("pg") == old


@pytest.mark.parametrize("number", ["nonsense", "-3", ""])
def test_a_number_that_is_none_starts_at_one(harness: Harness, number: str) -> None:
    old = [_condition("a100", number)]
    taken(queues(harness), ONE_GPU).seed(NODES, node("n0", gpus=1))
    harness.seed(PODGROUPS, group("pg", status={"schedulingConditions": old}))
    harness.seed(PODS, pod("p", group="pg", requests=ONE_GPU)).cycle()
    assert harness.group_conditions("pg")[-1]["transitionID"] == "1"


def _condition(pool: str, number: str) -> dict[str, str]:
    return {
        "type": "UnschedulableOnNodePool",
        "nodePool": pool,
        "reason": "Unschedulable",
        "message": "old",
        "status": "True",
        "transitionID": number,
    }


def test_one_try_in_a_pool_names_it(harness: Harness) -> None:
    taken(queues(harness), ONE_GPU).seed(NODES, node("n0", gpus=1))
    harness.seed(PODGROUPS, group("pg", schedulingBackoff=1, markUnschedulable=False))
    harness.seed(PODS, pod("p", group="pg", requests=ONE_GPU))
    text = f"Resources were not found for pod ns/p due to: {LACKS_GPUS}"
    assert message_of_group(harness) == f"Node-Pool 'default': PodSchedulingErrors: {text}."
    assert harness.events("p") == [
        ("Warning", "Unschedulable", f"Node-Pool 'default': {LACKS_GPUS}")
    ]
    assert harness.condition("p") == {}


def test_conditions_of_all_pools_go_when_the_group_has_its_place(harness: Harness) -> None:
    old = [_condition("a100", "1"), _condition("default", "2")]
    queues(harness).seed(NODES, node("n0"))
    harness.seed(PODGROUPS, group("pg", status={"schedulingConditions": old}))
    harness.seed(PODS, sits("p", ONE_GPU, group="pg")).cycle()
    assert harness.group_conditions("pg") == []


def test_a_group_without_evidence(harness: Harness) -> None:
    """Its turn did not come: the one before it in the queue took all that was looked at."""
    taken(queues(harness), ONE_GPU).seed(NODES, node("n0", gpus=1))
    harness.seed(PODGROUPS, group("pg"))
    harness.seed(PODS, pod("p", group="pg", schedulingGates=[{"name": "wait"}]))
    harness.seed(PODGROUPS, group("elastic", minMember=0))
    harness.seed(PODS, pod("e", group="elastic", schedulingGates=[{"name": "wait"}])).cycle()
    assert harness.events("elastic") == [("Normal", "Unschedulable", "Unable to schedule podgroup")]
    assert harness.events("e") == []


def test_a_pod_that_no_cycle_has_tried(harness: Harness) -> None:
    """An action looks at so many groups of a queue as the shard says."""
    spec = {"queueDepthPerAction": dict.fromkeys(DEPTHS, 1)}
    taken(queues(harness), ONE_GPU).seed(NODES, node("n0", gpus=1))
    harness.seed(SHARDS, {"metadata": meta("default"), "spec": spec})
    for name in ("first", "late"):
        harness.seed(PODGROUPS, group(name)).seed(
            PODS, pod(f"{name}-0", group=name, requests=ONE_GPU)
        )
    harness.cycle()
    assert harness.condition("first-0")["message"] == LACKS_GPUS
    assert harness.events("late-0") == [("Warning", "Unschedulable", "Unable to schedule pod")]
    assert harness.group_conditions("late")[0]["message"] == "Unable to schedule podgroup"

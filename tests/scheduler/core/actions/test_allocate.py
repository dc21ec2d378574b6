"""Allocate: who gets free room, what waits, and that what does not fit leaves no trace."""

from __future__ import annotations

from math import inf

import pytest

from scheduler.core.cluster.inputs import PodSetInput, QueueAmounts, SubGroupInput
from scheduler.core.cluster.status import TaskStatus
from scheduler.core.config import PluginConfig, SchedulerConfig
from scheduler.core.decisions import ActionName, Bind, Nominate, ReceivedType
from scheduler.core.plugins.placement_strategy import NodePlacementArguments
from scheduler.core.session.fit import (
    GangShortfall,
    GroupReason,
    NodeReason,
    NodeReasonKind,
)
from tests.builders import cluster, fingerprint, placements, request, status_of

ALLOCATE = ActionName.ALLOCATE
PENDING, BINDING, NOMINATED = TaskStatus.PENDING, TaskStatus.BINDING, TaskStatus.NOMINATED


def test_a_lone_task_is_bound_to_the_first_node_by_name() -> None:
    result = cluster().node("b").node("a").pending("solo").cycle(ALLOCATE)
    [bind] = result.decisions
    assert isinstance(bind, Bind)
    assert (bind.task.name, bind.pod_group, bind.node, bind.action) == (
        "solo-0",
        "solo",
        "a",
        ALLOCATE,
    )
    assert (bind.received_type, bind.gpu_count, bind.gpu_portion) == (ReceivedType.REGULAR, 1, 1.0)
    assert status_of(result, "solo-0") is BINDING


def test_binpack_fills_the_fullest_node_that_has_room() -> None:
    result = (
        cluster().node("a").node("b").running("r", ["b"]).pending("p", gpus=7).pending("q", gpus=8)
    ).cycle(ALLOCATE)
    assert placements(result) == {"r-0": "b", "p-0": "b", "q-0": "a"}


def test_spread_takes_the_emptiest_node() -> None:
    spread = SchedulerConfig(
        plugins=(
            PluginConfig("predicates"),
            PluginConfig("proportion"),
            PluginConfig("nodeavailability"),
            PluginConfig("nodeplacement", NodePlacementArguments(cpu="spread", gpu="spread")),
        )
    )
    built = cluster().nodes(3).running("r", ["n0"])
    for number in range(3):
        built.pending(f"p{number}")
    result = built.cycle(ALLOCATE, config=spread)
    assert placements(result) == {"r-0": "n0", "p0-0": "n1", "p1-0": "n2", "p2-0": "n0"}


def test_a_gang_is_bound_whole_or_not_at_all() -> None:
    built = cluster().nodes(2).pending("big", 3, gpus=8).pending("small", 2, gpus=8)
    result = built.cycle(ALLOCATE)
    assert placements(result) == {"small-0": "n0", "small-1": "n1"}
    assert status_of(result, "big-0") is PENDING
    [fit] = result.fit.pod_groups[0]
    assert fit.reason is GroupReason.POD_SCHEDULING_ERRORS
    assert fit.evidence == GangShortfall(task=2, placed=2, minimum=3)
    reasons = result.fit.tasks[2].reasons()
    assert reasons == {NodeReason(NodeReasonKind.INSUFFICIENT, "gpu"): 2}


def test_a_gang_that_does_not_fit_leaves_the_state_as_it_was() -> None:
    built = cluster().nodes(2).pending("big", 3, gpus=8)
    before = fingerprint(built.session())
    after = built.cycle(ALLOCATE)
    assert fingerprint(after) == before
    assert after.decisions == []


def test_an_elastic_pod_group_grows_one_task_a_turn_between_others() -> None:
    built = (
        cluster()
        .node("n", gpus=3)
        .queue("a", 0)
        .queue("b", 0)
        .pending("grows", 4, minimum=1, queue="a")
        .pending("other", 1, queue="b")
    )
    result = built.cycle(ALLOCATE)
    assert [bind.task.name for bind in result.decisions] == ["grows-0", "other-0", "grows-1"]


def test_a_fully_elastic_pod_group_starts_with_one_task() -> None:
    result = cluster().node("n", gpus=2).pending("free", 3, minimum=0).cycle(ALLOCATE)
    assert sorted(placements(result)) == ["free-0", "free-1"]


def test_queues_take_turns_by_dominant_share() -> None:
    built = cluster().node("n", gpus=6).queue("a", 3).queue("b", 3)
    for number in range(4):
        built.pending(f"a{number}", queue="a")
    for number in range(4):
        built.pending(f"b{number}", queue="b")
    result = built.cycle(ALLOCATE)
    assert [decision.task.name for decision in result.decisions] == [
        "a0-0",
        "b0-0",
        "a1-0",
        "b1-0",
        "a2-0",
        "b2-0",
    ]


def test_the_queue_within_its_quota_goes_before_the_one_beyond_it() -> None:
    built = cluster().node("n", gpus=2).queue("over", 0, weight=9).queue("within", 2, weight=0)
    built.pending("x", queue="over").pending("y", queue="within").pending("z", queue="within")
    result = built.cycle(ALLOCATE)
    assert sorted(placements(result)) == ["y-0", "z-0"]


def test_priority_goes_before_age_in_a_queue() -> None:
    built = cluster().node("n", gpus=1).pending("old", priority=50).pending("urgent", priority=75)
    assert list(placements(built.cycle(ALLOCATE))) == ["urgent-0"]


def test_the_limit_of_a_queue_stops_it_and_says_so() -> None:
    built = cluster().node("n").queue("q", 0, limit=1).pending("p", 2, gpus=1)
    result = built.cycle(ALLOCATE)
    assert result.decisions == []
    [fit] = result.fit.pod_groups[0]
    assert fit.reason is GroupReason.OVER_LIMIT
    assert (fit.evidence.bound, fit.evidence.requested) == (1, 2)  # type: ignore[union-attr]


def test_non_preemptible_work_stays_within_quota() -> None:
    built = cluster().node("n").queue("q", 1).pending("a", priority=100).pending("b", priority=100)
    result = built.cycle(ALLOCATE)
    assert list(placements(result)) == ["a-0"]
    [fit] = result.fit.pod_groups[1]
    assert fit.reason is GroupReason.NON_PREEMPTIBLE_OVER_QUOTA


def test_an_unset_cpu_limit_is_nothing_at_all() -> None:
    built = cluster().node("n").queue("q", 8, cpu=QueueAmounts(quota=inf)).pending("p")
    result = built.cycle(ALLOCATE)
    assert result.decisions == []
    assert result.fit.pod_groups[0][0].reason is GroupReason.OVER_LIMIT


def test_a_task_waits_for_room_being_freed() -> None:
    built = cluster().node("n", gpus=1).running("old", ["n"]).pending("new")
    cluster_input = built.build()
    leaving = _with_status(cluster_input.pod_groups[0], TaskStatus.RELEASING)
    built._groups[0] = leaving
    result = built.cycle(ALLOCATE)
    [decision] = result.decisions
    assert isinstance(decision, Nominate)
    assert (decision.task.name, decision.node, decision.is_moved_victim) == ("new-0", "n", False)
    assert status_of(result, "new-0") is NOMINATED


def test_a_gang_completed_only_by_waiting_waits_as_a_whole() -> None:
    built = cluster().node("n", gpus=2).running("old", ["n"]).pending("gang", 2)
    built._groups[0] = _with_status(built._groups[0], TaskStatus.RELEASING)
    result = built.cycle(ALLOCATE)
    assert [type(decision) for decision in result.decisions] == [Nominate, Nominate]
    assert result.state.pod_groups.last_start == [None, None]


def test_an_elastic_task_may_wait_while_the_gang_is_bound() -> None:
    built = cluster().node("n", gpus=2).running("old", ["n"]).pending("gang", 2, minimum=1)
    built._groups[0] = _with_status(built._groups[0], TaskStatus.RELEASING)
    result = built.cycle(ALLOCATE)
    assert [type(decision) for decision in result.decisions] == [Bind, Nominate]
    assert result.state.pod_groups.last_start[1] == 0.0


def test_a_task_stuck_in_termination_frees_no_resources() -> None:
    built = cluster().node("n", gpus=1).running("old", ["n"]).pending("new")
    built._groups[0] = _with_status(built._groups[0], TaskStatus.STUCK_IN_RELEASING)
    assert built.cycle(ALLOCATE).decisions == []


def test_a_gated_task_keeps_its_gang_from_being_ready() -> None:
    built = cluster().node("n").pending("gang", 2)
    group = built._groups[0]
    from dataclasses import replace

    gated = replace(group.tasks[1], status=TaskStatus.GATED)
    built._groups[0] = replace(group, tasks=(group.tasks[0], gated))
    assert built.cycle(ALLOCATE).decisions == []


def test_queue_depth_keeps_the_best_pod_groups() -> None:
    built = cluster().node("n").pending("low", priority=10).pending("high", priority=75)
    built.pending("middle", priority=50)
    config = SchedulerConfig(actions=(ALLOCATE,), queue_depth={ALLOCATE: 2})
    result = built.cycle(config=config)
    assert [decision.task.name for decision in result.decisions] == ["high-0", "middle-0"]


def test_a_missing_queue_is_reported_and_other_queues_are_scheduled() -> None:
    built = cluster().node("n").queue("q").pending("lost", queue="nowhere").pending("p")
    result = built.cycle(ALLOCATE)
    assert list(placements(result)) == ["p-0"]
    [fit] = result.fit.pod_groups[0]
    assert (fit.reason, fit.evidence) == (GroupReason.QUEUE_DOES_NOT_EXIST, "nowhere")


def test_a_pod_group_in_a_parent_queue_is_left_alone() -> None:
    built = cluster().node("n").queue("top").queue("leaf", parent="top").pending("p", queue="top")
    assert built.cycle(ALLOCATE).decisions == []


def test_optional_subgroups_grow_one_by_one() -> None:
    root = SubGroupInput(
        min_subgroups=1,
        pod_sets=tuple(PodSetInput(name=name, min_available=2) for name in ("a", "b", "c")),
    )
    built = cluster().node("n", gpus=5).group(_tree_group("g", root, ("a", "b", "c"), each=2))
    result = built.cycle(ALLOCATE)
    assert [decision.task.name for decision in result.decisions] == [
        "g-a-0",
        "g-a-1",
        "g-b-0",
        "g-b-1",
    ]


def test_a_subgroup_with_too_few_tasks_is_not_chosen_for_the_gang() -> None:
    """KAI takes the first members by name, ready or not (defect C)."""
    root = SubGroupInput(
        min_subgroups=1,
        pod_sets=(
            PodSetInput(name="a", min_available=3),
            PodSetInput(name="b", min_available=2),
        ),
    )
    built = cluster().node("n").group(_tree_group("g", root, ("a", "b"), each=2))
    result = built.cycle(ALLOCATE)
    assert sorted(placements(result)) == ["g-b-0", "g-b-1"]


def test_decisions_do_not_depend_on_the_order_of_the_snapshot() -> None:
    built = cluster().nodes(3).queue("a", 4).queue("b", 4)
    for number in range(12):
        built.pending(
            f"p{number}", 1 + number % 3, gpus=[1, 2, 0.5][number % 3], queue="ab"[number % 2]
        )
    forward = built.cycle().decisions
    for part in (built._nodes, built._queues, built._groups):
        part.reverse()
    assert built.cycle().decisions == forward
    assert len(forward) > 10


@pytest.mark.parametrize("gpus", [1, 0.5])
def test_the_start_is_noted_only_for_a_first_start(gpus: float) -> None:
    built = cluster().node("n").pending("fresh", gpus=gpus)
    built.running("runs", ["n"], minimum=1, last_start=-60.0)
    result = built.cycle(ALLOCATE)
    assert result.state.pod_groups.last_start == [0.0, -60.0]


def test_cpu_tasks_prefer_nodes_without_gpus() -> None:
    built = cluster().node("a", gpus=8).node("z", gpus=0).pending("p", request=request(0))
    assert placements(built.cycle(ALLOCATE)) == {"p-0": "z"}


def test_a_nominated_node_beats_every_other_score() -> None:
    built = cluster().nodes(3).running("r", ["n0"]).pending("p", task={"nominated_node": "n2"})
    assert placements(built.cycle(ALLOCATE))["p-0"] == "n2"


def _with_status(group, status):  # type: ignore[no-untyped-def]
    from dataclasses import replace

    return replace(group, tasks=tuple(replace(task, status=status) for task in group.tasks))


def _tree_group(name, root, sets, each):  # type: ignore[no-untyped-def]
    from scheduler.core.cluster.inputs import PodGroupInput, TaskInput

    tasks = tuple(
        TaskInput(
            name=f"{name}-{pod_set}-{number}",
            uid=f"{name}-{pod_set}-{number}",
            subgroup=pod_set,
            request=request(1),
        )
        for pod_set in sets
        for number in range(each)
    )
    return PodGroupInput(name=name, uid=name, queue="default", root=root, tasks=tasks)

"""From the snapshot to the state: what is refused, what is charged, what falls away."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from scheduler.core.cluster.axis import GPU_ROW, PODS_ROW, mig_units
from scheduler.core.cluster.build import build_state
from scheduler.core.cluster.inputs import (
    OtherPod,
    PodGroupInput,
    PodSetInput,
    SubGroupInput,
    TaskInput,
)
from scheduler.core.cluster.queues import flatten
from scheduler.core.cluster.state import hold_of
from scheduler.core.cluster.status import TaskStatus
from scheduler.core.config import SchedulerConfig
from scheduler.core.errors import InputError, InvariantError
from tests.builders import GB, cluster, request


def pod(name: str, node: str = "", **options: object) -> TaskInput:
    status = TaskStatus.RUNNING if node else TaskStatus.PENDING
    options.setdefault("request", request(1))
    return TaskInput(name=name, uid=name, node=node, status=status, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("built", "message"),
    [
        (cluster().node("n").node("n"), "node 'n' is in the snapshot twice"),
        (cluster().queue("q").queue("q"), "queue 'q' is in the snapshot twice"),
        (cluster().pending("p").pending("p"), "pod group /p is in the snapshot twice"),
        (
            cluster().pending("p", task={"subgroup": "x"}),
            "task /p-0 is in subgroup 'x', pod group /p has \\['default'\\]",
        ),
        (
            cluster().group(
                PodGroupInput(
                    name="g",
                    queue="default",
                    root=SubGroupInput(pod_sets=(PodSetInput(name="a"), PodSetInput(name="a"))),
                )
            ),
            "two pod sets of one name",
        ),
    ],
)
def test_contradictions_are_refused(built, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=message):
        build_state(built.build())


def test_queues_without_a_root_are_gone_with_all_below() -> None:
    built = cluster().queue("a", parent="gone").queue("b", parent="a").queue("c")
    built.queue("x", parent="y").queue("y", parent="x")
    assert build_state(built.build()).queues.names == ["c"]


def test_nodes_are_in_order_of_name_and_queues_in_order_of_age() -> None:
    built = cluster().node("n10").node("n2").queue("young", created=5.0).queue("old", created=1.0)
    state = build_state(built.build())
    assert state.nodes.names == ["n10", "n2"]
    assert state.queues.names == ["old", "young"]


def test_equal_tasks_share_one_class_even_if_their_parts_are_other_objects() -> None:
    built = cluster().pending("a", request=request(1)).pending("b", request=request(1))
    state = build_state(built.pending("c", gpus=2).build())
    assert [task_class.index for task_class in state.tasks.task_class] == [0, 0, 1]


def test_what_runs_is_charged_and_what_leaves_is_room_to_wait_for() -> None:
    built = cluster().node("n", gpus=8).running("r", ["n", "n"], gpus=2)
    leaving = replace(built._groups[0].tasks[1], status=TaskStatus.RELEASING)
    built._groups[0] = replace(built._groups[0], tasks=(built._groups[0].tasks[0], leaving))
    state = build_state(built.build())
    assert state.nodes.idle[GPU_ROW].tolist() == [4.0]
    assert state.nodes.releasing[GPU_ROW].tolist() == [2.0]
    assert state.nodes.idle[PODS_ROW].tolist() == [108.0]
    assert state.pod_groups.active_allocated == [1]
    state.validate()


def test_giving_back_one_by_one_what_was_charged_in_bulk_empties_the_nodes() -> None:
    built = cluster().node("n0", gpus=8).node("n1", gpus=8)
    built.running("a", ["n0", "n0", "n1"], gpus=2).running("b", ["n1"], gpus=1)
    built.running("going", ["n0"], gpus=1)
    leaving = replace(built._groups[2].tasks[0], status=TaskStatus.RELEASING)
    built._groups[2] = replace(built._groups[2], tasks=(leaving,))
    state = build_state(built.build())
    assert state.nodes.idle[2].tolist() == [3.0, 5.0]
    for task, node in enumerate(state.tasks.node):
        state.release(task, node, hold_of(state.tasks.status[task]))
    assert state.nodes.idle_rows == state.nodes.allocatable_rows
    assert not any(any(row) for row in state.nodes.releasing_rows)
    assert state.nodes.whole_gpus_used == [0.0, 0.0]


def test_a_nomination_in_the_snapshot_is_charged_to_the_node() -> None:
    built = cluster().node("n").running("r", ["n"], gpus=2)
    group = built._groups[0]
    nominated = replace(group.tasks[0], status=TaskStatus.NOMINATED)
    built._groups[0] = replace(group, tasks=(nominated,))
    state = build_state(built.build())
    assert state.nodes.releasing[GPU_ROW].tolist() == [-2.0]
    assert state.pod_groups.pod_sets.nominated == [1]


def test_a_resource_the_node_does_not_have_is_not_charged_there() -> None:
    built = cluster().node("n", gpus=0).running("r", ["n"], gpus=2)
    state = build_state(built.build())
    assert state.nodes.idle[GPU_ROW].tolist() == [0.0]
    assert state.nodes.idle[0].tolist() == [999_000.0]


def test_a_task_on_an_unknown_node_counts_in_its_gang_but_holds_nothing() -> None:
    session = cluster().node("n").running("r", ["elsewhere"]).session()
    assert session.state.tasks.node == [-1]
    assert session.state.pod_groups.active_allocated == [1]
    assert session.policy.ledger.allocated[0] == [0.0, 0.0, 0.0]


def test_a_reservation_holds_everything_but_the_device() -> None:
    built = cluster().node("n", gpus=2).other(OtherPod(task=pod("r", "n"), is_reservation=True))
    state = build_state(built.build())
    assert state.nodes.idle[GPU_ROW].tolist() == [2.0]
    assert state.nodes.idle[PODS_ROW].tolist() == [109.0]


def test_pods_of_other_schedulers_leave_the_total_that_queues_share() -> None:
    built = cluster().node("n", gpus=8).node("down", gpus=8, ready=False)
    built.other(OtherPod(task=pod("f", "n", request=request(2, cpu=10)), is_foreign=True))
    built.other(OtherPod(task=pod("g", "down"), is_foreign=True))
    built.other(OtherPod(task=pod("ours", "n")))
    session = built.session()
    assert session.policy.ledger.totals == (990_000.0, 999 * GB, 6.0)
    assert session.state.nodes.idle[GPU_ROW].tolist() == [7.0, 5.0]


def test_gated_and_finished_tasks_are_counted_apart() -> None:
    built = cluster().node("n").pending("p", 3)
    statuses = [TaskStatus.GATED, TaskStatus.SUCCEEDED, TaskStatus.PENDING]
    tasks = tuple(
        replace(task, status=status)
        for task, status in zip(built._groups[0].tasks, statuses, strict=True)
    )
    built._groups[0] = replace(built._groups[0], tasks=tasks)
    state = build_state(built.build())
    sets = state.pod_groups.pod_sets
    assert (sets.pending, sets.gated, sets.active_used) == ([1], [1], [0])
    state.validate()


def test_without_hierarchy_all_children_hang_below_one_unlimited_queue() -> None:
    built = cluster().node("n").queue("top", 1, limit=1).queue("leaf", 4, parent="top")
    session = built.pending("p", 2, queue="leaf").session(
        SchedulerConfig(full_hierarchy_fairness=False)
    )
    assert session.state.queues.names == ["default", "leaf"]
    assert session.policy.ledger.limits[0] == (inf, inf, inf)
    assert [q.parent for q in flatten(built.build().queues)] == ["", "default"]


@pytest.mark.parametrize(
    ("name", "units"),
    [("nvidia.com/mig-3g.20gb", 3.0), ("nvidia.com/mig-1g.5gb", 1.0), ("nvidia.com/mig-x", 0.0)],
)
def test_mig_units(name: str, units: float) -> None:
    assert mig_units(name) == units


def test_the_measures_of_gpu_memory_differ_by_purpose() -> None:
    built = cluster().node("small", gpu_memory_mib=1000).node("large", gpu_memory_mib=4000)
    memory_request = request(0, gpu_memory_mib=500, gpu_devices=2)
    state = build_state(built.pending("p", request=memory_request).build())
    task_class = state.tasks.task_class[0]
    assert task_class.requested[2] == 1.0
    assert task_class.gate_amounts[2] == 0.25
    assert task_class.charged_on(3000)[2] == 0.34
    assert task_class.gate_amounts_on(3000)[2] == 0.34
    assert task_class.vector[GPU_ROW] == 0.0


def test_parts_of_several_devices_are_rounded_to_hundredths() -> None:
    share_request = request(0.333, gpu_devices=3)
    state = build_state(
        cluster().node("n", gpu_memory_mib=1000).pending("p", request=share_request).build()
    )
    task_class = state.tasks.task_class[0]
    assert task_class.vector[GPU_ROW] == 0.99
    assert task_class.memory_on(1000) == 333
    assert task_class.gate_amounts_on(1000)[2] == pytest.approx(1.02)


def test_each_kind_of_inconsistency_is_reported_by_name() -> None:
    session = cluster().node("n").running("r", ["n"]).session()
    state = session.state
    state.pod_groups.pod_sets.pending[0] = 5
    with pytest.raises(InvariantError, match="a counter says 5, its tasks say 0"):
        state.validate()
    state.pod_groups.pod_sets.pending[0] = 0
    del state.nodes.tasks[0][0]
    with pytest.raises(InvariantError, match="r-0 holds node n but is not on it"):
        state.validate()
    state.nodes.tasks[0][0] = None
    state.nodes.idle_rows[GPU_ROW][0] = 99.0
    state.nodes.touched.append(0)
    with pytest.raises(InvariantError, match="more idle GPUs than it has"):
        state.validate()


def test_a_device_above_its_memory_is_a_broken_state() -> None:
    built = cluster().node("n").running("s", ["n", "n"], gpus=0.7, gpu_groups=[("g",), ("g",)])
    with pytest.raises(InvariantError, match="GPU group g on node n"):
        built.session().state.validate()

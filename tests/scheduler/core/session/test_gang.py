"""Gang rules: the next chunk, the eviction batch, what is satisfied, ready and elastic."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.core.cluster.inputs import PodGroupInput, PodSetInput, SubGroupInput, TaskInput
from scheduler.core.cluster.podgroups import PodSetLeaf
from scheduler.core.cluster.status import TaskStatus
from scheduler.core.session.gang import GangView
from tests.builders import cluster, request

R, P, G, X = TaskStatus.RUNNING, TaskStatus.PENDING, TaskStatus.GATED, TaskStatus.RELEASING


def view_of(root: SubGroupInput, tasks: dict[str, list[TaskStatus]]) -> GangView:
    """Make a view of one pod group; tasks by pod set, in task order."""
    inputs = [
        TaskInput(
            name=f"{name}{number}",
            uid=f"{name}{number}",
            subgroup=name,
            status=status,
            node="n" if status in (R, X) else "",
            request=request(1),
        )
        for name, statuses in tasks.items()
        for number, status in enumerate(statuses)
    ]
    group = PodGroupInput(name="g", uid="g", queue="default", root=root, tasks=tuple(inputs))
    return cluster().node("n", gpus=99).group(group).session().view(0)


def names(view: GangView, tasks: list[int]) -> list[str]:
    return [view.state.tasks.inputs[task].name for task in tasks]


def tree(*pod_sets: tuple[str, int], required: int | None = None) -> SubGroupInput:
    return SubGroupInput(
        min_subgroups=required,
        pod_sets=tuple(PodSetInput(name=name, min_available=least) for name, least in pod_sets),
    )


@pytest.mark.parametrize(
    ("statuses", "least", "expected"),
    [
        ([P, P, P], 3, ["a0", "a1", "a2"]),
        ([P, P, P], 2, ["a0", "a1"]),
        ([R, P, P], 2, ["a1"]),
        ([R, R, P, P], 2, ["a2"]),
        ([P, P], 0, ["a0"]),
        ([R, R], 2, []),
        ([G, P], 2, ["a1"]),
        ([P], 3, ["a0"]),
    ],
)
def test_the_chunk_of_one_pod_set(
    statuses: list[TaskStatus], least: int, expected: list[str]
) -> None:
    view = view_of(tree(("a", least)), {"a": statuses})
    assert names(view, view.next_chunk(include_evicted=False)) == expected


def test_the_chunk_of_a_gang_takes_as_many_members_as_are_missing() -> None:
    members = [(f"p{i}", 2) for i in range(4)]
    view = view_of(tree(*members, required=3), {f"p{i}": [P, P] for i in range(4)})
    assert names(view, view.next_chunk(include_evicted=False)) == [
        f"p{i}{j}" for i in range(3) for j in (0, 1)
    ]


def test_satisfied_members_count_towards_the_gang() -> None:
    """KAI collects the first three in order, also those beyond the missing one (defect C)."""
    members = [(f"p{i}", 1) for i in range(4)]
    view = view_of(tree(*members, required=3), {"p0": [P], "p1": [R], "p2": [R], "p3": [P]})
    assert names(view, view.next_chunk(include_evicted=False)) == ["p00"]


def test_growth_takes_the_least_over_its_minimum_first() -> None:
    view = view_of(tree(("a", 1), ("b", 2)), {"a": [R, R, P], "b": [R, R, P]})
    assert names(view, view.next_chunk(include_evicted=False)) == ["b2"]


def test_growth_leaves_out_a_subgroup_that_can_never_be_whole() -> None:
    view = view_of(tree(("a", 3), ("b", 1), required=1), {"a": [P, P], "b": [R]})
    assert view.next_chunk(include_evicted=False) == []


def test_nested_groups_recurse() -> None:
    root = SubGroupInput(
        subgroups=(
            SubGroupInput(name="left", pod_sets=(PodSetInput(name="a", min_available=1),)),
            SubGroupInput(name="right", pod_sets=(PodSetInput(name="b", min_available=2),)),
        )
    )
    view = view_of(root, {"a": [R, P], "b": [P, P, P]})
    assert names(view, view.next_chunk(include_evicted=False)) == ["b0", "b1"]
    assert not view.is_gang_satisfied()


def test_evicted_tasks_want_their_place_back_only_in_simulations() -> None:
    view = view_of(tree(("a", 1)), {"a": [X, P]})
    view.state.tasks.is_virtual[0] = 1
    assert names(view, view.next_chunk(include_evicted=True)) == ["a0"]
    assert names(view, view.next_chunk(include_evicted=False)) == ["a1"]


@pytest.mark.parametrize(
    ("root", "tasks", "expected"),
    [
        (tree(("a", 2)), {"a": [R, R, R]}, ["a2"]),
        (tree(("a", 2)), {"a": [R, R]}, ["a0", "a1"]),
        (tree(("a", 3)), {"a": [R, R, P]}, ["a0", "a1"]),
        (tree(("a", 1), ("b", 1)), {"a": [R, R], "b": [R, R, R]}, ["b2"]),
        (tree(("a", 1), ("b", 0)), {"a": [R, R], "b": [R]}, ["b0"]),
        (tree(("a", 1), ("b", 2), required=1), {"a": [R], "b": [R, R]}, ["b0", "b1"]),
        (tree(("a", 2), ("b", 1)), {"a": [R, R, R], "b": [P]}, ["a2"]),
    ],
)
def test_eviction_batches(
    root: SubGroupInput, tasks: dict[str, list[TaskStatus]], expected: list[str]
) -> None:
    view = view_of(root, tasks)
    assert names(view, view.eviction_batch()) == expected


def test_a_nested_group_gives_its_surplus() -> None:
    root = SubGroupInput(
        subgroups=(
            SubGroupInput(
                name="in",
                min_subgroups=1,
                pod_sets=(
                    PodSetInput(name="a", min_available=1),
                    PodSetInput(name="b", min_available=1),
                ),
            ),
            SubGroupInput(name="low", pod_sets=(PodSetInput(name="c", min_available=2),)),
        )
    )
    view = view_of(root, {"a": [R], "b": [R], "c": [R, P]})
    assert names(view, view.eviction_batch()) == ["b0"]
    rest = view.without(view.eviction_batch())
    assert names(rest, rest.eviction_batch()) == ["a0", "c0"]


def test_what_a_view_hides_does_not_exist_for_it() -> None:
    view = view_of(tree(("a", 1)), {"a": [R, R, P, P]})
    rest = view.without([1, 3])
    assert (view.active(0), rest.active(0)) == (2, 1)
    assert names(rest, rest.all_active_tasks()) == ["a0"]
    assert names(rest, rest.next_chunk(include_evicted=False)) == ["a2"]
    assert names(rest, rest.eviction_batch()) == ["a0"]


def test_lowered_minimums_make_a_partial_gang() -> None:
    view = view_of(tree(("a", 3), ("b", 2)), {"a": [P] * 3, "b": [P] * 2})
    partial = GangView(
        view.state, 0, hidden=frozenset([2, 3, 4]), minimums={0: 2, 1: 0}, required={"": 1}
    )
    assert names(partial, partial.next_chunk(include_evicted=True)) == ["a0", "a1"]
    assert partial.is_ready(partial.root)


@pytest.mark.parametrize(
    ("statuses", "least", "state"),
    [([R, P], 2, 0), ([R, R], 2, 1), ([R, R, R], 2, 2), ([P], 0, 1), ([R], 0, 2)],
)
def test_elastic_state_of_one_pod_set(statuses: list[TaskStatus], least: int, state: int) -> None:
    assert view_of(tree(("a", least)), {"a": statuses}).elastic_state() == state


def test_an_empty_optional_subgroup_does_not_keep_a_pod_group_below() -> None:
    """KAI asks every pod set, optional or not (defect B)."""
    view = view_of(tree(("a", 1), ("b", 1), required=1), {"a": [R], "b": [P]})
    assert view.elastic_state() == 1
    more = view_of(tree(("a", 1), ("b", 1), required=1), {"a": [R], "b": [R]})
    assert more.elastic_state() == 2
    surplus = view_of(tree(("a", 1), ("b", 1)), {"a": [R, R], "b": [R]})
    assert surplus.elastic_state() == 2


def test_readiness_needs_tasks_that_may_be_placed() -> None:
    assert view_of(tree(("a", 2)), {"a": [R, P]}).is_ready_to_run()
    assert not view_of(tree(("a", 2)), {"a": [R, G]}).is_ready_to_run()
    optional = view_of(tree(("a", 2), ("b", 1), required=1), {"a": [P], "b": [P]})
    assert optional.is_ready_to_run()
    assert not view_of(tree(("a", 2), ("b", 1)), {"a": [P], "b": [P]}).is_ready_to_run()


def test_more_required_members_than_there_are_is_never_satisfied() -> None:
    view = view_of(tree(("a", 1), required=2), {"a": [R]})
    assert not view.is_gang_satisfied()
    assert not view.is_ready_to_run()


def test_elastic_means_more_tasks_than_the_minimum() -> None:
    assert view_of(tree(("a", 1)), {"a": [R, P]}).is_elastic()
    assert not view_of(tree(("a", 2)), {"a": [R, P]}).is_elastic()


def test_members_by_name_where_subgroups_are_not_ordered() -> None:
    view = view_of(tree(("b", 1), ("a", 0)), {"a": [], "b": [P]})
    plain = GangView(view.state, 0, is_ordered=False)
    assert [m.name for m in plain.ordered_members(plain.root)] == ["a", "b"]
    assert [m.name for m in view.ordered_members(view.root)] == ["b", "a"]
    assert all(isinstance(m, PodSetLeaf) for m in view.root.members)


def test_task_order_puts_leaders_and_labelled_tasks_first() -> None:
    labels = [
        {},
        {"kai.scheduler/task-priority": "x"},
        {"kai.scheduler/task-priority": "2"},
        {"kai.scheduler/task-priority": "10"},
        {"ray.io/node-type": "head"},
        {"training.kubeflow.org/job-role": "launcher"},
    ]
    tasks = tuple(
        TaskInput(name=f"t{i}", uid=f"t{i}", labels=label, request=request(1))
        for i, label in enumerate(labels)
    )
    root = tree(("default", 6))
    group = PodGroupInput(name="g", uid="g", queue="default", root=root, tasks=tasks)
    session = cluster().node("n").group(group).session()
    view = session.view(0)
    assert names(view, view.next_chunk(include_evicted=False)) == [
        "t5",
        "t4",
        "t3",
        "t2",
        "t1",
        "t0",
    ]


def test_equal_tasks_are_ordered_by_age_and_then_by_uid() -> None:
    tasks = tuple(
        TaskInput(name=n, uid=n, created=age, request=request(1))
        for n, age in (("j-2", 0.0), ("j-10", 0.0), ("j-1", 5.0))
    )
    group = PodGroupInput(
        name="g", uid="g", queue="default", root=tree(("default", 3)), tasks=tasks
    )
    view = cluster().node("n").group(replace(group)).session().view(0)
    assert names(view, view.next_chunk(include_evicted=False)) == ["j-10", "j-2", "j-1"]

"""The kept state equals one built anew after any sequence of events, whatever sessions did in between."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube.resources import PODGROUPS, PODS
from scheduler.core.cluster.compare import differences
from scheduler.core.cluster.inputs import ClusterInput, OtherPod, PodGroupInput, TaskInput
from scheduler.core.cluster.kept import KeptState, difference
from scheduler.core.cluster.status import TaskStatus
from scheduler.core.config import SchedulerConfig
from scheduler.core.cycle import open_session, run_cycle
from scheduler.core.errors import InputError
from scheduler.core.session.session import Session
from scheduler.load.build import SnapshotBuilder
from scheduler.settings.params import ShardParams
from tests.builders import cluster, request
from tests.scheduler.load.changing import STEPS, Step, carry_out, first_cluster, moment
from tests.scheduler.load.objects import NOW, group, pod

CONFIG = SchedulerConfig()
PARAMS = ShardParams(max_evictions_per_owner=1, stuck_in_releasing_s=20.0)


def compare(kept_state: KeptState, cluster_input: ClusterInput) -> None:
    """Open a session on the kept state and one on a new state, compare them, and let both decide."""
    ours = run_cycle(cluster_input, CONFIG, kept_state=kept_state, after_open=_compare_with_new)
    theirs = run_cycle(cluster_input, CONFIG)
    assert ours.decisions == theirs.decisions
    ours.state.validate()


def _compare_with_new(session: Session) -> None:
    anew = open_session(session.state.cluster_input, CONFIG)
    assert differences(session.state, anew.state) == []
    assert session.state.pod_groups.pod_sets.tasks == anew.state.pod_groups.pod_sets.tasks
    assert session.policy.ledger == anew.policy.ledger


@settings(max_examples=60, deadline=None, derandomize=True)
@given(STEPS)
def test_a_kept_state_equals_one_built_anew_after_any_steps(steps: list[Step]) -> None:
    living = first_cluster()
    builder, kept_state = SnapshotBuilder(PARAMS, origin=NOW), KeptState()
    for number, step in enumerate([*steps, ("cycle", 0, 0)]):
        carry_out(living, step)
        if step[0] == "cycle":
            compare(kept_state, builder.build(living.store.view(), moment(number)).cluster)


CHANGES: dict[str, list[Step]] = {
    "nothing": [],
    "a pod runs": [("pod", 0, 1)],
    "a pod comes": [("pod", 4, 0)],
    "a pod goes": [("drop pod", 0, 0)],
    "a pod group comes": [("drop group", 1, 0), ("cycle", 0, 0), ("group", 1, 1)],
    "a pod group goes": [("drop group", 0, 0)],
    "a pod group gets subgroups": [("group", 0, 4)],
    "a queue is edited": [("queue", 1, 9)],
    "a queue goes": [("drop queue", 1, 0)],
    "a node is cordoned": [("node", 0, 4)],
    "a node has fewer devices": [("node", 0, 1)],
    "a pod of no pod group comes": [("pod", 5, 17)],
}
REBUILDS: dict[str, list[Step]] = {
    "a node comes": [("drop node", 0, 0), ("cycle", 0, 0), ("node", 0, 0)],
    "a node goes": [("drop node", 0, 0)],
    "a new resource": [("node", 0, 6)],
    "a new size of GPU": [("node", 0, 3)],
}


def carried_out(steps: list[Step]) -> tuple[object, object]:
    """Return the kept states before and after steps; sessions on them are compared with new ones."""
    living = first_cluster()
    carry_out(living, ("node", 2, 0))
    builder, kept_state = SnapshotBuilder(PARAMS, origin=NOW), KeptState()
    compare(kept_state, builder.build(living.store.view(), NOW).cluster)
    before = kept_state.state
    for step in [*steps, ("cycle", 0, 0)]:
        carry_out(living, step)
        if step[0] == "cycle":
            compare(kept_state, builder.build(living.store.view(), NOW + 1).cluster)
    return before, kept_state.state


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_taken_over(change: str) -> None:
    before, after = carried_out(CHANGES[change])
    assert after is before


@pytest.mark.parametrize("change", REBUILDS)
def test_what_renumbers_too_much_builds_the_state_anew(change: str) -> None:
    before, after = carried_out(REBUILDS[change])
    assert after is not before


def test_a_reservation_takes_no_device_though_others_are_renumbered() -> None:
    """The reservation has another number once a pod came or went before it."""
    holder = TaskInput(
        name="holder",
        uid="holder",
        request=request(1),
        status=TaskStatus.RUNNING,
        node="n",
        gpu_groups=("g",),
    )
    built = cluster().node("n", gpus=4).other(OtherPod(task=holder, is_reservation=True))
    kept_state = KeptState()
    for name in ("a", "b"):
        built.running(name, ["n"], request=request(0.25), gpu_groups=[("g",)])
        compare(kept_state, built.build())


def test_a_contradiction_is_refused_and_forgotten() -> None:
    kept_state, good = KeptState(), cluster().node("n").pending("p", gpus=1).build()
    kept_state.open(good)
    bad = replace(good, pod_groups=(*good.pod_groups, replace(good.pod_groups[0])))
    with pytest.raises(InputError, match="pod group /p is in the snapshot twice"):
        kept_state.open(bad)
    compare(kept_state, good)


def test_what_a_session_does_is_not_seen_by_the_next() -> None:
    kept_state, built = KeptState(), cluster().node("n", gpus=2).pending("p", gpus=1).build()
    first = run_cycle(built, CONFIG, kept_state=kept_state)
    second = run_cycle(built, CONFIG, kept_state=kept_state)
    assert len(first.decisions) == 1
    assert second.decisions == first.decisions


def test_classes_of_tasks_that_are_gone_do_not_pile_up() -> None:
    kept_state, base = KeptState(), cluster().node("n").build()
    for number in range(300):
        task = TaskInput(name="t", uid="t", request=request(1, cpu=number))
        group_input = PodGroupInput(name="g", queue="default", tasks=(task,))
        kept_state.open(replace(base, pod_groups=(group_input,)))
    assert kept_state.state is not None
    assert kept_state.state.classes.lookups < 270


def test_a_gang_that_loses_and_gets_pods_keeps_the_order_of_its_tasks() -> None:
    living = first_cluster()
    living.put(PODGROUPS, group("gang", minMember=2))
    names = ["c", "a", "b"]
    builder, kept_state = SnapshotBuilder(PARAMS, origin=NOW), KeptState()
    for name in names:
        living.put(PODS, pod(name, group="gang"))
        compare(kept_state, builder.build(living.store.view(), NOW).cluster)
    living.drop(PODS, pod("a"))
    compare(kept_state, builder.build(living.store.view(), NOW).cluster)
    assert kept_state.state is not None
    assert kept_state.state.tasks.status.count(TaskStatus.PENDING) >= 2


@given(st.lists(st.integers(0, 39)), st.lists(st.integers(0, 39)), st.booleans())
@settings(max_examples=100, deadline=None, derandomize=True)
def test_the_difference_names_what_only_one_side_has(
    left: list[int], right: list[int], is_sorted: bool
) -> None:
    pool = [PodGroupInput(name=f"g{number:02}", queue="q") for number in range(20)]
    pool += [replace(group, priority=7) for group in pool]
    old, new = ([pool[n] for n in {n % 20: n for n in side}.values()] for side in (left, right))
    if is_sorted:
        old.sort(key=lambda group: group.name)
        new.sort(key=lambda group: group.name)
    fresh, gone = difference(tuple(old), tuple(new))
    assert {id(group) for group in new} - {id(group) for group in old} <= set(map(id, fresh))
    assert {id(group) for group in old} - {id(group) for group in new} <= set(map(id, gone))
    assert all(group in new for group in fresh)
    if is_sorted:
        assert not set(map(id, fresh)) & set(map(id, gone))

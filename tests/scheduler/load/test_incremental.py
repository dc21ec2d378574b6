"""A snapshot made from what changed equals one made anew, and what did not change stays the same object."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from kube.gateway import Listing
from kube.resources import NODES, PODGROUPS, PODS, QUEUES
from scheduler.load.build import Snapshot, SnapshotBuilder
from scheduler.load.changes import Memo, SortedValues, changed_keys
from scheduler.load.podgroups import FreshMarks
from scheduler.settings.params import ShardParams
from tests.scheduler.load.changing import STEPS, Step, carry_out, first_cluster, moment
from tests.scheduler.load.objects import NOW, Cluster, group, node, pod, queue

MARK = FreshMarks(last_start=NOW, last_eviction=None, stale_since=None, until=NOW + 5)
PARAMS = ShardParams(max_evictions_per_owner=1, stuck_in_releasing_s=20.0)


def comparable(snapshot: Snapshot) -> tuple[object, ...]:
    return (
        snapshot.cluster,
        snapshot.spent_requests,
        snapshot.refused_pods,
        snapshot.binds,
        snapshot.queues,
        snapshot.budget_of,
        snapshot.marked_groups,
        snapshot.judged_groups,
    )


@settings(max_examples=40, deadline=None, derandomize=True)
@given(STEPS)
def test_a_kept_snapshot_equals_one_made_anew_after_any_steps(steps: list[Step]) -> None:
    cluster, params = first_cluster(), PARAMS
    kept_builder = SnapshotBuilder(params, origin=NOW)
    for number, step in enumerate([*steps, ("cycle", 0, 0)]):
        carry_out(cluster, step)
        if step[0] != "cycle":
            continue
        view = cluster.store.view()
        marks = {"ns/g1": MARK} if step[1] % 2 else {}
        anew = SnapshotBuilder(params, origin=NOW)
        assert comparable(kept_builder.build(view, moment(number), marks=marks)) == comparable(
            anew.build(view, moment(number), marks=marks)
        )


HALF_A_MINUTE = 4

CHANGES_AROUND_A_POD: dict[str, tuple[list[Step], list[Step]]] = {
    "its pod group comes": ([("drop group", 0, 0), ("pod", 0, 0)], [("group", 0, 0)]),
    "its pod group goes": ([("pod", 0, 1)], [("drop group", 0, 0)]),
    "its pod group is held back": ([("pod", 0, 0)], [("group", 0, 3)]),
    "its bind request comes": ([("pod", 0, 0)], [("request", 0, 1)]),
    "its bind request is that of an earlier pod": (
        [("pod", 0, 0), ("request", 0, 1)],
        [("request", 0, 4)],
    ),
    "it comes again under its name": ([("pod", 0, 0), ("request", 0, 1)], [("again", 0, 0)]),
    "its bind request goes": ([("pod", 0, 0), ("request", 0, 1)], [("drop request", 0, 0)]),
    "the node of its bind request goes": (
        [("pod", 0, 0), ("request", 0, 1)],
        [("drop node", 1, 0)],
    ),
    "its node comes": ([("drop node", 2, 0), ("pod", 5, 17)], [("node", 2, 0)]),
    "its node goes": ([("pod", 5, 17)], [("drop node", 2, 0)]),
    "its pause after a failed bind ends": ([("pod", 0, 15)], [("cycle", 0, 0)] * HALF_A_MINUTE),
    "it has been leaving for long": ([("pod", 0, 5)], [("cycle", 0, 0)] * HALF_A_MINUTE),
    "its claim asks for more": ([("pod", 0, 14), ("other", 2, 1)], [("other", 2, 3)]),
    "its priority class changes": ([("group", 0, 2)], [("other", 0, 2)]),
    "the levels of its topology are renamed": (
        [("group", 0, 8), ("other", 1, 0)],
        [("other", 1, 1)],
    ),
    "its last start was written": ([], [("cycle", 1, 0)]),
    "its last start came back": ([("cycle", 1, 0)], [("cycle", 0, 0)]),
}


@pytest.mark.parametrize("change", CHANGES_AROUND_A_POD)
def test_what_changes_around_a_pod_changes_its_task_or_its_pod_group(change: str) -> None:
    cluster, number = first_cluster(), 0
    kept_builder = SnapshotBuilder(PARAMS, origin=NOW)
    inputs = []
    for steps in CHANGES_AROUND_A_POD[change]:
        marks = {}
        for step in steps:
            carry_out(cluster, step)
            number += step[0] == "cycle"
            marks = {"ns/g1": MARK} if step[1] % 2 and step[0] == "cycle" else {}
        view, now = cluster.store.view(), moment(number)
        snapshot = kept_builder.build(view, now, marks=marks)
        anew = SnapshotBuilder(PARAMS, origin=NOW).build(view, now, marks=marks)
        assert comparable(snapshot) == comparable(anew)
        inputs.append((snapshot.cluster.pod_groups, snapshot.cluster.other_pods))
    assert inputs[0] != inputs[1]


def test_nothing_is_converted_when_nothing_changed() -> None:
    cluster = first_cluster()
    builder = SnapshotBuilder(ShardParams(), origin=NOW)
    before = builder.build(cluster.store.view(), NOW).cluster
    after = builder.build(cluster.store.view(), NOW + 1).cluster
    assert (before.now, after.now) == (0.0, 1.0)
    assert after.pod_groups is before.pod_groups
    assert after.nodes is before.nodes
    assert after.queues is before.queues
    assert after.other_pods is before.other_pods
    assert after.devices is before.devices


def test_a_sign_of_life_of_a_node_changes_nothing() -> None:
    cluster = Cluster().put(NODES, node("n"))
    builder = SnapshotBuilder(ShardParams(), origin=NOW)
    before = builder.build(cluster.store.view(), NOW).cluster
    cluster.put(NODES, node("n"))
    assert builder.build(cluster.store.view(), NOW).cluster.nodes is before.nodes


def test_only_the_pod_group_of_a_changed_pod_is_another_object() -> None:
    cluster = Cluster().put(NODES, node("n")).put(QUEUES, queue("q"))
    cluster.put(PODGROUPS, group("a"), group("b")).put(
        PODS, pod("a", group="a"), pod("b", group="b")
    )
    builder = SnapshotBuilder(ShardParams(), origin=NOW)
    before = builder.build(cluster.store.view(), NOW).cluster.pod_groups
    cluster.put(PODS, pod("b", group="b", node="n"))
    after = builder.build(cluster.store.view(), NOW).cluster.pod_groups
    assert [new is old for new, old in zip(after, before, strict=True)] == [True, False]


def test_a_builder_that_missed_many_views_compares_all_objects() -> None:
    cluster = Cluster().put(NODES, node("n")).put(PODGROUPS, group("a"))
    builder = SnapshotBuilder(ShardParams(), origin=NOW)
    builder.build(cluster.store.view(), NOW)
    for number in range(20):
        cluster.put(PODS, pod(f"p{number}", group="a"))
        cluster.store.view()
    (pod_group,) = builder.build(cluster.store.view(), NOW).cluster.pod_groups
    assert len(pod_group.tasks) == 20


def test_objects_that_a_new_list_lacks_are_gone() -> None:
    cluster = Cluster().put(NODES, node("n")).put(PODGROUPS, group("a"), group("b"))
    builder = SnapshotBuilder(ShardParams(), origin=NOW)
    builder.build(cluster.store.view(), NOW)
    only = cluster.store.get(PODGROUPS, "ns/b")
    cluster.store.replace(PODGROUPS, Listing(items=(only,), resource_version="1"))
    (pod_group,) = builder.build(cluster.store.view(), NOW).cluster.pod_groups
    assert pod_group.name == "b"


def test_changed_keys_are_found_by_identity() -> None:
    value, equal = [1], [1]
    assert changed_keys({"a": value, "b": value}, {"a": value, "b": equal, "c": value}) == {
        "b",
        "c",
    }
    assert changed_keys({"a": value, "b": value}, {"a": value}) == {"b"}


def test_a_memo_keeps_an_equal_result() -> None:
    memo: Memo[list[int]] = Memo()
    first = memo.get(lambda: [1], "x")
    assert memo.get(lambda: [2], "x") is first
    assert memo.get(lambda: [1], "y") is first
    assert memo.get(lambda: [3], "z") == [3]


def test_sorted_values_stay_sorted_by_single_and_by_many_changes() -> None:
    values: SortedValues[int] = SortedValues()
    for number in range(1200, 0, -1):
        values.put(f"{number:04}", number)
    assert values.values() == tuple(range(1, 1201))
    values.remove("0003")
    values.remove("none")
    values.put("0007", 70)
    values.put("0000", 0)
    expected = (0, 1, 2, 4, 5, 6, 70, *range(8, 1201))
    assert values.values() == expected
    for number in range(600, 1201):
        values.remove(f"{number:04}")
    assert values.values() == expected[:599]
    assert values.values() is values.values()

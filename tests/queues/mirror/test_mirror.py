"""The mirror ends with the cluster's picture, whatever order, repetition or gap the events come in."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kube.objects.meta import convert
from kube.resources import NODES, PODGROUPS, PODS, QUEUES
from queues.mirror.feed import MessageQueue, Mirror
from queues.mirror.kinds import KINDS
from queues.mirror.views import QueueView
from queues.mirror.writer import OBJECTS_PER_WRITE, PAUSE_S, Writer
from queues.models import LiveChange, MirrorState, PodGroup, Queue
from tests.queues.cluster_objects import (
    a_group,
    a_node,
    a_pod,
    a_queue,
    added,
    bookmark,
    deleted,
    listed,
    meta,
    modified,
)
from tests.queues.mirror.conftest import NOON, Clock

pytestmark = pytest.mark.django_db(transaction=False)


def changes() -> list[tuple[str, str]]:
    return list(LiveChange.objects.order_by("id").values_list("kind", "key"))


def test_a_list_fills_the_table_and_keeps_unset_unlimited_and_zero_apart(mirror: Mirror) -> None:
    mirror.consume(
        [
            listed(
                QUEUES,
                a_queue("root", 5, gpu={"quota": -1, "limit": 0}),
                a_queue("leaf", 6, parent="root", gpu={"quota": 2.5, "overQuotaWeight": 3}),
            )
        ]
    )
    root, leaf = Queue.objects.get(name="root"), Queue.objects.get(name="leaf")
    assert (root.quota_gpu, root.limit_gpu, root.weight_gpu) == (-1, 0, None)
    assert (leaf.quota_gpu, leaf.limit_gpu, leaf.weight_gpu, leaf.parent) == (2.5, None, 3, "root")
    assert (leaf.allocated_gpu, leaf.allocated_cpu, leaf.allocated_memory) == (1.5, 2000, 2**30)
    assert leaf.version == 6


def test_a_queue_with_a_forbidden_amount_is_mirrored_with_that_amount_unset(mirror: Mirror) -> None:
    mirror.consume([listed(QUEUES, a_queue("odd", 5, gpu={"quota": -7, "limit": 4}))])
    odd = Queue.objects.get(name="odd")
    assert (odd.quota_gpu, odd.limit_gpu) == (None, 4)


def test_a_repeated_event_writes_no_row_and_publishes_no_change(mirror: Mirror) -> None:
    mirror.consume([listed(QUEUES, a_queue("a", 5))])
    rows_before, sent_events = mirror.writer.written, len(changes())
    mirror.consume([modified(QUEUES, a_queue("a", 5)), added(QUEUES, a_queue("a", 5))])
    assert (mirror.writer.written, len(changes())) == (rows_before, sent_events)


def test_an_older_event_never_replaces_a_newer_row(mirror: Mirror) -> None:
    mirror.consume([added(QUEUES, a_queue("a", 9, parent="new"))])
    mirror.consume([modified(QUEUES, a_queue("a", 7, parent="old"))])
    assert Queue.objects.get(name="a").parent == "new"


def test_within_one_batch_the_newest_version_wins_whatever_the_order(mirror: Mirror) -> None:
    mirror.consume(
        [
            modified(QUEUES, a_queue("a", 8, parent="newest")),
            modified(QUEUES, a_queue("a", 6, parent="older")),
        ]
    )
    assert Queue.objects.get(name="a").parent == "newest"


def test_a_late_event_does_not_bring_a_deleted_object_back(mirror: Mirror) -> None:
    mirror.consume([added(QUEUES, a_queue("a", 5))])
    mirror.consume([deleted(QUEUES, a_queue("a", 8))])
    mirror.consume([modified(QUEUES, a_queue("a", 7))])
    assert not Queue.objects.exists()


def test_the_deletion_of_an_older_namesake_leaves_the_new_object(mirror: Mirror) -> None:
    mirror.consume([added(QUEUES, a_queue("a", 10, uid="second"))])
    mirror.consume([deleted(QUEUES, a_queue("a", 8, uid="first"))])
    assert Queue.objects.get(name="a").uid == "second"


def test_delete_and_create_anew_in_one_batch_ends_with_the_new_object(mirror: Mirror) -> None:
    mirror.consume([added(QUEUES, a_queue("a", 5, uid="first"))])
    mirror.consume(
        [
            deleted(QUEUES, a_queue("a", 6, uid="first")),
            added(QUEUES, a_queue("a", 7, uid="second", parent="p")),
        ]
    )
    assert (Queue.objects.get().uid, Queue.objects.get().parent) == ("second", "p")


def test_a_list_after_downtime_removes_what_vanished_and_adds_what_came(mirror: Mirror) -> None:
    mirror.consume([listed(QUEUES, a_queue("stays", 1), a_queue("goes", 2), version=2)])
    after_restart = Mirror(KINDS, Writer(sleep=lambda _s: None), now=lambda: NOON)
    after_restart.consume([listed(QUEUES, a_queue("stays", 1), a_queue("comes", 7), version=9)])
    assert list(Queue.objects.values_list("name", flat=True)) == ["comes", "stays"]
    assert ("queue", "goes") in changes()


def test_an_old_list_does_not_remove_what_came_after_it(mirror: Mirror) -> None:
    mirror.consume([added(QUEUES, a_queue("young", 50))])
    mirror.consume([listed(QUEUES, a_queue("old", 3), version=10)])
    assert list(Queue.objects.values_list("name", flat=True)) == ["old", "young"]


def test_a_list_overrules_what_the_server_lost_in_a_crash(mirror: Mirror) -> None:
    mirror.consume([added(QUEUES, a_queue("edited", 9, parent="lost"))])
    mirror.consume([added(QUEUES, a_queue("back", 4)), deleted(QUEUES, a_queue("back", 10))])
    back = [a_queue("edited", 3, parent="kept"), a_queue("back", 4)]
    mirror.consume([listed(QUEUES, *back, version=10_003)])
    assert list(Queue.objects.values_list("name", "parent", "version")) == [
        ("back", "", 4),
        ("edited", "kept", 3),
    ]


def test_a_kind_that_is_no_longer_served_lists_as_nothing(mirror: Mirror) -> None:
    mirror.consume([listed(QUEUES, a_queue("a", 5))])
    line = MessageQueue()
    line.replace(QUEUES, listed(QUEUES, version=0).listing.__class__(items=(), resource_version=""))
    mirror.consume(line.take(timeout_s=1))
    assert not Queue.objects.exists()


def test_a_big_list_is_written_in_chunks_with_a_pause_after_each(
    mirror: Mirror, clock: Clock
) -> None:
    mirror.consume([listed(QUEUES, *(a_queue(f"q{n:03}", n + 1) for n in range(250)))])
    assert Queue.objects.count() == 250
    assert clock.pauses == [PAUSE_S] * 3
    assert OBJECTS_PER_WRITE == 100


def test_the_state_of_a_kind_is_noted_once_a_second_and_bookmarks_move_it_on(
    mirror: Mirror, clock: Clock
) -> None:
    mirror.consume([listed(QUEUES, version=40)])
    assert MirrorState.objects.get(kind="Queue").version == 40
    mirror.consume([bookmark(QUEUES, a_queue("", 60))])
    assert MirrorState.objects.get(kind="Queue").version == 40
    clock.time += timedelta(seconds=2)
    mirror.consume([bookmark(QUEUES, a_queue("", 70))])
    state = MirrorState.objects.get(kind="Queue")
    assert (state.version, state.seen_at) == (70, clock.time)
    assert not Queue.objects.exists()


def test_live_changes_name_what_changed_and_all_queues_above(mirror: Mirror) -> None:
    mirror.consume([listed(QUEUES, a_queue("top", 1), a_queue("team", 2, parent="top"))])
    mirror.consume([listed(NODES, a_node("n1", 3)), added(PODGROUPS, a_group("g", 4))])
    LiveChange.objects.all().delete()
    mirror.consume([added(PODS, a_pod("p", 5, group="g", node="n1", gpus=1, phase="Running"))])
    assert changes() == [
        ("workload", "default/g"), ("node", "n1"), ("queue", "team"), ("queue", "top"),
    ]  # fmt: skip


def test_rows_and_their_changes_are_committed_together(mirror: Mirror, monkeypatch: Any) -> None:
    def fail(*_args: object, **_options: object) -> None:
        raise RuntimeError("killed in between")

    monkeypatch.setattr("queues.mirror.writer.roll_up", fail)
    with pytest.raises(RuntimeError, match="killed"):
        mirror.consume([added(QUEUES, a_queue("a", 5))])
    assert (Queue.objects.count(), changes()) == (0, [])


def test_no_object_can_stop_the_mirror(mirror: Mirror) -> None:
    """Values that no column could hold: too long, too large, with a NUL."""
    huge = convert(
        {
            "metadata": meta("odd", 5, labels={"a": "nul \x00 in it"}),
            "spec": {
                "displayName": "x\x00y", "parentQueue": "p" * 600, "priority": 10**30,
                "preemptMinRuntime": "9" * 200, "resources": {"gpu": {"quota": 1e300, "limit": -1e300}},
            },
            "status": {"allocated": {"nvidia.com/gpu": "1e400", "cpu": "nonsense"}},
        },
        QueueView,
    )  # fmt: skip
    mirror.consume([added(QUEUES, huge)])
    row = Queue.objects.get()
    assert (row.display_name, row.labels) == ("x\ufffdy", {"a": "nul \ufffd in it"})
    assert (len(row.parent), row.priority, row.limit_gpu) == (253, 2**63 - 1, None)
    assert (row.quota_gpu, row.allocated_gpu, row.allocated_cpu) == (1e300, 2.0**63, 0)
    group = a_group("g", 6, queue="q" * 900, min_member=2**40)
    mirror.consume([added(PODGROUPS, group), added(PODS, a_pod("p", 7, group="g", message="\x00"))])
    assert PodGroup.objects.get().min_member == 2**31 - 1


EVENT_SETTINGS = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@EVENT_SETTINGS
@given(st.integers(0, 2**32))
def test_any_shuffle_with_repetitions_ends_in_the_same_rows(seed: int) -> None:
    """Events of five names with several objects each, out of order and repeated."""
    chance = random.Random(seed)
    events, truth = _history(chance)
    sent_events = events + chance.choices(events, k=len(events) // 2)
    chance.shuffle(sent_events)
    Queue.objects.all().delete()
    mirror = Mirror(KINDS, Writer(sleep=lambda _s: None), now=lambda: NOON)
    while sent_events:
        size = chance.randint(1, 7)
        mirror.consume(sent_events[:size])
        del sent_events[:size]
    rows = {row.name: (row.uid, row.version) for row in Queue.objects.all()}
    assert rows == truth


def _history(chance: random.Random) -> tuple[list[Any], dict[str, tuple[str, int]]]:
    events: list[Any] = []
    alive: dict[str, tuple[str, int]] = {}
    for version in range(1, 40):
        name = f"q{chance.randrange(5)}"
        if name not in alive:
            alive[name] = (f"{name}-{version}", version)
            events.append(added(QUEUES, a_queue(name, version, uid=alive[name][0])))
        elif chance.random() < 0.4:
            uid, _version = alive.pop(name)
            events.append(deleted(QUEUES, a_queue(name, version, uid=uid)))
        else:
            alive[name] = (alive[name][0], version)
            events.append(modified(QUEUES, a_queue(name, version, uid=alive[name][0])))
    return events, alive


def test_a_pod_of_which_only_the_version_changed_is_not_written(mirror: Mirror) -> None:
    mirror.consume([listed(PODS, a_pod("p", 5))])
    before = (mirror.writer.written, changes())
    mirror.consume([modified(PODS, a_pod("p", 9))])
    assert (mirror.writer.written, changes()) == before


def test_a_group_of_which_only_the_version_changed_is_written_because_edits_name_it(
    mirror: Mirror,
) -> None:
    mirror.consume([listed(PODGROUPS, a_group("g", 5))])
    mirror.consume([modified(PODGROUPS, a_group("g", 9))])
    assert PodGroup.objects.get().version == 9

"""The mirror ends with the cluster's picture, whatever order, repetition or gap the events come in."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kube.objects.meta import convert
from kube.objects.node import NodeStatus
from kube.objects.pod import Container, ResourceRequirements
from kube.objects.podgroup import PodGroupStatus, ResourcesStatus
from kube.resources import NODES, PODGROUPS, PODS, PRIORITY_CLASSES, QUEUES
from queues.mirror.feed import MessageQueue, Mirror
from queues.mirror.kinds import KINDS
from queues.mirror.rollup import TreeView
from queues.mirror.views import QueueView
from queues.mirror.writer import OBJECTS_PER_WRITE, PAUSE_S, Writer
from queues.models import LiveChange, MirrorState, Node, Pod, PodGroup, Queue
from tests.queues.cluster_objects import (
    a_group,
    a_node,
    a_pod,
    a_priority_class,
    a_queue,
    added,
    bookmark,
    deleted,
    listed,
    meta,
    modified,
)

pytestmark = pytest.mark.django_db(transaction=False)
NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


class Clock:
    """Hands out times in order and remembers pauses."""

    def __init__(self) -> None:
        self.time = NOON
        self.pauses: list[float] = []

    def now(self) -> datetime:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def mirror(clock: Clock) -> Mirror:
    return Mirror(KINDS, Writer(sleep=clock.sleep), now=clock.now)


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


def test_pods_are_summed_up_in_their_group_whichever_comes_first(mirror: Mirror) -> None:
    mirror.consume([added(QUEUES, a_queue("team", 1))])
    mirror.consume([added(PODS, a_pod("p0", 2, group="g", gpus=2, node="n1", phase="Running"))])
    mirror.consume([added(PODGROUPS, a_group("g", 3, min_member=2))])
    group = PodGroup.objects.get(key="default/g")
    assert (group.state, group.pods, group.pods_bound, group.gpu) == ("partial", 1, 1, 2)
    mirror.consume([added(PODS, a_pod("p1", 4, group="g", gpus=2, node="n2"))])
    group.refresh_from_db()
    assert (group.state, group.pods_bound, group.gpu, group.nodes) == (
        "running",
        2,
        4,
        ["n1", "n2"],
    )
    assert group.started_at == datetime(2026, 11, 29, 12, 5, tzinfo=UTC)
    assert (group.owner_kind, group.owner_name) == ("Job", "train")


@pytest.mark.parametrize(
    ("pods", "state"),
    [
        ([], "pending"),
        ([{"phase": "Succeeded", "node": "n"}], "finished"),
        ([{"phase": "Failed", "node": "n"}], "failed"),
        ([{"phase": "Failed", "node": "n"}, {"phase": "Succeeded", "node": "n"}], "finished"),
        ([{"gated": True}], "gated"),
        ([{"gated": True}, {}], "pending"),
        ([{"node": "n", "phase": "Running"}], "running"),
    ],
)
def test_the_state_of_a_workload_follows_its_pods(
    mirror: Mirror, pods: list[dict[str, Any]], state: str
) -> None:
    mirror.consume([added(QUEUES, a_queue("team", 1)), added(PODGROUPS, a_group("g", 2))])
    mirror.consume(
        [added(PODS, a_pod(f"p{n}", 10 + n, group="g", **pod)) for n, pod in enumerate(pods)]
    )
    assert PodGroup.objects.get().state == state


def test_a_waiting_workload_shows_the_schedulers_own_reason(mirror: Mirror) -> None:
    message = "NonPreemptibleOverQuota: Non-preemptible workload is over quota. (...)"
    condition = {
        "type": "UnschedulableOnNodePool", "nodePool": "default", "reason": "Unschedulable",
        "message": message, "status": "True", "transitionID": "1",
        "lastTransitionTime": "2026-11-29T12:02:00Z",
        "reasons": [{"reason": "NonPreemptibleOverQuota", "message": "over quota"}],
    }  # fmt: skip
    mirror.consume([added(QUEUES, a_queue("team", 1))])
    mirror.consume([added(PODGROUPS, a_group("g", 2, conditions=[condition]))])
    mirror.consume([added(PODS, a_pod("p", 3, group="g", gpus=1, message="other text"))])
    group = PodGroup.objects.get()
    assert (group.reason_code, group.reason_text) == ("NonPreemptibleOverQuota", message)
    assert group.reason_since == datetime(2026, 11, 29, 12, 2, tzinfo=UTC)
    mirror.consume([modified(PODS, a_pod("p", 4, group="g", gpus=1, node="n", phase="Running"))])
    group.refresh_from_db()
    assert (group.state, group.reason_code, group.reason_text) == ("running", "", "")


def test_a_workload_waits_for_its_queue_and_is_looked_at_again_when_the_queue_comes(
    mirror: Mirror,
) -> None:
    mirror.consume([added(PODGROUPS, a_group("g", 2, queue="late"))])
    mirror.consume([added(PODS, a_pod("p", 3, group="g"))])
    assert PodGroup.objects.get().reason_code == "QueueDoesNotExist"
    mirror.consume([added(QUEUES, a_queue("late", 4, parent="nowhere"))])
    assert PodGroup.objects.get().reason_code == "QueueOrphan"
    mirror.consume([added(QUEUES, a_queue("nowhere", 5))])
    assert PodGroup.objects.get().reason_code == "NotEvaluated"
    mirror.consume([deleted(QUEUES, a_queue("late", 6, parent="nowhere"))])
    assert PodGroup.objects.get().reason_code == "QueueDoesNotExist"


def test_the_cached_tree_equals_the_rows_after_creations_moves_and_deletions(
    mirror: Mirror,
) -> None:
    chance = random.Random(3)
    names = [f"q{number}" for number in range(6)]
    parents: dict[str, str] = {}
    uids: dict[str, str] = {}
    for version in range(1, 120):
        name, parent = chance.choice(names), chance.choice(["", *names])
        uid = uids.setdefault(name, f"{name}-{version}")
        row = a_queue(name, version, parent=parent, uid=uid)
        if name in parents and chance.random() < 0.4:
            del parents[name], uids[name]
            mirror.consume([deleted(QUEUES, row)])
        else:
            parents[name] = parent
            mirror.consume([added(QUEUES, row)])
        cached, loaded = mirror.writer._tree, TreeView.load()
        assert cached is not None
        assert {shape.name: shape.parent for shape in cached.shapes.values()} == parents
        assert cached.shapes == loaded.shapes
        assert [cached.below([q]) for q in names] == [loaded.below([q]) for q in names]


def test_the_priority_comes_from_the_class_and_follows_it(mirror: Mirror) -> None:
    mirror.consume([added(PODGROUPS, a_group("g", 2, priority_class="build"))])
    assert PodGroup.objects.get().priority == 50
    mirror.consume([added(PRIORITY_CLASSES, a_priority_class("build", 100, 3))])
    assert PodGroup.objects.get().priority == 100


def test_each_new_eviction_time_counts_once(mirror: Mirror) -> None:
    key = "kai.scheduler/last-eviction-timestamp"
    mirror.consume([added(PODGROUPS, a_group("g", 2))])
    for version, time in (
        (3, "2026-11-29T12:00:00Z"),
        (4, "2026-11-29T12:00:00Z"),
        (5, "2026-11-29T13:00:00Z"),
    ):
        mirror.consume([modified(PODGROUPS, a_group("g", version, annotations={key: time}))])
    assert PodGroup.objects.get().evictions == 2


def test_a_node_sums_its_pods_and_gives_them_stable_cells(mirror: Mirror) -> None:
    mirror.consume([added(NODES, a_node("n1", 1))])
    mirror.consume(
        [
            added(PODS, a_pod("a", 2, node="n1", gpus=2)),
            added(PODS, a_pod("b", 3, node="n1", gpus=1)),
        ]
    )
    assert Pod.objects.get(name="a").devices == [0, 1]
    assert Pod.objects.get(name="b").devices == [2]
    mirror.consume([deleted(PODS, a_pod("a", 4, node="n1", gpus=2))])
    mirror.consume([added(PODS, a_pod("c", 5, node="n1", gpus=1))])
    assert (Pod.objects.get(name="b").devices, Pod.objects.get(name="c").devices) == ([2], [0])
    node = Node.objects.get()
    assert (node.used_gpu, node.used_cpu, node.used_memory, node.pods) == (2, 1000, 2 * 2**30, 2)
    assert (node.model, node.gpus, node.gpu_memory_mib) == ("H100", 8, 81559)
    assert node.taints == ["dedicated=ml:NoSchedule"]


def test_mig_slices_count_by_size_on_nodes_and_in_pods_and_groups(mirror: Mirror) -> None:
    slices = {"nvidia.com/mig-3g.20gb": "2", "nvidia.com/mig-1g.5gb": "1"}
    node = replace(a_node("n1", 1), status=NodeStatus(capacity=slices, allocatable=slices))
    limits = ResourceRequirements(limits={"nvidia.com/mig-3g.20gb": "1"})
    pod = a_pod("a", 3, node="n1", gpus=0)
    pod = replace(pod, spec=replace(pod.spec, containers=(Container(resources=limits),)))
    allocated = ResourcesStatus(allocated={"nvidia.com/mig-3g.20gb": "1"})
    group = replace(a_group("g", 4), status=PodGroupStatus(resources_status=allocated))
    mirror.consume([added(NODES, node), added(PODS, pod), added(PODGROUPS, group)])
    stored = Node.objects.get()
    assert (stored.gpus, stored.gpus_healthy, stored.used_gpu) == (7, 7, 3)
    assert (Pod.objects.get().gpu, Pod.objects.get().gpu_kind) == (3, "whole")
    assert PodGroup.objects.get().allocated_gpu == 3


def test_a_finished_pod_leaves_its_node(mirror: Mirror) -> None:
    mirror.consume([added(NODES, a_node("n1", 1)), added(PODS, a_pod("a", 2, node="n1", gpus=2))])
    mirror.consume([modified(PODS, a_pod("a", 3, node="n1", gpus=2, phase="Succeeded"))])
    assert Node.objects.get().used_gpu == 0


def test_part_devices_are_counted_once_through_their_reservation_pod(mirror: Mirror) -> None:
    share = {"annotations": {"gpu-fraction": "0.5"}, "labels": {"runai-gpu-group": "g-1"}}
    mirror.consume([added(NODES, a_node("n1", 1))])
    mirror.consume(
        [
            added(
                PODS,
                a_pod(
                    "res", 2, node="n1", gpus=1, namespace="kai-resource-reservation",
                    labels={"runai-gpu-group": "g-1"},
                ),
            ),
            added(PODS, a_pod("x", 3, node="n1", **share)),
            added(PODS, a_pod("y", 4, node="n1", **share)),
        ]
    )  # fmt: skip
    assert Node.objects.get().used_gpu == 1
    assert [Pod.objects.get(name=name).devices for name in ("res", "x", "y")] == [[0], [0], [0]]
    assert Pod.objects.get(name="x").gpu == 0.5


def test_live_changes_name_what_changed_and_all_queues_above(mirror: Mirror) -> None:
    mirror.consume([listed(QUEUES, a_queue("top", 1), a_queue("team", 2, parent="top"))])
    mirror.consume([listed(NODES, a_node("n1", 3)), added(PODGROUPS, a_group("g", 4))])
    LiveChange.objects.all().delete()
    mirror.consume([added(PODS, a_pod("p", 5, group="g", node="n1", gpus=1, phase="Running"))])
    assert changes() == [
        ("workload", "default/g"), ("node", "n1"), ("queue", "team"), ("queue", "top"),
    ]  # fmt: skip


def test_rows_and_their_changes_are_committed_together(mirror: Mirror, monkeypatch: Any) -> None:
    def fail(*_args: object) -> None:
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

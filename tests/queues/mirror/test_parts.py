"""How several workers divide the mirror, and hand over what they touched; tests/queues/mirror/workers runs them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction

from kube.resources import NAMESPACES
from queues import live
from queues.mirror.feed import heartbeat_of, write_heartbeat
from queues.mirror.handover import take_others, touched_between
from queues.mirror.identity import start_with_cluster
from queues.mirror.kinds import KINDS
from queues.mirror.part import Part
from queues.mirror.rollup import Touched
from queues.mirror.rows import pod_row
from queues.models import MirrorState, Queue
from tests.fakes.gateway import FakeGateway
from tests.queues.cluster_objects import a_pod
from tests.queues.mirror.conftest import NOON

PODS_KIND = next(kind for kind in KINDS if kind.resource.kind == "Pod")


@pytest.fixture
def cluster() -> FakeGateway:
    fake = FakeGateway()
    fake.seed(NAMESPACES, {"metadata": {"name": "kube-system", "uid": "first"}})
    return fake


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_every_key_belongs_to_one_worker_and_all_have_some(count: int) -> None:
    parts = [Part(index, count) for index in range(count)]
    keys = [f"team/group-{number}" for number in range(200)]
    owners = [[part.index for part in parts if part.has(key)] for key in keys]
    assert all(len(indexes) == 1 for indexes in owners)
    assert {index for (index,) in owners} == set(range(count))


def test_a_pod_belongs_to_the_worker_of_its_group_as_object_and_as_row() -> None:
    for number in range(50):
        grouped, single = a_pod(f"p{number}", group="g"), a_pod(f"p{number}")
        for part in (Part(0, 3), Part(1, 3), Part(2, 3)):
            assert PODS_KIND.is_of(part, grouped) == part.has("default/g")
            assert PODS_KIND.is_of(part, single) == part.has(single.key)
            for pod in (grouped, single):
                assert PODS_KIND.is_row_of(part, pod_row(pod)) == PODS_KIND.is_of(part, pod)


def test_names_of_further_workers_have_a_number() -> None:
    assert [Part(index, 3).named("mirror") for index in range(3)] == [
        "mirror", "mirror-1", "mirror-2",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("index", "count", "problem"),
    [
        (2, 2, "expected a worker from 0 to 1 of 2, got 2"),
        (-1, 2, "expected a worker from 0 to 1 of 2, got -1"),
        (0, 0, "expected at least one worker, got 0"),
    ],
)
def test_a_worker_that_cannot_be_is_refused(index: int, count: int, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Part(index, count)


def test_more_than_one_worker_is_refused_on_sqlite() -> None:
    with pytest.raises(CommandError, match="--workers 2: more than one worker need PostgreSQL"):
        call_command("mirror_cluster", worker=0, workers=2)
    with pytest.raises(CommandError, match="expected a worker from 0 to 1 of 2, got 5"):
        call_command("mirror_cluster", worker=5, workers=2)


@pytest.mark.django_db
def test_what_is_not_of_the_part_reaches_the_others_through_the_log() -> None:
    part = Part(1, 2)
    groups = {f"team/g{number}" for number in range(20)}
    touched = Touched(
        groups=set(groups), pods={"team/p"}, nodes={"n"}, queues={"q"},
        moved_queues={"q"}, priority_classes={"build"},
    )  # fmt: skip
    entries = take_others(touched, part)
    own = {key for key in groups if part.has(key)}
    assert (touched.groups, touched.nodes, touched.queues) == (own, set(), {"q"})
    before = live.position()
    with transaction.atomic():
        live.record_all({**entries, "workload": own})
    assert touched_between(before, live.position()) == Touched(
        groups=groups - own, pods={"team/p"}, nodes={"n"}, moved_queues={"q"},
        priority_classes={"build"},
    )  # fmt: skip
    assert touched_between(live.position(), live.position()) == Touched()


def test_one_worker_hands_nothing_over() -> None:
    touched = Touched(groups={"team/g"}, nodes={"n"}, moved_queues={"q"})
    assert take_others(touched, Part()) == {}
    assert touched == Touched(groups={"team/g"}, nodes={"n"}, moved_queues={"q"})


@pytest.mark.django_db
def test_further_workers_wait_for_the_first_and_a_new_number_ends_the_old_division(
    cluster: FakeGateway,
) -> None:
    assert start_with_cluster(cluster, KINDS, NOON, Part(1, 2)) is None
    assert start_with_cluster(cluster, KINDS, NOON, Part(0, 2)) == Part(0, 2, "first")
    assert start_with_cluster(cluster, KINDS, NOON, Part(1, 2)) == Part(1, 2, "first")
    write_heartbeat(NOON, Part(1, 2), position=7)
    stored = heartbeat_of(Part(1, 2))
    assert stored is not None
    assert stored.version == 7
    # Worker 0 started again with the same number changes nothing.
    start_with_cluster(cluster, KINDS, NOON, Part(0, 2))
    assert heartbeat_of(Part(1, 2)) is not None
    assert start_with_cluster(cluster, KINDS, NOON, Part(2, 3)) is None
    assert start_with_cluster(cluster, KINDS, NOON, Part(0, 3)) == Part(0, 3, "first")
    assert heartbeat_of(Part(1, 2)) is None
    assert start_with_cluster(cluster, KINDS, NOON, Part(1, 2)) is None


@pytest.mark.django_db
def test_rows_stay_when_the_number_of_workers_changes_and_go_with_the_cluster(
    cluster: FakeGateway,
) -> None:
    start_with_cluster(cluster, KINDS, NOON)
    Queue.objects.create(name="team", uid="u", version=1, created_at=NOON)
    start_with_cluster(cluster, KINDS, NOON, Part(0, 2))
    assert Queue.objects.exists()
    other = FakeGateway()
    other.seed(NAMESPACES, {"metadata": {"name": "kube-system", "uid": "other"}})
    assert start_with_cluster(other, KINDS, NOON, Part(1, 2)) is None
    assert Queue.objects.exists()
    part = start_with_cluster(other, KINDS, NOON, Part(0, 2))
    assert part == replace(Part(0, 2), cluster="other")
    assert not Queue.objects.exists()
    assert MirrorState.objects.get().identity == "other"

"""Pods of our scheduler without a pod group are shown as unmanaged workloads."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kube.objects.cluster import Event
from kube.objects.meta import convert
from kube.resources import EVENTS, PODGROUPS, PODS
from queues.mirror.feed import Mirror
from queues.mirror.kinds import KINDS
from queues.mirror.lone_pods import GRACE, pod_of, show_lone_pods
from queues.mirror.writer import Writer
from queues.models import LiveChange, PodGroup
from tests.queues.cluster_objects import a_group, a_pod, added, deleted, listed, meta, modified

pytestmark = pytest.mark.django_db
CREATED = datetime(2026, 11, 29, 12, tzinfo=UTC)
LATER = CREATED + GRACE + timedelta(seconds=1)
OURS = {"scheduler": "kai-scheduler"}


@pytest.fixture
def mirror() -> Mirror:
    return Mirror(KINDS, Writer(sleep=lambda _s: None), now=lambda: LATER)


def look(now: datetime = LATER) -> dict[str, str]:
    """Return the text of each lone pod."""
    show_lone_pods("kai-scheduler", now)
    return dict(PodGroup.objects.filter(is_lone_pod=True).values_list("key", "reason_text"))


def warning(pod: str, message: str, version: int) -> Any:
    body = {
        "metadata": meta(f"{pod}.{version}", version, namespace="default"),
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": pod},
        "reason": "PodGrouperWarning",
        "message": message,
    }
    return convert(body, Event)


def test_a_pod_that_stays_alone_is_a_workload_nobody_manages(mirror: Mirror) -> None:
    labels = {"kai.scheduler/queue": "team"}
    mirror.consume([added(PODS, a_pod("p", 3, gpus=2, labels=labels, **OURS))])
    assert look(CREATED + GRACE) == {}
    assert look() == {"default/pod:p": "The pod grouper has created no pod group for it"}
    row = PodGroup.objects.get()
    assert (row.state, row.reason_code, row.gpu, row.queue, row.pods) == (
        "pending", "Unmanaged", 2, "team", 1,
    )  # fmt: skip
    assert (row.owner_kind, row.owner_name, pod_of(row)) == ("Pod", "p", "default/p")
    changed = LiveChange.objects.filter(kind__in=("workload", "queue")).values_list("kind", "key")
    assert set(changed) == {("workload", "default/pod:p"), ("queue", "team")}


def test_nothing_is_written_while_nothing_changes(mirror: Mirror) -> None:
    mirror.consume([added(PODS, a_pod("p", 3, **OURS))])
    assert show_lone_pods("kai-scheduler", LATER) == 1
    assert show_lone_pods("kai-scheduler", LATER) == 0


def test_the_text_names_the_reason(mirror: Mirror) -> None:
    skip = {"kai.scheduler/skip-podgrouper": "true"}
    mirror.consume(
        [
            added(PODS, a_pod("bad", 1, **OURS)),
            added(PODS, a_pod("astray", 2, group="gone", **OURS)),
            added(PODS, a_pod("left", 3, annotations=skip, **OURS)),
            added(EVENTS, warning("bad", "an older one", 4)),
            added(EVENTS, warning("bad", "invalid min-member annotation value: x", 5)),
        ]
    )
    assert set(look(CREATED)) == {"default/pod:bad", "default/pod:left"}
    assert look() == {
        "default/pod:astray": "Names pod group 'gone', which does not exist",
        "default/pod:bad": "invalid min-member annotation value: x",
        "default/pod:left": (
            "Annotation kai.scheduler/skip-podgrouper excludes it from pod grouping, and no annotation "
            "pod-group-name names a pod group"
        ),
    }


def test_who_is_grouped_placed_finished_gone_or_anothers_is_not_alone(mirror: Mirror) -> None:
    mirror.consume(
        [
            added(PODGROUPS, a_group("pg", 1)),
            added(PODS, a_pod("grouped", 2, group="pg", **OURS)),
            added(PODS, a_pod("placed", 3, node="n", **OURS)),
            added(PODS, a_pod("finished", 4, phase="Succeeded", **OURS)),
            added(PODS, a_pod("others", 5, scheduler="default-scheduler")),
            added(PODS, a_pod("late", 6, **OURS)),
            added(PODS, a_pod("gone", 7, **OURS)),
        ]
    )
    assert set(look()) == {"default/pod:gone", "default/pod:late"}
    mirror.consume(
        [
            modified(PODS, a_pod("late", 8, group="pg", **OURS)),
            deleted(PODS, a_pod("gone", 9, **OURS)),
        ]
    )
    assert look() == {}


def test_a_new_list_of_pod_groups_leaves_lone_pods_alone(mirror: Mirror) -> None:
    mirror.consume([added(PODS, a_pod("p", 3, **OURS))])
    look()
    mirror.consume([listed(PODGROUPS, version=50)])
    assert PodGroup.objects.get().key == "default/pod:p"


def test_a_gated_lone_pod_is_gated(mirror: Mirror) -> None:
    mirror.consume([added(PODS, a_pod("p", 3, gated=True, **OURS))])
    look()
    row = PodGroup.objects.get()
    assert (row.state, row.pods_gated, row.pods_pending) == ("gated", 1, 0)

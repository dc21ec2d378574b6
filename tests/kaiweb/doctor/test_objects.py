"""Objects that keep workloads from starting."""

from __future__ import annotations

from typing import Any

import pytest

from kaiweb.doctor.objects import (
    check_bind_requests,
    check_config,
    check_pods,
    check_queues,
    check_reservations,
)
from kube.resources import BINDREQUESTS, CONFIGS, PODGROUPS, PODS, QUEUES
from tests.fakes.gateway import FakeGateway
from tests.kaiweb.doctor.cluster import NOW, body, lines


def cluster(kind: Any, *items: dict[str, Any]) -> FakeGateway:
    """Return a cluster with these objects, created two months before the time at which the doctor looks."""
    gateway = FakeGateway()
    gateway.seed(kind, *items)
    return gateway


def test_the_config_must_exist_and_name_our_namespace() -> None:
    assert lines(check_config, FakeGateway()) == ["fault: config kai-config: does not exist"]
    other = cluster(CONFIGS, body(CONFIGS, "kai-config", spec={"namespace": "gpu"}))
    (line,) = lines(check_config, other)
    assert line.startswith("warning: config kai-config: names namespace gpu")
    assert lines(check_config, cluster(CONFIGS, body(CONFIGS, "kai-config", spec={}))) == []


def test_queues_whose_parent_is_missing_and_pod_groups_whose_queue_is_missing_are_named() -> None:
    gateway = cluster(
        QUEUES,
        body(QUEUES, "root", spec={}),
        body(QUEUES, "team", spec={"parentQueue": "root"}),
        body(QUEUES, "lost", spec={"parentQueue": "gone"}),
    )
    gateway.seed(
        PODGROUPS,
        body(PODGROUPS, "fine", namespace="lab", spec={"queue": "team"}),
        body(PODGROUPS, "stray", namespace="lab", spec={"queue": "nowhere"}),
    )
    assert lines(check_queues, gateway) == [
        "fault: queue lost: is ignored: parent queue 'gone' does not exist",
        "warning: pod groups lab/stray: are in queues that do not exist, so they never start",
    ]


def pod(name: str, *, grouped: bool, **more: Any) -> dict[str, Any]:
    annotations = {"pod-group-name": "pg"} if grouped else {}
    return body(
        PODS,
        name,
        namespace=more.get("namespace", "lab"),
        metadata={"annotations": {**annotations, **more.get("annotations", {})}},
        spec={"schedulerName": more.get("scheduler", "kai-scheduler")},
        status={"phase": more.get("phase", "Pending")},
    )


def test_old_pods_of_our_scheduler_without_a_pod_group_are_named() -> None:
    gateway = cluster(
        PODS,
        pod("grouped", grouped=True),
        pod("loose", grouped=False),
        pod("finished", grouped=False, phase="Succeeded"),
        pod("others", grouped=False, scheduler="default-scheduler"),
    )
    assert lines(check_pods, gateway) == ["fault: pods lab/loose: have no pod group"]
    gateway = FakeGateway(now=NOW)
    gateway.seed(PODS, pod("young", grouped=False))
    assert lines(check_pods, gateway) == []


def test_bind_requests_that_nobody_carries_out_are_named() -> None:
    requests = [body(BINDREQUESTS, f"r{number}", namespace="lab") for number in range(7)]
    succeeded = body(BINDREQUESTS, "done", namespace="lab", status={"phase": "Succeeded"})
    (line,) = lines(check_bind_requests, cluster(BINDREQUESTS, *requests, succeeded))
    assert "lab/r0, lab/r1, lab/r2, lab/r3, lab/r4 and 2 more" in line
    assert line.endswith("have not been carried out for more than 120 s")


@pytest.mark.parametrize(
    ("phase", "annotations", "severity"),
    [
        ("Running", {"run.ai/reserve_for_gpu_index": "0"}, ""),
        ("Running", {}, "fault"),
        ("Failed", {"run.ai/reserve_for_gpu_index": "0"}, "warning"),
    ],
)
def test_reservation_pods_must_run_and_name_their_gpu(
    phase: str, annotations: dict[str, str], severity: str
) -> None:
    reservation = pod(
        "gpu-1",
        grouped=False,
        namespace="kai-resource-reservation",
        phase=phase,
        annotations=annotations,
    )
    results = lines(check_reservations, cluster(PODS, reservation))
    assert [line.split(":")[0] for line in results] == ([severity] if severity else [])

"""KAI beside us: its Deployments, Leases and writes."""

from __future__ import annotations

from typing import Any

import pytest

from kaiweb.doctor.schedulers import (
    check_leases,
    check_other_schedulers,
    check_shards,
    check_writers,
)
from kube.resources import BINDREQUESTS, DEPLOYMENTS, LEASES, SHARDS
from tests.fakes.gateway import FakeGateway
from tests.kaiweb.doctor.cluster import body, findings, lines, stamp

NAMESPACE = "kai-scheduler"
KAI = {"app.kubernetes.io/managed-by": "kai-operator"}


def deployment(name: str, *args: str, labels: dict[str, str], replicas: int = 1) -> dict[str, Any]:
    pod = {"spec": {"containers": [{"name": "main", "args": list(args)}]}}
    return body(
        DEPLOYMENTS,
        name,
        namespace=NAMESPACE,
        metadata={"labels": labels},
        spec={"replicas": replicas, "template": pod},
    )


def cluster(kind: Any, *items: dict[str, Any]) -> FakeGateway:
    gateway = FakeGateway()
    gateway.seed(kind, *items)
    return gateway


def test_a_scheduler_of_kai_for_our_pods_is_a_fault_with_the_command_that_stops_it() -> None:
    gateway = cluster(
        DEPLOYMENTS,
        deployment("kai-scheduler-default", "--scheduler-name", "kai-scheduler", labels=KAI),
    )
    (finding,) = findings(check_other_schedulers, gateway)
    assert str(finding.severity) == "fault"
    assert finding.remedy.startswith(
        "kubectl -n kai-scheduler scale deployment kai-scheduler-default --replicas=0"
    )


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (deployment("binder", "--scheduler-name=team-b", labels=KAI), ["note"]),
        (deployment("binder", "--scheduler-name=kai-scheduler", labels=KAI, replicas=0), []),
        (deployment("binder", labels={"app.kubernetes.io/part-of": "kaiweb"}), []),
        (deployment("web-shop", labels={}), []),
        (deployment("kai-operator", labels={}), ["fault"]),
    ],
)
def test_other_deployments_are_judged_by_whose_they_are(
    item: dict[str, Any], expected: list[str]
) -> None:
    results = findings(check_other_schedulers, cluster(DEPLOYMENTS, item))
    assert [str(finding.severity) for finding in results] == expected


def lease(name: str, *, seconds_ago: float) -> dict[str, Any]:
    spec = {
        "holderIdentity": "pod-1_abc",
        "renewTime": stamp(seconds_ago=seconds_ago),
        "leaseDurationSeconds": 15,
    }
    return body(LEASES, name, namespace=NAMESPACE, spec=spec)


@pytest.mark.parametrize(
    ("name", "seconds_ago", "severity"),
    [
        ("41fce092.run.ai", 3, "fault"),
        ("41fce092.run.ai", 300, "note"),
        ("kai-scheduler", 3, "warning"),
        ("kai-scheduler-h100", 300, "note"),
    ],
)
def test_a_lease_of_kai_is_held_or_left_over(name: str, seconds_ago: float, severity: str) -> None:
    (finding,) = findings(check_leases, cluster(LEASES, lease(name, seconds_ago=seconds_ago)))
    assert str(finding.severity) == severity


def test_our_own_leases_cause_no_finding() -> None:
    ours = lease("kaiweb-fence-default", seconds_ago=3)
    assert lines(check_leases, cluster(LEASES, ours)) == []


def bind_request(name: str, manager: str, *, seconds_ago: float) -> dict[str, Any]:
    fields = [{"manager": manager, "time": stamp(seconds_ago=seconds_ago)}]
    return body(BINDREQUESTS, name, namespace="lab", metadata={"managedFields": fields})


def test_whoever_else_wrote_bind_requests_lately_is_named() -> None:
    gateway = cluster(
        BINDREQUESTS,
        bind_request("ours", "kaiweb", seconds_ago=5),
        bind_request("old", "scheduler", seconds_ago=3600),
        bind_request("fresh", "scheduler", seconds_ago=5),
    )
    assert lines(check_writers, gateway) == [
        "warning: bind request lab/fresh: was written by scheduler in the last 10 minutes"
    ]


def test_shards_of_one_partition_are_a_fault() -> None:
    gateway = cluster(
        SHARDS,
        body(SHARDS, "default", spec={"partitionLabelValue": ""}),
        body(SHARDS, "second", spec={}),
        body(SHARDS, "h100", spec={"partitionLabelValue": "h100"}),
    )
    assert lines(check_shards, gateway) == [
        "fault: shards default, second: schedule the same nodes (partitionLabelValue '')"
    ]

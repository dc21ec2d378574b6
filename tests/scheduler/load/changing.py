"""A small cluster that changes at random: steps for property tests, and how each is carried out.

A step is (what, which, how): the kind of change, the number of the object, and the variety it becomes. Numbers are
small, so that steps meet: a pod comes back under its name, its node goes, its pod group changes its subgroups.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from kube.keys import BIND_FAILURES, GPU_GROUP, HOLD, LAST_START, SUB_GROUP
from kube.resources import (
    BINDREQUESTS,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODGROUPS,
    PODS,
    PRIORITY_CLASSES,
    PVCS,
    QUEUES,
    RESOURCE_CLAIMS,
    TOPOLOGIES,
)
from tests.scheduler.load.objects import (
    NOW,
    Cluster,
    bind_request,
    group,
    meta,
    node,
    pod,
    queue,
)

Step = tuple[str, int, int]

POOL = "kai.scheduler/node-pool"
GPU = "nvidia.com/gpu"
JUST_NOW, LONG_AGO = "2025-12-31T23:59:59Z", "2025-12-31T23:57:00Z"
HALF = {"gpu-fraction": "0.5"}
BIND_FAILURE = {
    BIND_FAILURES: '{"count":2,"last":"2026-01-01T00:00:00Z","next":"2026-01-01T00:00:20Z","nodes":["n1"]}'
}

PODS_OF: list[Callable[[str], dict[str, Any]]] = [
    lambda node: {"requests": {GPU: "1"}},
    lambda node: {"requests": {GPU: "1", "cpu": "2"}, "node": node, "phase": "Running"},
    lambda node: {"requests": {GPU: "2"}, "node": node},
    lambda node: {"node": node, "phase": "Succeeded"},
    lambda node: {"node": node, "phase": "Failed"},
    lambda node: {
        "requests": {GPU: "1"},
        "node": node,
        "phase": "Running",
        "deleted": JUST_NOW,
    },
    lambda node: {
        "requests": {GPU: "1"},
        "node": node,
        "phase": "Running",
        "deleted": LONG_AGO,
    },
    lambda node: {"schedulingGates": [{"name": "g"}]},
    lambda node: {"annotations": HALF},
    lambda node: {
        "annotations": HALF,
        "labels": {GPU_GROUP: f"shared-{node}"},
        "node": node,
        "phase": "Running",
    },
    lambda node: {"requests": {"cpu": "lots"}, "node": node, "phase": "Running"},
    lambda node: {
        "requests": {"cpu": "1"},
        "node": node,
        "phase": "Running",
        "schedulerName": "other",
    },
    lambda node: {
        "requests": {GPU: "1"},
        "node": node,
        "phase": "Running",
        "labels": {"app": "kai-resource-reservation", GPU_GROUP: f"shared-{node}"},
    },
    lambda node: {"labels": {SUB_GROUP: "workers"}, "requests": {GPU: "1"}},
    lambda node: {"resourceClaims": [{"name": "gpu", "resourceClaimName": "claim-0"}]},
    lambda node: {"annotations": BIND_FAILURE, "requests": {GPU: "1"}},
    lambda node: {"requests": {"example.com/fpga": "1"}, "nodeSelector": {"zone": "b"}},
    lambda node: {"requests": {GPU: "1"}, "node": node, "phase": "Running", "labels": {"x": "y"}},
]

GROUPS_OF: list[dict[str, Any]] = [
    {"minMember": 1},
    {"minMember": 2, "queue": "q1"},
    {"minMember": 1, "priorityClassName": "high"},
    {"minMember": 1, "annotations": {HOLD: "true"}},
    {"subGroups": [{"name": "leader", "minMember": 1}, {"name": "workers", "minMember": 1}]},
    {"minMember": 1, "labels": {POOL: "other"}},
    {"minMember": 1, "queue": "missing", "preemptibility": "non-preemptible"},
    {
        "minMember": 1,
        "annotations": {LAST_START: "2025-12-31T23:00:00Z"},
    },
    {"minMember": 1, "topologyConstraint": {"topology": "t", "requiredTopologyLevel": "row"}},
    {
        "minMember": 1,
        "schedulingBackoff": 1,
        "status": {
            "schedulingConditions": [
                {"type": "UnschedulableOnNodePool", "nodePool": "default", "transitionID": "1"}
            ]
        },
    },
]

NODES_OF: list[dict[str, Any]] = [
    {},
    {"gpus": 4},
    {"labels": {"zone": "b", "nvidia.com/gpu.memory": "40960"}},
    {"labels": {"nvidia.com/gpu.memory": "81920"}},
    {"unschedulable": True},
    {"conditions": [{"type": "Ready", "status": "False"}]},
    {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "3", "example.com/fpga": "2"}},
    {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]},
    {"labels": {POOL: "other"}},
]


def _put_pod(cluster: Cluster, which: int, how: int) -> None:
    variety = PODS_OF[how % len(PODS_OF)](f"n{how % 3}")
    named = f"g{which % 3}" if which != 5 else ""
    cluster.put(PODS, pod(f"p{which}", group=named, **variety))


def _put_again(cluster: Cluster, which: int, how: int) -> None:
    """Put a pod that has the name of an earlier one."""
    body = pod(f"p{which}", group=f"g{which % 3}", **PODS_OF[how % len(PODS_OF)](f"n{how % 3}"))
    body["metadata"]["uid"] += "-again"
    cluster.put(PODS, body)


def _put_queue(cluster: Cluster, which: int, how: int) -> None:
    resources = {"gpu": {"quota": how, "limit": -1, "overQuotaWeight": 1}}
    extra = {"labels": {POOL: "other"}} if how == 7 else {}
    parent = "" if which == 0 else "q0"
    name = ("q0", "q", "q1")[which % 3]
    cluster.put(QUEUES, queue(name, parentQueue=parent, resources=resources, **extra))


def _put_bind_request(cluster: Cluster, which: int, how: int) -> None:
    status = {"phase": "Failed", "reason": "no"} if how % 3 == 2 else {}
    owner = {"owner_uid": "earlier"} if how % 5 == 4 else {}
    cluster.put(BINDREQUESTS, bind_request(f"p{which}", f"n{how % 4}", status=status, **owner))


def _put_other(cluster: Cluster, which: int, how: int) -> None:
    if which % 5 == 0:
        cluster.put(
            PRIORITY_CLASSES,
            {"metadata": meta("high"), "value": 50 + how * 20, "globalDefault": how == 3},
        )
    elif which % 5 == 1:
        levels = [{"nodeLabel": "zone", "alias": "row" if how % 2 else "rack"}]
        cluster.put(TOPOLOGIES, {"metadata": meta("t"), "spec": {"levels": levels}})
    elif which % 5 == 2:
        spec = {"devices": {"requests": [_device_request(how)]}}
        cluster.put(RESOURCE_CLAIMS, {"metadata": meta("claim-0", "ns"), "spec": spec})
    elif which % 5 == 3:
        body = {"metadata": meta("budget", "ns"), "spec": {"selector": {"matchLabels": {"x": "y"}}}}
        cluster.put(POD_DISRUPTION_BUDGETS, body | {"status": {"disruptionsAllowed": how}})
    else:
        body = {"metadata": meta("disk", "ns"), "spec": {"storageClassName": "fast"}}
        cluster.put(PVCS, body | {"status": {"phase": "Bound" if how % 2 else "Pending"}})


def _device_request(how: int) -> dict[str, Any]:
    exactly = {"deviceClassName": "gpu.nvidia.com", "allocationMode": "ExactCount", "count": how}
    return {"name": "r", "exactly": exactly}


def _put_group(cluster: Cluster, which: int, how: int) -> None:
    cluster.put(PODGROUPS, group(f"g{which % 3}", **GROUPS_OF[how % len(GROUPS_OF)]))


def _put_node(cluster: Cluster, which: int, how: int) -> None:
    cluster.put(NODES, node(f"n{which % 3}", **dict(NODES_OF[how % len(NODES_OF)])))


_PUT: dict[str, Callable[[Cluster, int, int], None]] = {
    "pod": _put_pod,
    "again": _put_again,
    "group": _put_group,
    "node": _put_node,
    "queue": _put_queue,
    "request": _put_bind_request,
    "other": _put_other,
}


_DROP = {
    "drop pod": lambda which: (PODS, pod(f"p{which}")),
    "drop group": lambda which: (PODGROUPS, group(f"g{which % 3}")),
    "drop node": lambda which: (NODES, node(f"n{which % 3}")),
    "drop queue": lambda which: (QUEUES, queue(("q0", "q", "q1")[which % 3])),
    "drop request": lambda which: (BINDREQUESTS, bind_request(f"p{which}", "n0")),
    "drop claim": lambda which: (RESOURCE_CLAIMS, {"metadata": meta("claim-0", "ns")}),
}

#: Pods change most.
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["pod"] * 6 + ["group"] * 3 + [*_PUT, *_DROP] + ["cycle"] * 8),
        st.integers(0, 5),
        st.integers(0, 17),
    ),
    min_size=10,
    max_size=40,
)


def first_cluster() -> Cluster:
    """Return a cluster with something of everything."""
    cluster = Cluster()
    for number in range(3):
        _put_queue(cluster, number, 4)
        _put_node(cluster, number, number)
        _put_group(cluster, number, 0)
        _put_pod(cluster, number, 0)
        _put_pod(cluster, number + 3, number + 6)
    return cluster


def carry_out(cluster: Cluster, step: Step) -> None:
    """Change the cluster by one step; "cycle" changes nothing."""
    what, which, how = step
    if what in _PUT:
        _PUT[what](cluster, which, how)
    elif what in _DROP:
        cluster.drop(*_DROP[what](which))


def moment(number: int) -> float:
    """Return the Unix time of a cycle; the cycles of a test are some seconds apart."""
    return NOW + 7.5 * number

"""Kubernetes' gang API on live clusters that serve it: the embedded one with its setting, a real one with its gate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kube.gateway import Gateway
from kube.resources import NAMESPACES, PODGROUPS, PODS, SERVICE_ACCOUNTS, WORKLOADS
from tests.fakes.sandbox_server import sandbox_server
from tests.queues.live_cluster.conftest import running_controllers
from tests.queues.live_cluster.test_grouping import place, warnings
from tests.queues.live_cluster.waiting import eventually
from tests.real_cluster.fixture import running_or_skip

REAL_FLAGS = (
    "--feature-gates=GenericWorkload=true",
    "--runtime-config=scheduling.k8s.io/v1alpha1=true",
)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("embedded", marks=pytest.mark.integration),
        pytest.param("real", marks=pytest.mark.e2e),
    ],
)
def gateway(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("gangs")
    cluster = (
        sandbox_server(folder, "--gangs")
        if request.param == "embedded"
        else running_or_skip(folder, extra_flags=REAL_FLAGS)
    )
    with cluster as running, running_controllers(running.kubeconfig) as under_test:
        gateway = under_test.gateway
        gateway.create(NAMESPACES, {"metadata": {"name": "gangs"}})
        if not any(
            account["metadata"]["name"] == "default"
            for account in gateway.list(SERVICE_ACCOUNTS, as_type=dict, namespace="gangs").items
        ):
            gateway.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace="gangs")
        yield gateway


def make_pod(gateway: Gateway, pod: str, **reference: str) -> None:
    body = {
        "metadata": {"name": pod},
        "spec": {
            "schedulerName": "kai-scheduler",
            "workloadRef": reference,
            "containers": [{"name": "c", "image": "pause"}],
        },
    }
    gateway.create(PODS, body, namespace="gangs")


def make_workload(gateway: Gateway, name: str, **policies: dict[str, Any]) -> None:
    groups = [{"name": group, "policy": policy} for group, policy in policies.items()]
    gateway.create(
        WORKLOADS, {"metadata": {"name": name}, "spec": {"podGroups": groups}}, namespace="gangs"
    )


def minimum(gateway: Gateway, name: str) -> int:
    spec = gateway.get(PODGROUPS, name, as_type=dict, namespace="gangs")["spec"]
    return int(spec["minMember"])


def test_pods_that_name_a_workload_are_grouped_by_it(gateway: Gateway) -> None:
    make_workload(gateway, "training", driver={"basic": {}}, workers={"gang": {"minCount": 2}})
    make_pod(gateway, "d", name="training", podGroup="driver")
    for key in ("0", "1"):
        for number in range(2):
            pod = f"w-{key}-{number}"
            make_pod(gateway, pod, name="training", podGroup="workers", podGroupReplicaKey=key)
    expected = {
        "d": "training-driver",
        "w-0-0": "training-workers-0",
        "w-0-1": "training-workers-0",
        "w-1-0": "training-workers-1",
        "w-1-1": "training-workers-1",
    }
    for pod, group in expected.items():
        eventually(
            lambda pod=pod, group=group: place(gateway, "gangs", pod)[0] == group, f"{pod} in place"
        )
    sizes = {group: minimum(gateway, group) for group in set(expected.values())}
    assert sizes == {"training-driver": 1, "training-workers-0": 2, "training-workers-1": 2}


def test_a_pod_waits_with_a_warning_until_its_workload_is_made(gateway: Gateway) -> None:
    make_pod(gateway, "early", name="late", podGroup="workers")
    eventually(lambda: bool(warnings(gateway, "gangs", "early")), "a warning on the pod")
    assert warnings(gateway, "gangs", "early") == [
        "Workload gangs/late, which the pod names, does not exist; the pod waits for it"
    ]
    make_workload(gateway, "late", workers={"gang": {"minCount": 3}})
    eventually(lambda: place(gateway, "gangs", "early")[0] == "late-workers", "the pod is grouped")
    assert minimum(gateway, "late-workers") == 3

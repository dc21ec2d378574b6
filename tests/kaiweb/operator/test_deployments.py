"""The operator in a cluster: Deployments of shards, and conditions from what Deployments report."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kaiweb.operator.deployments import (
    PROCESS_TEMPLATES,
    TEMPLATE,
    WANTED,
    ClusterDeployments,
    unavailable,
)
from kaiweb.supervisor.desired import DesiredProcesses
from kube.errors import InvalidError, ServerError
from kube.objects.config import Config, SchedulingShard
from kube.objects.meta import ObjectMeta, convert
from kube.resources import CONFIGMAPS, DEPLOYMENTS, POD_DISRUPTION_BUDGETS, SERVICES
from tests.fakes.gateway import FakeGateway

NAMESPACE = "kai-scheduler"
TEXT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: kai-scheduler-__shard__, namespace: kai-scheduler, labels: {kaiweb/process: scheduling-__shard__}}
spec: {replicas: 1, template: {spec: {containers: [{name: main, command: [celery, -Q, shard.__shard__]}]}}}
---
apiVersion: v1
kind: Service
metadata: {name: kai-scheduler-__shard__, namespace: kai-scheduler}
spec: {clusterIP: None}
"""
AVAILABLE = {
    "observedGeneration": 1,
    "updatedReplicas": 1,
    "conditions": [{"type": "Available", "status": "True"}],
}
BOTH = DesiredProcesses(shards=("default", "h100"))
OWNER = SchedulingShard(metadata=ObjectMeta(name="h100", uid="uid-h100"))


def of_chart(process: str, **container: Any) -> dict[str, Any]:
    labels = {"kaiweb/process": process, "app.kubernetes.io/managed-by": "Helm"}
    return {
        "metadata": {"name": process, "namespace": NAMESPACE, "labels": labels, "generation": 1},
        "spec": {"replicas": 1, "template": {"spec": {"containers": [container]}}},
        "status": AVAILABLE,
    }


@pytest.fixture
def gateway() -> FakeGateway:
    """A namespace with the chart's Deployments and its template."""
    cluster = FakeGateway()
    metadata = {"name": TEMPLATE, "namespace": NAMESPACE}
    cluster.seed(CONFIGMAPS, {"metadata": metadata, "data": {"shard.yaml": TEXT}})
    cluster.seed(DEPLOYMENTS, of_chart("scheduling-default"), of_chart("beat"))
    return cluster


def test_a_shard_that_the_chart_does_not_know_gets_a_deployment_that_it_owns(
    gateway: FakeGateway,
) -> None:
    ClusterDeployments(gateway).apply(BOTH, {"h100": OWNER}, 0.0)
    deployment = gateway.raw(DEPLOYMENTS, "kai-scheduler-h100", NAMESPACE)
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert container["command"] == ["celery", "-Q", "shard.h100"]
    assert deployment["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "kaiweb-operator"
    (owner,) = deployment["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == (
        "SchedulingShard",
        "uid-h100",
        True,
    )
    assert gateway.names(SERVICES, NAMESPACE) == ["kai-scheduler-h100"]
    assert sorted(gateway.names(DEPLOYMENTS, NAMESPACE)) == [
        "beat",
        "kai-scheduler-h100",
        "scheduling-default",
    ]


def test_what_is_wanted_is_published_once_for_beat_and_web(gateway: FakeGateway) -> None:
    deployments = ClusterDeployments(gateway)
    for now in (0.0, 1.0):
        deployments.apply(BOTH, {}, now)
    published = gateway.raw(CONFIGMAPS, WANTED, NAMESPACE)["data"]["wanted.json"]
    assert json.loads(published)["shards"] == ["default", "h100"]
    assert [call for call in gateway.calls if call[1] == "configmaps"] == [
        ("patch", "configmaps", WANTED)
    ]


def test_what_others_change_is_set_right_after_a_minute(gateway: FakeGateway) -> None:
    deployments = ClusterDeployments(gateway)
    deployments.apply(BOTH, {}, 0.0)
    drift = {"spec": {"replicas": 0}}
    gateway.patch(DEPLOYMENTS, "kai-scheduler-h100", drift, namespace=NAMESPACE)
    deployments.apply(BOTH, {}, 30.0)
    assert gateway.raw(DEPLOYMENTS, "kai-scheduler-h100", NAMESPACE)["spec"]["replicas"] == 0
    deployments.apply(BOTH, {}, 61.0)
    assert gateway.raw(DEPLOYMENTS, "kai-scheduler-h100", NAMESPACE)["spec"]["replicas"] == 1


def test_a_deployment_goes_with_its_shard_and_those_of_the_chart_stay(
    gateway: FakeGateway,
) -> None:
    deployments = ClusterDeployments(gateway)
    deployments.apply(BOTH, {}, 0.0)
    deployments.apply(DesiredProcesses(), {}, 1.0)
    assert sorted(gateway.names(DEPLOYMENTS, NAMESPACE)) == ["beat", "scheduling-default"]
    assert gateway.names(SERVICES, NAMESPACE) == []


def test_a_disabled_scheduler_has_no_deployment(gateway: FakeGateway) -> None:
    off = DesiredProcesses(shards=("default", "h100"), off=("scheduling-h100",))
    ClusterDeployments(gateway).apply(off, {}, 0.0)
    assert "kai-scheduler-h100" not in gateway.names(DEPLOYMENTS, NAMESPACE)


def test_an_error_of_the_cluster_is_tried_again(gateway: FakeGateway) -> None:
    deployments = ClusterDeployments(gateway)
    gateway.fail_next("patch", "deployments", ServerError("away", status=500))
    deployments.apply(BOTH, {}, 0.0)
    assert "kai-scheduler-h100" not in gateway.names(DEPLOYMENTS, NAMESPACE)
    deployments.apply(BOTH, {}, 1.0)
    assert "kai-scheduler-h100" in gateway.names(DEPLOYMENTS, NAMESPACE)


def test_a_process_is_up_when_its_deployment_is_available(gateway: FakeGateway) -> None:
    deployments = ClusterDeployments(gateway)
    deployments.apply(BOTH, {}, 0.0)
    result = deployments.look(("default", "h100"), 0.0)
    assert result.is_applied
    assert result.process_names == {"beat", "scheduling-default", "scheduling-h100"}
    assert result.up == {"beat", "scheduling-default"}
    assert result.faults["scheduling-h100"] == "0 of 1 pods are of the present version"


def test_without_a_deployment_a_shard_is_not_deployed(gateway: FakeGateway) -> None:
    assert not ClusterDeployments(gateway).look(("default", "h100"), 0.0).is_applied


def test_while_the_cluster_does_not_answer_the_last_result_holds(gateway: FakeGateway) -> None:
    deployments = ClusterDeployments(gateway)
    before = deployments.look(("default",), 0.0)
    gateway.fail_next("list", "deployments", ServerError("away", status=500))
    assert deployments.look(("default",), 1.0) == before


def test_a_setting_that_a_process_was_not_started_with_is_named(gateway: FakeGateway) -> None:
    variables = [{"name": "KAIWEB_BINDER", "value": '{"b": 1, "a": 2}'}]
    gateway.seed(
        DEPLOYMENTS,
        of_chart("controllers", command=["kaiweb", "run_controllers", "--a=1"]),
        of_chart("binding", env=variables),
    )
    deployments = ClusterDeployments(gateway)
    desired = DesiredProcesses(
        arguments={"controllers": ("--a=1", "--b=2")},
        environment={"binding": {"KAIWEB_BINDER": '{"a":2,"b":1}'}, "beat": {"X": "1"}},
    )
    deployments.apply(desired, {}, 0.0)
    faults = deployments.look(("default",), 0.0).faults
    assert faults == {
        "controllers": "it was not started with --b=2 of kai-config; run helm upgrade",
        "beat": "it was not started with X of kai-config; run helm upgrade",
    }


@pytest.mark.parametrize(
    ("status", "fault"),
    [
        (AVAILABLE, ""),
        ({**AVAILABLE, "observedGeneration": 0}, "its Deployment has not been looked at yet"),
        ({**AVAILABLE, "updatedReplicas": 0}, "0 of 1 pods are of the present version"),
        ({**AVAILABLE, "conditions": []}, "0 of 1 pods are available"),
    ],
)
def test_a_deployment_is_available_in_kais_sense(status: dict[str, Any], fault: str) -> None:
    assert unavailable({**of_chart("web"), "status": status}) == fault


def config(**spec: Any) -> Config:
    return convert({"metadata": {"name": "kai-config", "uid": "uid-config"}, "spec": spec}, Config)


@pytest.fixture
def release(gateway: FakeGateway) -> FakeGateway:
    """A namespace in which the chart has also kept the text of the binder."""
    labels = {"kaiweb/process": "binding", "app.kubernetes.io/instance": "kaiweb"}
    text = json.dumps(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "binder", "namespace": NAMESPACE, "labels": labels},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": {"app": "binder"}},
                "template": {"spec": {"containers": [{"name": "main"}]}},
            },
        }
    )
    metadata = {"name": PROCESS_TEMPLATES, "namespace": NAMESPACE}
    gateway.seed(CONFIGMAPS, {"metadata": metadata, "data": {"binder.yaml": text}})
    gateway.seed(DEPLOYMENTS, of_chart("operator"))
    return gateway


def binder(gateway: FakeGateway) -> dict[str, Any]:
    return gateway.raw(DEPLOYMENTS, "binder", NAMESPACE)


def test_an_edit_of_the_config_is_applied_at_once_and_drift_after_a_minute(
    release: FakeGateway,
) -> None:
    deployments = ClusterDeployments(release)
    deployments.apply(DesiredProcesses(), {}, 0.0, config())
    assert binder(release)["spec"]["replicas"] == 1
    three = config(binder={"replicas": 3})
    deployments.apply(DesiredProcesses(), {}, 1.0, three)
    assert binder(release)["spec"]["replicas"] == 3
    release.delete(DEPLOYMENTS, "binder", namespace=NAMESPACE)
    deployments.apply(DesiredProcesses(), {}, 30.0, three)
    assert "binder" not in release.names(DEPLOYMENTS, NAMESPACE)
    deployments.apply(DesiredProcesses(), {}, 61.5, three)
    assert binder(release)["spec"]["replicas"] == 3


def test_nothing_is_brought_back_while_helm_removes_the_release(release: FakeGateway) -> None:
    release.delete(DEPLOYMENTS, "operator", namespace=NAMESPACE)
    ClusterDeployments(release).apply(DesiredProcesses(), {}, 0.0, config())
    assert "binder" not in release.names(DEPLOYMENTS, NAMESPACE)


def test_a_disabled_component_is_deleted_and_comes_back(release: FakeGateway) -> None:
    deployments = ClusterDeployments(release)
    deployments.apply(DesiredProcesses(), {}, 0.0, config())
    deployments.apply(DesiredProcesses(off=("binding",)), {}, 1.0, config())
    assert "binder" not in release.names(DEPLOYMENTS, NAMESPACE)
    deployments.apply(DesiredProcesses(), {}, 2.0, config())
    assert "binder" in release.names(DEPLOYMENTS, NAMESPACE)


def test_a_budget_that_the_config_turned_on_is_the_configs_and_goes_when_it_is_turned_off(
    release: FakeGateway,
) -> None:
    deployments = ClusterDeployments(release)
    service = {"podDisruptionBudget": {"enabled": True}}
    two = config(binder={"replicas": 2, "service": service})
    deployments.apply(DesiredProcesses(), {}, 0.0, two)
    (owner,) = release.raw(POD_DISRUPTION_BUDGETS, "binder", NAMESPACE)["metadata"][
        "ownerReferences"
    ]
    assert (owner["kind"], owner["uid"]) == ("Config", "uid-config")
    deployments.apply(DesiredProcesses(), {}, 1.0, config(binder={"replicas": 2}))
    assert release.names(POD_DISRUPTION_BUDGETS, NAMESPACE) == []


def test_what_the_cluster_refuses_is_named_and_the_last_good_deployment_stays(
    release: FakeGateway,
) -> None:
    deployments = ClusterDeployments(release)
    deployments.apply(DesiredProcesses(), {}, 0.0, config())
    error = InvalidError("spec.template.spec.affinity: unknown operator", status=422)
    release.refuse("patch", "deployments", "binder", error)
    bad = config(binder={"replicas": 3, "service": {"affinity": {"nodeAffinity": {"x": 1}}}})
    deployments.apply(DesiredProcesses(), {}, 1.0, bad)
    assert "unknown operator" in deployments.refusal
    assert binder(release)["spec"]["replicas"] == 1
    release.allow("patch", "deployments", "binder")
    deployments.apply(DesiredProcesses(), {}, 12.0, bad)
    assert deployments.refusal == ""
    assert binder(release)["spec"]["replicas"] == 3


def test_a_budget_with_a_second_owner_stops_nothing(release: FakeGateway) -> None:
    deployments = ClusterDeployments(release)
    service = {"podDisruptionBudget": {"enabled": True}}
    deployments.apply(
        DesiredProcesses(), {}, 0.0, config(binder={"replicas": 2, "service": service})
    )
    stored = release.raw(POD_DISRUPTION_BUDGETS, "binder", NAMESPACE)
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "uid-other"}
    stored["metadata"]["ownerReferences"].append(other)
    release.replace(POD_DISRUPTION_BUDGETS, "binder", stored, namespace=NAMESPACE)
    deployments.apply(DesiredProcesses(), {}, 1.0, config(binder={"replicas": 2}))
    assert release.names(POD_DISRUPTION_BUDGETS, NAMESPACE) == []

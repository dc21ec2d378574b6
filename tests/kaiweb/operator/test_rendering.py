"""What kai-config changes in the objects of the chart."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kaiweb.operator.desired import desired_processes
from kaiweb.operator.rendering import Rendered, render
from kaiweb.supervisor.desired import DesiredProcesses
from kube.objects.config import Config
from kube.objects.meta import convert

NAMESPACE = "kai-scheduler"


def deployment(name: str, process: str, **container: Any) -> dict[str, Any]:
    selector = {"app": name, "app.kubernetes.io/instance": "kaiweb"}
    labels = {**selector, "kaiweb/process": process, "app.kubernetes.io/managed-by": "Helm"}
    anti = {"podAntiAffinity": {"of": "chart"}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": selector},
            "template": {"spec": {"affinity": anti, "containers": [{"name": "main", **container}]}},
        },
    }


def budget(name: str) -> dict[str, Any]:
    metadata = deployment(name, "")["metadata"]
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata,
        "spec": {"maxUnavailable": 1},
    }


BEAT = deployment("kaiweb-beat", "beat", env=[{"name": "KAIWEB_LOG_JSON", "value": "0"}])
BINDER = deployment(
    "binder", "binding", env=[{"name": "KAIWEB_BINDER", "value": '{"b": 1, "cdiEnabled": true}'}]
)
GROUPER = deployment(
    "pod-grouper",
    "controllers",
    command=["kaiweb", "run_controllers", "--leader-elect", "--generic-karta-fallback=false"],
)
MONITOR = {
    "kind": "ServiceMonitor",
    "metadata": deployment("kai-scheduler", "")["metadata"],
    "spec": {},
}


def rendered(spec: dict[str, Any], *bodies: dict[str, Any]) -> Rendered:
    config = convert({"metadata": {"name": "kai-config"}, "spec": spec}, Config)
    desired, problems = desired_processes(config, {}, DesiredProcesses(), {})
    assert problems == {}
    texts = {"all.yaml": yaml.safe_dump_all(bodies), "monitors.yaml": yaml.safe_dump(MONITOR)}
    return render(texts, config.spec, desired)


def wanted(spec: dict[str, Any], *bodies: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(b["kind"], b["metadata"]["name"]): b for b in rendered(spec, *bodies).wanted}


def pods(spec: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    name = body["metadata"]["name"]
    pod_spec: dict[str, Any] = wanted(spec, body)["Deployment", name]["spec"]["template"]["spec"]
    return pod_spec


def test_an_empty_config_changes_only_the_marks_of_helm() -> None:
    result = wanted({}, BEAT)["Deployment", "kaiweb-beat"]
    assert result["metadata"].pop("annotations") == {
        "meta.helm.sh/release-name": "kaiweb",
        "meta.helm.sh/release-namespace": NAMESPACE,
    }
    assert result == BEAT


def test_flags_are_replaced_where_they_are_and_added_where_they_are_not() -> None:
    spec = {
        "podGrouper": {"args": {"genericKartaFallback": True}},
        "global": {"queueLabelKey": "team/queue"},
    }
    (container,) = pods(spec, GROUPER)["containers"]
    assert container["command"] == [
        "kaiweb", "run_controllers", "--leader-elect", "--generic-karta-fallback=true",
        "--queue-label-key=team/queue",
    ]  # fmt: skip


def test_the_scale_adjuster_comes_and_goes_with_the_config() -> None:
    with_it = deployment("pod-grouper", "controllers", command=["kaiweb", "--node-scale-adjuster"])
    on = {"nodeScaleAdjuster": {"service": {"enabled": True}}}
    assert pods(on, GROUPER)["containers"][0]["command"][-1] == "--node-scale-adjuster"
    assert pods({}, with_it)["containers"][0]["command"] == ["kaiweb"]


@pytest.mark.parametrize(
    ("binder", "value"),
    [
        ({"cdiEnabled": True}, '{"cdiEnabled":true}'),
        ({"cdiEnabled": True, "replicas": 3}, '{"cdiEnabled":true}'),
        ({}, '{"b": 1, "cdiEnabled": true}'),
    ],
)
def test_the_settings_of_the_binder_replace_those_of_the_chart(
    binder: dict[str, Any], value: str
) -> None:
    (container,) = pods({"binder": binder}, BINDER)["containers"]
    assert container["env"] == [{"name": "KAIWEB_BINDER", "value": value}]


def test_pods_get_the_places_that_the_config_names() -> None:
    spec = {
        "global": {
            "nodeSelector": {"role": "system"},
            "tolerations": [{"key": "system"}],
            "priorityClassName": "system-cluster-critical",
            "additionalImagePullSecrets": ["mine"],
            "affinity": {"nodeAffinity": {"of": "all"}},
            "jsonLog": True,
        },
    }
    result = pods(spec, BEAT)
    (container,) = result.pop("containers")
    assert container["env"] == [{"name": "KAIWEB_LOG_JSON", "value": "1"}]
    assert result == {
        "affinity": {"podAntiAffinity": {"of": "chart"}, "nodeAffinity": {"of": "all"}},
        "nodeSelector": {"role": "system"},
        "tolerations": [{"key": "system"}],
        "priorityClassName": "system-cluster-critical",
        "imagePullSecrets": [{"name": "mine"}],
    }


def test_a_component_has_resources_and_an_affinity_of_its_own() -> None:
    own = {"resources": {"limits": {"cpu": "2"}}, "affinity": {"nodeAffinity": {"of": "binder"}}}
    spec = {
        "global": {"affinity": {"nodeAffinity": {"of": "all"}}},
        "binder": {"service": own},
    }
    result = pods(spec, BINDER)
    assert result["affinity"]["nodeAffinity"] == {"of": "binder"}
    assert result["containers"][0]["resources"] == {"limits": {"cpu": "2"}}


def test_replicas_are_those_of_the_component_or_of_all_but_beat_stays_alone() -> None:
    spec = {"global": {"replicaCount": 2}, "binder": {"replicas": 3}}
    result = wanted(spec, BEAT, BINDER, GROUPER)
    assert {name: body["spec"]["replicas"] for (_, name), body in result.items()} == {
        "kaiweb-beat": 1,
        "binder": 3,
        "pod-grouper": 2,
    }


def test_an_autoscaler_keeps_the_number_of_replicas() -> None:
    free = {**BINDER, "spec": {k: v for k, v in BINDER["spec"].items() if k != "replicas"}}
    result = wanted({"binder": {"replicas": 3}}, free)["Deployment", "binder"]
    assert "replicas" not in result["spec"]


def test_what_is_disabled_is_unwanted_with_its_budget() -> None:
    result = rendered({"binder": {"service": {"enabled": False}}}, BEAT, BINDER, budget("binder"))
    assert [body["metadata"]["name"] for body in result.wanted] == ["kaiweb-beat"]
    assert [body["kind"] for body in result.unwanted if body["metadata"]["name"] == "binder"] == [
        "Deployment",
        "PodDisruptionBudget",
    ]


def test_budgets_are_for_what_runs_more_than_once_and_follow_the_config() -> None:
    two = {"replicaCount": 2}
    on = {"service": {"podDisruptionBudget": {"enabled": True, "maxUnavailable": 2}}}
    off = {"service": {"podDisruptionBudget": {"enabled": False}}}
    assert ("PodDisruptionBudget", "binder") not in wanted({"binder": on}, BINDER)
    rendered = wanted({"global": two, "binder": on}, BINDER)["PodDisruptionBudget", "binder"]
    assert rendered["spec"] == {"maxUnavailable": 2, "selector": BINDER["spec"]["selector"]}
    of_chart = budget("binder")
    assert ("PodDisruptionBudget", "binder") in wanted({"global": two}, BINDER, of_chart)
    assert ("PodDisruptionBudget", "binder") not in wanted(
        {"global": two, "binder": off}, BINDER, of_chart
    )


def test_monitors_come_with_prometheus() -> None:
    assert ("ServiceMonitor", "kai-scheduler") in wanted({"prometheus": {"enabled": True}})
    assert [body["kind"] for body in rendered({}).unwanted] == ["ServiceMonitor"]

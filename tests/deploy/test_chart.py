"""The chart, rendered by the real helm: it says what deploy/ and the supervisor say."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from binder.numa_exporter.__main__ import parser_of as exporter_options
from kaiweb.operator.deployments import from_template
from kaiweb.operator.desired import desired_processes
from kaiweb.operator.rendering import render
from kaiweb.settings.ci import ci_rules
from kaiweb.settings.oidc import role_rules, settings_of
from kaiweb.supervisor.desired import DesiredProcesses
from kaiweb.supervisor.layout import EMBEDDED_PORTS, Installation, specs
from kube.objects.config import Config
from kube.objects.meta import convert
from tests.deploy.chart import (
    CHART,
    DEPLOY,
    HelmError,
    Manifest,
    containers,
    documents,
    files,
    main_container,
    of_kind,
    processes,
    rendered,
    run_helm,
    variables,
)

pytestmark = pytest.mark.e2e

WORKLOADS = ("Deployment", "StatefulSet", "Job")


def layout(tmp_path: Path) -> Installation:
    return Installation(
        home=tmp_path, web_port=8000, ports=dict.fromkeys(EMBEDDED_PORTS, 8080),
        redis_url="redis://broker", kubeconfig=tmp_path / "kubeconfig", accounts=tmp_path,
        has_own_broker=False, has_sandbox=False, serves_gangs=False, has_simulators=False,
        has_demo_stream=False, nodes="none", shards=("default",),
    )  # fmt: skip


def test_helm_finds_no_fault_in_the_chart(helm: Path) -> None:
    assert "0 chart(s) failed" in run_helm(helm, "lint", "--strict", str(CHART))


def test_the_definitions_of_the_chart_are_those_of_deploy(helm: Path) -> None:
    text = run_helm(helm, "template", "kaiweb", str(CHART), "--include-crds")
    shown = of_kind(documents(text), "CustomResourceDefinition").values()
    assert sorted(shown, key=json.dumps) == sorted(files(DEPLOY / "crds"), key=json.dumps)


def test_accounts_and_roles_of_the_chart_are_those_of_deploy(chart: list[Manifest]) -> None:
    roles = files(DEPLOY / "rbac")
    kinds = {item["kind"] for item in roles}
    others = {"kai-resource-reservation", "kai-scale-adjust"}  # of deploy/defaults
    in_chart = [
        item
        for item in chart
        if item["kind"] in kinds
        and not (item["kind"] == "ServiceAccount" and item["metadata"]["name"] in others)
    ]
    assert sorted(in_chart, key=json.dumps) == sorted(roles, key=json.dumps)


def test_the_default_objects_of_the_chart_are_those_of_deploy(chart: list[Manifest]) -> None:
    for expected in files(DEPLOY / "defaults"):
        name = expected["metadata"]["name"]
        if expected["kind"] == "Namespace" and name == "kai-scheduler":
            continue  # helm makes the namespace of a release
        rendered_object = of_kind(chart, expected["kind"])[name]
        if expected["kind"] == "Config":
            spec = rendered_object["spec"]
            assert spec["global"] == expected["spec"]["global"]
            assert spec["scheduler"] == expected["spec"]["scheduler"]
        else:
            assert _without_metadata(rendered_object) == _without_metadata(expected)


def test_every_process_runs_the_command_of_the_supervisor(
    chart: list[Manifest], tmp_path: Path
) -> None:
    expected = {
        spec.name: _as_program(spec.command) for spec in specs(layout(tmp_path), DesiredProcesses())
    }
    commands = {name: main_container(item)["command"] for name, item in processes(chart).items()}
    assert commands.keys() == expected.keys()
    assert commands["web"] == [*expected["web"], "--host", "0.0.0.0", "--port", "8000"]
    controllers = [part.replace("127.0.0.1", "0.0.0.0") for part in expected["controllers"]]
    assert commands["controllers"][: len(controllers)] == controllers
    assert commands["operator"] == [*expected["operator"], "--deployments"]
    for name in commands.keys() - {"web", "controllers", "operator"}:
        assert commands[name] == expected[name]


def test_each_worker_of_the_mirror_has_a_deployment_with_the_command_of_the_supervisor(
    helm: Path, tmp_path: Path
) -> None:
    plan = replace(layout(tmp_path), mirror_workers=3)
    expected = {
        spec.name: _as_program(spec.command)
        for spec in specs(plan, DesiredProcesses())
        if spec.name.startswith("mirror")
    }
    running = processes(rendered(helm, "mirror.workers=3"))
    shown = {name: item for name, item in running.items() if name.startswith("mirror")}
    commands = {name: main_container(item)["command"] for name, item in shown.items()}
    assert commands == expected
    assert commands["mirror-2"][-4:] == ["--worker", "2", "--workers", "3"]
    for name, item in shown.items():
        assert item["metadata"]["name"] == f"kaiweb-{name}"
        assert item["spec"]["strategy"] == {"type": "Recreate"}
        assert item["spec"]["selector"]["matchLabels"]["app"] == f"kaiweb-{name}"
        probe = main_container(item)["livenessProbe"]["exec"]["command"]
        assert probe == ["kaiweb", "healthy", name]
        assert variables(main_container(item))["KAIWEB_PROCESS"] == name


def test_the_chart_refuses_a_mirror_without_workers(helm: Path) -> None:
    with pytest.raises(HelmError, match="workers"):
        rendered(helm, "mirror.workers=0")


def test_every_process_has_the_account_of_the_supervisor(
    chart: list[Manifest], tmp_path: Path
) -> None:
    expected = {
        spec.name: Path(spec.env["KAIWEB_KUBECONFIG"]).stem
        for spec in specs(layout(tmp_path), DesiredProcesses())
        if spec.name != "beat"
    }
    pods = {name: item["spec"]["template"]["spec"] for name, item in processes(chart).items()}
    # Beat talks to the broker alone.
    assert pods.pop("beat")["automountServiceAccountToken"] is False
    assert {name: pod["serviceAccountName"] for name, pod in pods.items()} == expected


def test_processes_are_started_as_the_config_of_the_chart_asks(helm: Path) -> None:
    objects = rendered(
        helm,
        "global.gpuSharing=true",
        "global.blockNvidiaVisibleDevices=true",
        "global.clusterAutoscaling=true",
        "global.schedulerName=other",
        "global.podLabelSelector.team=red",
        "podgrouper.queueLabelKey=runai/queue",
        "podgrouper.genericKartaFallback=false",
        "queuecontroller.metricsNamespace=gpu",
        "admission.gpuFractionRuntimeClassName=",
        "binder.cdiEnabled=true",
    )
    config = msgspec.convert(of_kind(objects, "Config")["kai-config"], Config)
    desired, problems = desired_processes(config, {}, DesiredProcesses(), {})
    running = processes(objects)
    assert problems == {}
    assert desired.arguments["controllers"]
    for process, arguments in desired.arguments.items():
        assert set(arguments) <= set(main_container(running[process])["command"])
    for process, environment in desired.environment.items():
        have = variables(main_container(running[process]))
        for name, value in environment.items():
            if name == "KAIWEB_BINDER":
                assert json.loads(have[name]) == json.loads(value)
            else:
                assert have[name] == value


@pytest.mark.parametrize("kind", WORKLOADS)
def test_no_container_may_do_more_than_it_must(chart: list[Manifest], kind: str) -> None:
    workloads = of_kind(chart, kind)
    assert workloads
    for workload in workloads.values():
        pod = workload["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in containers(workload):
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] is True
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["limits"]["memory"]


def test_the_state_folder_is_made_by_us_below_a_mount(chart: list[Manifest]) -> None:
    """The folder of a mount belongs to root: a process of another user could not make it private."""
    for deployment in processes(chart).values():
        for container in containers(deployment):
            mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
            home = Path(variables(container)["KAIWEB_HOME"])
            assert str(home) not in mounts
            assert str(home.parent) in mounts


def test_postgresql_runs_as_the_user_of_its_image(chart: list[Manifest]) -> None:
    (pod,) = (item["spec"]["template"]["spec"] for item in of_kind(chart, "StatefulSet").values())
    context = pod["securityContext"]
    assert (context["runAsUser"], context["fsGroup"], context["runAsNonRoot"]) == (70, 70, True)


def test_every_process_is_asked_for_signs_of_life_by_its_own_name(chart: list[Manifest]) -> None:
    for name, deployment in processes(chart).items():
        container = main_container(deployment)
        probe = ["kaiweb", "healthy", name]
        assert container["startupProbe"]["exec"]["command"] == probe
        assert container["livenessProbe"]["exec"]["command"] == probe
        assert variables(container)["KAIWEB_PROCESS"] == name


def test_no_secret_is_written_into_a_pod(chart: list[Manifest]) -> None:
    for kind in WORKLOADS:
        for workload in of_kind(chart, kind).values():
            for container in containers(workload):
                names = {item["name"] for item in container.get("env", ()) if "value" in item}
                assert not names & {"KAIWEB_SECRET_KEY", "DATABASE_URL", "REDIS_URL"}


def test_selectors_of_services_budgets_and_policies_find_pods(helm: Path) -> None:
    objects = rendered(helm, "binder.replicas=2", "podgrouper.replicas=2", "scheduler.replicas=2")
    labels = [
        workload["spec"]["template"]["metadata"]["labels"]
        for kind in WORKLOADS
        for workload in of_kind(objects, kind).values()
    ]
    selectors = [item["spec"]["selector"] for item in of_kind(objects, "Service").values()]
    budgets = of_kind(objects, "PodDisruptionBudget")
    assert budgets.keys() == {"kaiweb-web", "binder", "pod-grouper", "kai-scheduler-default"}
    selectors += [item["spec"]["selector"]["matchLabels"] for item in budgets.values()]
    selectors += [
        item["spec"]["podSelector"]["matchLabels"]
        for item in of_kind(objects, "NetworkPolicy").values()
        if "matchLabels" in item["spec"]["podSelector"]
    ]
    for selector in selectors:
        assert any(selector.items() <= pod.items() for pod in labels), selector


def test_budgets_are_left_out_where_one_pod_runs(chart: list[Manifest]) -> None:
    assert of_kind(chart, "PodDisruptionBudget").keys() == {"kaiweb-web"}


def test_an_autoscaler_owns_the_number_of_replicas(helm: Path) -> None:
    objects = rendered(helm, "web.autoscaling.enabled=true", "binder.autoscaling.enabled=true")
    assert of_kind(objects, "HorizontalPodAutoscaler").keys() == {"kaiweb-web", "binder"}
    deployments = of_kind(objects, "Deployment")
    assert "replicas" not in deployments["kaiweb-web"]["spec"]
    assert "replicas" not in deployments["binder"]["spec"]
    assert of_kind(objects, "PodDisruptionBudget").keys() == {"kaiweb-web", "binder"}


def test_each_shard_has_a_scheduler_of_its_own(helm: Path) -> None:
    objects = rendered(helm, "scheduler.shards={default,h100}")
    running = processes(objects)
    command = main_container(running["scheduling-h100"])["command"]
    assert command[command.index("-Q") + 1] == "shard.h100"
    assert running["scheduling-h100"]["metadata"]["name"] == "kai-scheduler-h100"
    assert "kai-scheduler-h100" in of_kind(objects, "Service")
    assert variables(main_container(running["beat"]))["KAIWEB_SHARDS"] == "default,h100"


def test_the_template_of_the_operator_makes_what_the_chart_makes(helm: Path) -> None:
    objects = rendered(helm, "scheduler.shards={h100}", "scheduler.replicas=2")
    template = of_kind(objects, "ConfigMap")["kaiweb-scheduler-template"]["data"]["shard.yaml"]
    object_of_kind = {item["kind"]: item for item in from_template(template, "h100")}
    for kind in ("Deployment", "Service"):
        assert object_of_kind[kind] == of_kind(objects, kind)["kai-scheduler-h100"]


def test_the_operator_keeps_what_the_chart_makes(helm: Path) -> None:
    objects = rendered(
        helm, "binder.replicas=2", "web.autoscaling.enabled=true", "prometheus.enabled=true"
    )
    texts = of_kind(objects, "ConfigMap")["kaiweb-process-templates"]["data"]
    config = of_kind(objects, "Config")["kai-config"]
    spec = convert(config, Config).spec
    desired, _ = desired_processes(convert(config, Config), {}, DesiredProcesses(), {})
    wanted = render(texts, spec, desired).wanted
    of_chart = {(item["kind"], item["metadata"]["name"]): item for item in objects}
    for body in wanted:
        annotations = body["metadata"].pop("annotations")
        annotations = {key: value for key, value in annotations.items() if "helm.sh" not in key}
        if annotations:
            body["metadata"]["annotations"] = annotations
        assert body == of_chart[body["kind"], body["metadata"]["name"]]
    assert Counter(body["kind"] for body in wanted) == {
        "Deployment": len(processes(objects)) - 1,
        "Service": 4,
        "PodDisruptionBudget": 2,
        "ServiceMonitor": 3,
    }


def test_an_identity_provider_reaches_the_web_process_with_its_secret(helm: Path) -> None:
    objects = rendered(
        helm, "oidc.issuer=https://id.example.com", "oidc.existingSecret=sso",
        "oidc.roles[0].group=physics", "oidc.roles[0].role=editor", "oidc.roles[0].subtree=lab",
    )  # fmt: skip
    container = main_container(of_kind(objects, "Deployment")["kaiweb-web"])
    name = "KAIWEB_OIDC_CLIENT_SECRET"
    secret = next(item["valueFrom"] for item in container["env"] if item["name"] == name)
    assert secret == {"secretKeyRef": {"name": "sso", "key": "client-secret"}}
    settings = settings_of({**variables(container), name: "s"})
    assert settings["KAIWEB_OIDC_ISSUER"] == "https://id.example.com"
    assert settings["KAIWEB_OIDC_ROLES"] == (("physics", "editor", "lab"),)


def test_who_logs_in_with_a_kubeconfig_reaches_the_web_process(helm: Path) -> None:
    objects = rendered(
        helm, "kubernetesLogin.audiences={https://kai.example.com}",
        "kubernetesLogin.roles[0].group=system:serviceaccounts:lab",
        "kubernetesLogin.roles[0].role=editor", "kubernetesLogin.roles[0].subtree=lab",
    )  # fmt: skip
    environment = variables(main_container(of_kind(objects, "Deployment")["kaiweb-web"]))
    assert environment["KAIWEB_KUBERNETES_AUDIENCES"] == "https://kai.example.com"
    rules = role_rules("KAIWEB_KUBERNETES_ROLES", environment)
    assert rules == (("system:serviceaccounts:lab", "editor", "lab"),)


def test_the_rules_of_pipelines_reach_the_web_process(helm: Path) -> None:
    objects = rendered(
        helm, "ciRules[0].issuer=https://ci.example.com", "ciRules[0].audience=https://kai.example.com",
        "ciRules[0].claims.ref=main", "ciRules[0].user=ci", "ciRules[0].scopes={read}",
    )  # fmt: skip
    environment = variables(main_container(of_kind(objects, "Deployment")["kaiweb-web"]))
    (rule,) = ci_rules(environment)
    assert (rule.claims, rule.scopes) == ((("ref", ("main",)),), ("read",))


def test_networks_that_webhooks_may_reach_are_known_to_the_web_process_and_the_worker(
    helm: Path,
) -> None:
    objects = of_kind(
        rendered(helm, "notifications.networks={10.0.0.0/8,192.168.1.7}"), "Deployment"
    )
    for name in ("kaiweb-web", "kaiweb-worker"):
        environment = variables(main_container(objects[name]))
        assert environment["KAIWEB_NOTIFY_NETWORKS"] == "10.0.0.0/8,192.168.1.7"


def test_all_objects_are_in_the_namespace_of_the_release(helm: Path) -> None:
    objects = rendered(helm, namespace="gpu")
    namespaces = {item["metadata"].get("namespace") for item in objects}
    assert namespaces == {None, "gpu", "kai-resource-reservation", "kai-scale-adjust"}
    subjects = {
        subject["namespace"]
        for item in objects
        for subject in item.get("subjects", ())
        if subject["name"] != "kai-resource-reservation"
    }
    assert subjects == {"gpu"}


def test_stores_of_ones_own_replace_those_of_the_chart(helm: Path) -> None:
    objects = rendered(
        helm,
        "postgresql.enabled=false",
        "postgresql.url=postgresql://u:p@db/kaiweb",
        "redis.enabled=false",
        "redis.url=rediss://:p@cache:6379/0",
    )
    assert of_kind(objects, "StatefulSet") == {}
    assert "kaiweb-redis" not in of_kind(objects, "Deployment")
    secret = of_kind(objects, "Secret")["kaiweb"]["data"]
    assert "redis.conf" not in secret


def test_a_secret_of_ones_own_is_used_by_all(helm: Path) -> None:
    objects = rendered(helm, "secrets.existingSecret=mine")
    assert of_kind(objects, "Secret") == {}
    names = {
        item["valueFrom"]["secretKeyRef"]["name"]
        for kind in WORKLOADS
        for workload in of_kind(objects, kind).values()
        for container in containers(workload)
        for item in container.get("env", ())
        if "valueFrom" in item
    }
    assert names == {"mine"}


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("scheduler.shard=x", "additional properties 'shard' not allowed"),
        ("web.replicas=0", "minimum: got 0, want 1"),
        ("scheduler.placementStrategy.gpu=best", "value must be one of 'binpack', 'spread'"),
        ("scheduler.shards={Big}", "does not match pattern"),
        ("postgresql.enabled=false", "expected postgresql.url"),
        ("redis.enabled=false", "expected redis.url"),
    ],
)
def test_values_that_cannot_be_used_are_refused(helm: Path, setting: str, text: str) -> None:
    with pytest.raises(HelmError, match=text):
        rendered(helm, setting)


def _as_program(command: tuple[str, ...]) -> list[str]:
    """Return a command of the supervisor as it is typed: `python -m kaiweb x` is `kaiweb x`."""
    assert command[:2] == (sys.executable, "-m")
    return list(command[2:])


def _without_metadata(item: Manifest) -> Manifest:
    return {key: value for key, value in item.items() if key != "metadata"}


def test_the_numa_exporter_is_off_and_reads_only_what_it_needs(
    helm: Path, chart: list[Manifest]
) -> None:
    assert of_kind(chart, "DaemonSet") == {}
    exporter = of_kind(rendered(helm, "numaPlacementExporter.enabled=true"), "DaemonSet")
    pod = exporter["numa-placement-exporter"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["serviceAccountName"] == "numa-placement-exporter"
    assert [mount["readOnly"] for mount in container["volumeMounts"]] == [True, True]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    options = exporter_options({"NODE_NAME": "n1"}).parse_args(container["args"])
    assert (options.poll_interval, options.drift_resync_interval) == (1.0, 60.0)

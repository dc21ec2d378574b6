"""The objects of the chart, changed as `kai-config` asks.

The chart keeps the text of its own Deployments, Services and budgets in a ConfigMap. What the Config says about flags,
variables, replicas, places and resources replaces the chart's values there; what it does not mention stays.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from kaiweb.operator.desired import all_settings, has_scale_adjuster
from kaiweb.supervisor.desired import DesiredProcesses, scheduling_process
from kaiweb.supervisor.layout import BINDING, CONTROLLERS_PROCESS, WEB_PROCESS
from kube.objects.config import (
    AdmissionConfig,
    BinderConfig,
    ComponentConfig,
    ConfigSpec,
    PodGrouperConfig,
)

PROCESS_LABEL = "kaiweb/process"
INSTANCE_LABEL = "app.kubernetes.io/instance"
MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "kaiweb-operator"
MONITORS = "monitors.yaml"
KINDS = ("Deployment", "Service", "PodDisruptionBudget", "ServiceMonitor")
SCALE_ADJUSTER = "--node-scale-adjuster"
JSON_LOG = "KAIWEB_LOG_JSON"

Manifest = dict[str, Any]
Component = AdmissionConfig | BinderConfig | ComponentConfig | PodGrouperConfig


@dataclass(frozen=True, slots=True)
class Rendered:
    """The objects that must exist, and those that must not."""

    wanted: tuple[Manifest, ...]
    unwanted: tuple[Manifest, ...]


def render(templates: Mapping[str, str], spec: ConfigSpec, desired: DesiredProcesses) -> Rendered:
    """Return the objects of all processes.

    Parameters
    ----------
    templates : texts of YAML by file; the file `MONITORS` is wanted only with Prometheus

    Raises
    ------
    yaml.YAMLError : a text is no YAML
    """
    monitors = templates.get(MONITORS, "")
    bodies = [
        _of_release(body)
        for name in sorted(templates.keys() - {MONITORS})
        for body in _documents(templates[name])
    ]
    off = {body["metadata"]["name"] for body in bodies if process_of_body(body) in desired.off}
    wanted = [
        with_config(body, spec, desired)
        for body in bodies
        if body["metadata"]["name"] not in off and body["kind"] != "PodDisruptionBudget"
    ]
    budgets = [body for body in bodies if body["kind"] == "PodDisruptionBudget"]
    wanted_budgets = list(budgets_of(wanted, budgets, spec))
    names = {body["metadata"]["name"] for body in wanted_budgets}
    unwanted = [
        body
        for body in bodies
        if body["metadata"]["name"] in off
        or (body["kind"] == "PodDisruptionBudget" and body["metadata"]["name"] not in names)
    ]
    watched = spec.prometheus.enabled and spec.prometheus.service_monitor.enabled is not False
    (wanted if watched else unwanted).extend(map(_of_release, _documents(monitors)))
    return Rendered((*wanted, *wanted_budgets), tuple(unwanted))


def with_config(body: Manifest, spec: ConfigSpec, desired: DesiredProcesses) -> Manifest:
    """Return a Deployment as the Config asks; other objects as they are."""
    process = process_of_body(body)
    if body["kind"] != "Deployment" or not process:
        return body
    component = _component(process, spec)
    replicas = _replicas(component, spec)
    pods = {**body["spec"]["template"]["spec"]}
    _place(pods, component, spec)
    container, *others = pods["containers"]
    pods["containers"] = [_with_settings(container, process, component, spec, desired), *others]
    template = {**body["spec"]["template"], "spec": pods}
    changed = {**body["spec"], "template": template}
    # Without a number in the template an autoscaler owns it.
    if replicas is not None and "replicas" in changed:
        changed["replicas"] = replicas
    return {**body, "spec": changed}


def process_of_body(body: Manifest) -> str:
    """Return the process of a Deployment; "" for other objects."""
    if body["kind"] != "Deployment":
        return ""
    return str(body["metadata"].get("labels", {}).get(PROCESS_LABEL, ""))


def equal_settings(have: str | None, want: str) -> bool:
    """Compare two values; JSON is compared by its meaning."""
    if have == want:
        return True
    try:
        return bool(json.loads(have or "") == json.loads(want))
    except ValueError:
        return False


def _component(process: str, spec: ConfigSpec) -> Component | None:
    """Return the part of the Config that describes the pods of a process."""
    if process.startswith(scheduling_process("")):
        return spec.scheduler
    parts: dict[str, Component] = {
        WEB_PROCESS: spec.admission,
        CONTROLLERS_PROCESS: spec.pod_grouper,
        BINDING: spec.binder,
    }
    return parts.get(process)


def _replicas(component: Component | None, spec: ConfigSpec) -> int | None:
    """Return the number that the Config names; the processes of no component run once."""
    if component is None:
        return None
    return spec.global_.replica_count if component.replicas is None else component.replicas


def _place(pods: Manifest, component: Component | None, spec: ConfigSpec) -> None:
    """Set where pods may run; of an affinity each kind is replaced as a whole, as in KAI."""
    shared = spec.global_
    own = component.service.affinity if component is not None else {}
    if shared.affinity or own:
        pods["affinity"] = {**pods.get("affinity", {}), **shared.affinity, **own}
    if shared.node_selector:
        pods["nodeSelector"] = dict(shared.node_selector)
    if shared.tolerations:
        pods["tolerations"] = list(shared.tolerations)
    if shared.priority_class_name:
        pods["priorityClassName"] = shared.priority_class_name
    if shared.additional_image_pull_secrets:
        secrets = {item["name"]: item for item in pods.get("imagePullSecrets", ())}
        secrets |= {name: {"name": name} for name in shared.additional_image_pull_secrets}
        pods["imagePullSecrets"] = list(secrets.values())


def _with_settings(
    container: Manifest,
    process: str,
    component: Component | None,
    spec: ConfigSpec,
    desired: DesiredProcesses,
) -> Manifest:
    flags, variables = all_settings(spec)
    changed = {**container}
    if process == CONTROLLERS_PROCESS:
        extra = [flag for flag in desired.arguments.get(process, ()) if flag != SCALE_ADJUSTER]
        command = _with_flags(container["command"], flags, extra)
        changed["command"] = [part for part in command if part != SCALE_ADJUSTER]
        changed["command"] += [SCALE_ADJUSTER] * has_scale_adjuster(spec)
    known = dict(variables.get(process, {}))
    if spec.global_.json_log is not None:
        known[JSON_LOG] = str(int(spec.global_.json_log))
    extra_variables = desired.environment.get(process, {})
    changed["env"] = _with_variables(container.get("env", ()), known, extra_variables)
    if component is not None and component.service.resources:
        changed["resources"] = component.service.resources
    return changed


def _with_flags(command: list[str], known: Mapping[str, str], extra: list[str]) -> list[str]:
    """Return a command with the Config's value for each flag that it has, and further flags behind."""
    changed = []
    for part in command:
        flag, separator, _ = part.partition("=")
        changed.append(f"{flag}={known[flag]}" if separator and flag in known else part)
    return [*changed, *(flag for flag in extra if flag not in changed)]


def _with_variables(
    entries: Any, known: Mapping[str, str], extra: Mapping[str, str]
) -> list[Manifest]:
    """Return variables with the Config's value for each that is there, and further ones behind."""
    changed, names = [], set()
    for entry in entries:
        name = entry["name"]
        names.add(name)
        value = known.get(name, extra.get(name))
        is_same = value is None or equal_settings(entry.get("value"), value)
        changed.append(entry if is_same else {"name": name, "value": value})
    missing = {**extra, **{name: known[name] for name in known.keys() & {JSON_LOG}}}
    return [
        *changed,
        *({"name": name, "value": value} for name, value in missing.items() if name not in names),
    ]


def budgets_of(
    wanted: list[Manifest], budgets: list[Manifest], spec: ConfigSpec
) -> Iterator[Manifest]:
    """Yield the budgets of the chart and those that the Config turns on, for what runs more than once."""
    of_chart = {body["metadata"]["name"]: body for body in budgets}
    for body in wanted:
        process = process_of_body(body)
        if not process:
            continue
        name = body["metadata"]["name"]
        component = _component(process, spec)
        settings = component.service.pod_disruption_budget if component is not None else None
        is_on = settings.enabled if settings is not None else None
        if (name in of_chart if is_on is None else is_on) and body["spec"].get("replicas", 2) > 1:
            budget = of_chart.get(name) or _budget(body)
            if settings is not None and settings.max_unavailable is not None:
                amount = {"maxUnavailable": settings.max_unavailable}
                budget = {**budget, "spec": {**budget["spec"], **amount}}
            yield budget


def _budget(deployment: Manifest) -> Manifest:
    """Return a budget that the chart does not have; it is the operator's own."""
    metadata = deployment["metadata"]
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": {"app": metadata["name"], MANAGED_BY: MANAGER},
        },
        "spec": {"maxUnavailable": 1, "selector": deployment["spec"]["selector"]},
    }


def _documents(text: str) -> Iterator[Manifest]:
    for body in yaml.safe_load_all(text):
        if body and body["kind"] in KINDS:
            yield body


def _of_release(body: Manifest) -> Manifest:
    """Return an object with the marks by which Helm knows what it may upgrade and delete."""
    metadata = body["metadata"]
    annotations = {
        **(metadata.get("annotations") or {}),
        "meta.helm.sh/release-name": metadata["labels"][INSTANCE_LABEL],
        "meta.helm.sh/release-namespace": metadata["namespace"],
    }
    return {**body, "metadata": {**metadata, "annotations": annotations}}

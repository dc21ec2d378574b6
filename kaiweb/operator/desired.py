"""Derive the processes that should run from Config `kai-config` and the SchedulingShards.

Only values that differ from the built-in defaults become flags or variables, so that a plain Config changes no
command line. The table of flags is KAI's ("arguments passed"). Fields that have no meaning without Deployments
(replicas, affinity, resources) are read in `rendering.py`; images are those of the installation.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from kaiweb.supervisor.desired import DesiredProcesses, can_be_process, scheduling_process
from kaiweb.supervisor.layout import BINDING, CONTROLLERS_PROCESS, WEB_PROCESS
from kube.objects.config import Config, ConfigSpec, SchedulingShard, Service
from kube.objects.meta import as_body
from scheduler.settings.shard import DEFAULT_SHARD, problem_of

#: The defaults of the webhooks, by variable.
BUILT_IN = {
    "KAIWEB_GPU_SHARING": "1",
    "KAIWEB_BLOCK_NVIDIA_VISIBLE_DEVICES": "0",
    "KAIWEB_HAMI_CORE": "0",
    "KAIWEB_GPU_FRACTION_RUNTIME_CLASS": "nvidia",
}


def desired_processes(
    config: Config | None,
    shards: Mapping[str, SchedulingShard],
    before: DesiredProcesses,
    environment: Mapping[str, str],
) -> tuple[DesiredProcesses, dict[str, str]]:
    """Return the desired processes, and for each shard with unusable settings the reason.

    Parameters
    ----------
    before : what was wanted so far; a shard that was valid once keeps its scheduler after an invalid edit
    environment : the variables of the installation; a shard's settings may refer to them
    """
    problems = {
        name: problem
        for name, shard in shards.items()
        if (problem := _problem(name, shard, config, environment))
    }
    running = {
        name
        for name in shards
        if name not in problems or (name in before.shards and can_be_process(name))
    }
    spec = config.spec if config is not None else ConfigSpec()
    web = _difference(_web_variables, spec)
    set_already = {**BUILT_IN, **environment}
    web = {name: value for name, value in web.items() if set_already.get(name) != value}
    flags = [f"{flag}={value}" for flag, value in _difference(_controller_flags, spec).items()]
    if has_scale_adjuster(spec):
        flags += ["--node-scale-adjuster"]
    shards_run = tuple(sorted({DEFAULT_SHARD, *running}))
    variables_of = {
        WEB_PROCESS: web,
        BINDING: _binder_variables(spec),
        **{scheduling_process(name): _scheduler_variables(spec) for name in shards_run},
    }
    desired = DesiredProcesses(
        shards=shards_run,
        off=_off(spec, shards_run),
        arguments={CONTROLLERS_PROCESS: tuple(flags)} if flags else {},
        environment={
            process: variables for process, variables in variables_of.items() if variables
        },
    )
    return desired, problems


def all_settings(spec: ConfigSpec) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Return the flags of the controllers and the variables of the other processes, defaults included.

    With these a process that was started with another value is brought back to the Config's.
    """
    flags = {flag: value for flag, value in _controller_flags(spec).items() if value}
    web = {name: value for name, value in _web_variables(spec).items() if value}
    return flags, {WEB_PROCESS: web, BINDING: _binder_variables(spec)}


def has_scale_adjuster(spec: ConfigSpec) -> bool:
    """Return whether the node scale adjuster is enabled; as in KAI's chart, it is not by default."""
    return spec.node_scale_adjuster.service.enabled is True


def is_enabled(service: Service) -> bool:
    """Return whether an enabled-by-default component is enabled."""
    return service.enabled is not False


def _off(spec: ConfigSpec, shards: tuple[str, ...]) -> tuple[str, ...]:
    """Return the processes whose only component is disabled."""
    schedulers = () if is_enabled(spec.scheduler.service) else shards
    binder = () if is_enabled(spec.binder.service) else (BINDING,)
    return (*binder, *(scheduling_process(name) for name in schedulers))


def _problem(
    name: str, shard: SchedulingShard, config: Config | None, environment: Mapping[str, str]
) -> str:
    if not can_be_process(name):
        return (
            f"metadata.name: expected a DNS label (at most 63 of a-z, 0-9 and -), got {name!r}; a "
            "scheduler's process, log and queue are named after its shard"
        )
    return problem_of(name, shard, config, environment)


def _controller_flags(spec: ConfigSpec) -> dict[str, str]:
    """Return flags of `run_controllers`; one with the value "" is not passed."""
    shared, grouper, queues = spec.global_, spec.pod_grouper, spec.queue_controller
    adjuster = spec.node_scale_adjuster.args
    return {
        "--namespace": spec.namespace,
        "--scheduler-name": shared.scheduler_name,
        "--queue-label-key": shared.queue_label_key,
        "--nodepool-label-key": shared.node_pool_label_key,
        "--namespace-label-selector": _pairs(shared.namespace_label_selector),
        "--pod-label-selector": _pairs(shared.pod_label_selector),
        "--group-pods": _word(is_enabled(spec.pod_grouper.service)),
        "--podgroup-status": _word(is_enabled(spec.pod_group_controller.service)),
        "--queue-status": _word(is_enabled(queues.service)),
        "--knative-gang-schedule": _word(grouper.args.gang_schedule_knative),
        "--generic-karta-fallback": _word(grouper.args.generic_karta_fallback),
        "--default-priorities-configmap-name": grouper.args.default_priorities_config_map_name,
        "--default-priorities-configmap-namespace": (
            grouper.args.default_priorities_config_map_namespace
        ),
        "--max-concurrent-reconciles": _number(grouper.max_concurrent_reconciles),
        "--metrics-namespace": queues.metrics_namespace,
        "--queue-label-to-metric-label": queues.queue_label_to_metric_label,
        "--queue-label-to-default-metric-value": queues.queue_label_to_default_metric_value,
        "--scale-adjust-namespace": adjuster.node_scale_namespace,
        "--scaling-pod-service-account": adjuster.node_scale_service_account,
        "--gpu-memory-to-fraction-ratio": _number(adjuster.gpu_memory_to_fraction_ratio),
    }


def _web_variables(spec: ConfigSpec) -> dict[str, str]:
    """Return variables of the process that serves the webhooks; one with the value "" is not set."""
    admission = spec.admission
    hami = spec.binder.plugins.get("hamicore")
    return {
        "KAIWEB_SCHEDULER_NAME": spec.global_.scheduler_name,
        "KAIWEB_GPU_SHARING": _digit(admission.gpu_sharing),
        "KAIWEB_BLOCK_NVIDIA_VISIBLE_DEVICES": _digit(admission.block_nvidia_visible_devices),
        "KAIWEB_HAMI_CORE": _digit(hami.enabled if hami is not None else None),
        "KAIWEB_ADMIT_PODS": _off_digit(admission.service),
        "KAIWEB_ADMIT_QUEUES": _off_digit(spec.queue_controller.service),
        "KAIWEB_ADMIT_POD_GROUPS": _off_digit(spec.pod_group_controller.service),
        "KAIWEB_GPU_FRACTION_RUNTIME_CLASS": admission.gpu_fraction_runtime_class_name or "",
    }


def _binder_variables(spec: ConfigSpec) -> dict[str, str]:
    """Return variables of the binder: its part of the Config unchanged; the binder validates it."""
    of_pods = ("service", "replicas")
    settings = {name: part for name, part in as_body(spec.binder).items() if name not in of_pods}
    text = json.dumps(settings, sort_keys=True, separators=(",", ":")) if settings else ""
    variables = {
        "KAIWEB_BINDER": text,
        "KAIWEB_SCALE_ADJUST_NAMESPACE": spec.node_scale_adjuster.args.node_scale_namespace,
    }
    return {name: value for name, value in variables.items() if value}


def _scheduler_variables(spec: ConfigSpec) -> dict[str, str]:
    """Return variables of a shard's scheduler: its metrics have the same prefix as the queue controller's."""
    prefix = spec.queue_controller.metrics_namespace
    return {"KAIWEB_METRICS_NAMESPACE": prefix} if prefix else {}


def _off_digit(service: Service) -> str:
    return "" if is_enabled(service) else "0"


def _difference(read: Callable[[ConfigSpec], dict[str, str]], spec: ConfigSpec) -> dict[str, str]:
    plain = read(ConfigSpec())
    return {name: value for name, value in read(spec).items() if value and value != plain[name]}


def _pairs(labels: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def _word(value: bool | None) -> str:
    return "" if value is None else str(value).lower()


def _digit(value: bool | None) -> str:
    return "" if value is None else str(int(value))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"

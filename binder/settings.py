"""Read the binder's parameters from `spec.binder` of the cluster's Config, which the operator passes on.

Absent fields keep KAI's default. A plugin's `enabled` and `priority` each replace the default, its
`arguments` replace all default arguments; an unknown plugin is refused when the steps are created.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace

import msgspec

from binder.errors import ConfigError
from binder.params import DEFAULT_STEPS, BinderParams, ReservationParams, StepConfig
from kube.keys import NVIDIA_GPU
from kube.objects.config import BinderConfig, Override

VARIABLE = "KAIWEB_BINDER"
SCALING_NAMESPACE_VARIABLE = "KAIWEB_SCALE_ADJUST_NAMESPACE"
IMAGE_VARIABLE = "KAIWEB_RESERVATION_IMAGE"


def params_from_environment(
    environment: Mapping[str, str] = os.environ, *, uses_cdi: Callable[[], bool] = lambda: False
) -> BinderParams:
    """Return the parameters of this process from its environment variables.

    Parameters
    ----------
    uses_cdi : asked whether the cluster names devices through CDI, if the Config does not say so

    Raises
    ------
    ConfigError : names the variable and what is wrong with it
    """
    text = environment.get(VARIABLE, "")
    try:
        config = msgspec.json.decode(text, type=BinderConfig) if text else BinderConfig()
    except msgspec.MsgspecError as error:
        raise ConfigError(f"{VARIABLE}: expected spec.binder of a Config: {error}") from error
    if config.cdi_enabled is None and not _states_cdi(config):
        config = msgspec.structs.replace(config, cdi_enabled=uses_cdi())
    params = params_of(config, environment.get(SCALING_NAMESPACE_VARIABLE, ""))
    image = environment.get(IMAGE_VARIABLE) or params.reservation.image
    return replace(params, reservation=replace(params.reservation, image=image))


def _states_cdi(config: BinderConfig) -> bool:
    """Return whether arguments of the plugin decide about CDI."""
    return config.plugins.get("gpusharing", Override()).arguments is not None


def params_of(config: BinderConfig, scaling_namespace: str = "") -> BinderParams:
    """Return the parameters that a Config sets.

    Raises
    ------
    ConfigError : maxConcurrentReconciles is below 1
    """
    default = BinderParams()
    concurrency = config.max_concurrent_reconciles or default.concurrency
    if concurrency < 1:
        raise ConfigError(f"maxConcurrentReconciles: expected 1 or more, got {concurrency}")
    return BinderParams(
        concurrency=concurrency,
        reservation=_reservation(config, scaling_namespace),
        steps=_steps(config),
    )


def _reservation(config: BinderConfig, scaling_namespace: str) -> ReservationParams:
    reservation, default = config.resource_reservation, ReservationParams()
    return ReservationParams(
        namespace=reservation.namespace or default.namespace,
        service_account=reservation.service_account_name or default.service_account,
        app_label=reservation.app_label or default.app_label,
        timeout_s=float(reservation.allocation_timeout or default.timeout_s),
        runtime_class=reservation.runtime_class_name,
        resources={
            kind: {name: value for name, value in amounts.items() if name != NVIDIA_GPU}
            for kind, amounts in reservation.pod_resources.items()
            if kind in ("requests", "limits")
        },
        pod_security=reservation.reservation_pod_security_context,
        container_security=reservation.reservation_container_security_context,
        scaling_namespace=scaling_namespace or default.scaling_namespace,
    )


def _steps(config: BinderConfig) -> tuple[StepConfig, ...]:
    steps = {step.name: _from_config(step, config) for step in DEFAULT_STEPS}
    for name, override in config.plugins.items():
        steps[name] = _overridden(steps.get(name, StepConfig(name=name, priority=0)), override)
    return tuple(steps.values())


def _from_config(step: StepConfig, config: BinderConfig) -> StepConfig:
    """Apply the fields of the Config that set a step's arguments outside of `plugins`."""
    arguments = dict(step.arguments)
    if "bindTimeoutSeconds" in arguments and config.volume_binding_timeout_seconds is not None:
        arguments["bindTimeoutSeconds"] = str(config.volume_binding_timeout_seconds)
    if "cdiEnabled" in arguments and config.cdi_enabled is not None:
        arguments["cdiEnabled"] = str(config.cdi_enabled).lower()
    return replace(step, arguments=arguments)


def _overridden(step: StepConfig, override: Override) -> StepConfig:
    arguments = override.arguments
    return StepConfig(
        name=step.name,
        priority=step.priority if override.priority is None else override.priority,
        is_enabled=step.is_enabled if override.enabled is None else override.enabled,
        arguments=step.arguments
        if arguments is None
        else {name: str(value) for name, value in arguments.items()},
    )

"""All preparation steps by name; the configuration decides which of them run, and in what order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from binder.errors import ConfigError
from binder.params import StepConfig
from binder.steps.base import PrepareStep
from binder.steps.device_claims import DeviceClaims
from binder.steps.gpu_sharing import GpuSharing
from binder.steps.hami import HamiCore
from binder.steps.volumes import Volumes
from kube.gateway import Gateway

STEPS: dict[str, Callable[[Gateway, StepConfig], PrepareStep]] = {
    "volumebinding": Volumes,
    "dynamicresources": DeviceClaims,
    "gpusharing": GpuSharing,
    "hamicore": HamiCore,
}


def make_steps(
    gateway: Gateway, configs: Sequence[StepConfig]
) -> tuple[tuple[str, PrepareStep], ...]:
    """Return the enabled steps in order: priority first (higher earlier), then name.

    Raises
    ------
    ConfigError : an unknown step, or arguments it cannot use
    """
    _check_hami(configs)
    steps = []
    for config in sorted(configs, key=lambda item: (-item.priority, item.name)):
        if not config.is_enabled:
            continue
        factory = STEPS.get(config.name)
        if factory is None:
            raise ConfigError(f"failed to get binder plugin {config.name}")
        steps.append((config.name, factory(gateway, config)))
    return tuple(steps)


def _check_hami(configs: Sequence[StepConfig]) -> None:
    """Refuse hamicore without gpusharing, or before it: that step creates the ConfigMap that the limit is written to."""
    enabled = {config.name: config for config in configs if config.is_enabled}
    hami, sharing = enabled.get("hamicore"), enabled.get("gpusharing")
    if hami is None:
        return
    if sharing is None:
        raise ConfigError('"hamicore" plugin requires "gpusharing" plugin to be enabled')
    if sharing.priority <= hami.priority:
        raise ConfigError(
            '"hamicore" plugin requires "gpusharing" to run before it (expected '
            f'"gpusharing".priority > "hamicore".priority, got {sharing.priority} <= {hami.priority})'
        )

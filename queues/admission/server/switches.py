"""Read the admission settings from the environment (in a cluster, the operator sets it from the Config)."""

from __future__ import annotations

import os

from kube.keys import SCHEDULER_NAME
from queues.admission.install.registration import (
    POD_GROUP_VALIDATION,
    POD_MUTATION,
    POD_VALIDATION,
    QUEUE_VALIDATION,
)
from queues.admission.settings import AdmissionSettings

#: Variable that switches webhooks off -> their configurations. One variable for each component of KAI that serves some.
SWITCHES = {
    "KAIWEB_ADMIT_PODS": (POD_MUTATION, POD_VALIDATION),
    "KAIWEB_ADMIT_QUEUES": (QUEUE_VALIDATION,),
    "KAIWEB_ADMIT_POD_GROUPS": (POD_GROUP_VALIDATION,),
}


def flag(name: str, *, default: bool) -> bool:
    """Return whether an environment variable switches something on; `default` if it is not set.

    Raises
    ------
    ValueError : neither on nor off
    """
    text = os.environ.get(name, "").strip().lower()
    if not text:
        return default
    if text in ("1", "true", "yes", "on"):
        return True
    if text in ("0", "false", "no", "off"):
        return False
    raise ValueError(f"{name}: expected 1 or 0, got {text!r}")


def configurations_off() -> frozenset[str]:
    """Return the names of the webhook configurations that the environment switches off."""
    return frozenset(
        name
        for variable, names in SWITCHES.items()
        if not flag(variable, default=True)
        for name in names
    )


def settings_from_environment() -> tuple[AdmissionSettings, bool]:
    """Return the pod webhooks' settings and whether quotas are compared as KAI does.

    GPU sharing is on by default, unlike in KAI, because the embedded cluster supports it.
    """
    settings = AdmissionSettings(
        scheduler_name=os.environ.get("KAIWEB_SCHEDULER_NAME", SCHEDULER_NAME),
        gpu_sharing=flag("KAIWEB_GPU_SHARING", default=True),
        hami_core=flag("KAIWEB_HAMI_CORE", default=False),
        block_visible_devices=flag("KAIWEB_BLOCK_NVIDIA_VISIBLE_DEVICES", default=False),
        fraction_runtime_class=os.environ.get("KAIWEB_GPU_FRACTION_RUNTIME_CLASS", "nvidia"),
    )
    return settings, flag("KAIWEB_QUOTA_VALIDATION", default=False)

"""Settings of the pod webhooks, with KAI's defaults."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from kube.keys import SCHEDULER_NAME

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH = 7


def random_suffix() -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(SUFFIX_LENGTH))


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionSettings:
    """Settings of the pod webhooks.

    Attributes
    ----------
    gpu_sharing : whether fractions and device memory may be requested
    hami_core : whether the memory limit of the isolation library is set
    block_visible_devices : whether pods that set NVIDIA_VISIBLE_DEVICES are refused
    fraction_runtime_class : runtime class of fraction pods that name none; "" sets none
    suffix : returns the random part of ConfigMap names
    """

    scheduler_name: str = SCHEDULER_NAME
    gpu_sharing: bool = False
    hami_core: bool = False
    block_visible_devices: bool = False
    fraction_runtime_class: str = "nvidia"
    suffix: Callable[[], str] = random_suffix

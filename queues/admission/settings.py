"""Switches of the pod webhooks, with KAI's defaults."""

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
    """What the pod webhooks do.

    Attributes
    ----------
    gpu_sharing : fractions and device memory are allowed at all
    hami_core : the memory limit of the isolation library is passed on
    block_visible_devices : nobody sets NVIDIA_VISIBLE_DEVICES by hand
    fraction_runtime_class : given to fraction pods that name none; "" = none is given
    suffix : makes the random part of ConfigMap names
    """

    scheduler_name: str = SCHEDULER_NAME
    gpu_sharing: bool = False
    hami_core: bool = False
    block_visible_devices: bool = False
    fraction_runtime_class: str = "nvidia"
    suffix: Callable[[], str] = random_suffix

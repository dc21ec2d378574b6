"""Amounts of resources as text, for messages."""

from __future__ import annotations

from math import inf

from scheduler.core.cluster.axis import CPU_ROW, GPU_ROW, MEMORY_ROW, MIG_PREFIX, STORAGE
from scheduler.core.cluster.inputs import PODS

#: Internal units in the unit that messages use: cores, GB, GPUs.
_UNIT_SIZE = {CPU_ROW: 1000.0, MEMORY_ROW: 1e9, GPU_ROW: 1.0}


def human_amount(amount: float, row: int) -> str:
    """Format CPU in cores, memory in GB, or GPUs; cut (not rounded) to three decimals.

    Parameters
    ----------
    amount : in millicores, bytes or GPUs
    row : CPU_ROW, MEMORY_ROW or GPU_ROW

    Examples
    --------
    1500 millicores gives "1.5", infinity gives "Unlimited".
    """
    if amount == inf:
        return "Unlimited"
    text = f"{amount / _UNIT_SIZE[row]:.6f}"[:-3]
    return text.rstrip("0").rstrip(".")


def plain_amount(resource: str, amount: float) -> str:
    """Format an amount of any other resource: a number of items, or bytes of storage.

    The axis holds extended resources and huge pages in thousandths; this prints whole items.
    """
    is_whole = resource in (PODS, *STORAGE) or resource.startswith(MIG_PREFIX)
    return f"{amount if is_whole else amount / 1000:.15g}"

"""The array types of the core, and the one alias for the three resources that queues divide."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: Exactly three numbers: CPU in millicores, memory in bytes, GPUs in devices. Not to be confused with
#: `RowAmounts` of `cluster/classes.py`, which covers all resources of the axis.
Amounts = Sequence[float]

#: Positions in `Amounts`.
CPU_INDEX, MEMORY_INDEX, GPU_INDEX = 0, 1, 2

#: Amounts that differ by no more than this are equal. Sums of parts of a GPU carry float noise (0.1 + 0.2
#: is more than 0.3), so whatever compares an amount with a limit, quota or share allows for it.
TOLERANCE = 1e-6

NO_AMOUNTS: tuple[float, float, float] = (0.0, 0.0, 0.0)


def is_above(amount: float, bound: float) -> bool:
    """Return whether an amount exceeds a bound by more than float noise."""
    return amount > bound + TOLERANCE

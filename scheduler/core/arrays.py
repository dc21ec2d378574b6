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

NO_AMOUNTS: tuple[float, float, float] = (0.0, 0.0, 0.0)

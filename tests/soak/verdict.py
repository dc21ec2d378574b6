"""What grew in a soak run."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

#: The part of a run that counts as warm-up.
WARM_UP = 0.25
MAX_MEMORY_GROWTH = 0.05
MAX_CYCLE_GROWTH = 0.2
#: Growth of a small process or a short cycle is noise up to this.
MEMORY_NOISE_MIB, CYCLE_NOISE_MS = 4.0, 20.0


@dataclass(frozen=True, slots=True)
class Sample:
    """The state at one moment.

    Attributes
    ----------
    at_s : seconds since the start
    memory_mib : by process
    rows : by table
    cycle_ms : median of the last cycles
    """

    at_s: float
    memory_mib: dict[str, float]
    rows: dict[str, int]
    cycle_ms: float


def report(samples: Sequence[Sample]) -> list[str]:
    """Print what was measured after the warm-up; return what grew."""
    warm = samples[int(len(samples) * WARM_UP) :]
    third = max(1, len(warm) // 3)
    early, late = warm[:third], warm[-third:]
    faults = []
    print(f"{'process':<24}{'early MiB':>10}{'late MiB':>10}{'growth':>9}")
    for name in sorted(late[-1].memory_mib):
        before = statistics.median(sample.memory_mib.get(name, 0.0) for sample in early)
        after = statistics.median(sample.memory_mib.get(name, 0.0) for sample in late)
        growth = after / before - 1 if before else 0.0
        print(f"{name:<24}{before:10.1f}{after:10.1f}{growth:9.1%}")
        if growth > MAX_MEMORY_GROWTH and after - before > MEMORY_NOISE_MIB:
            faults.append(f"memory of {name} grew from {before:.0f} to {after:.0f} MiB")
    before, after = (statistics.median(s.cycle_ms for s in part) for part in (early, late))
    print(f"cycle: {before:.0f} ms early, {after:.0f} ms late")
    if after > before * (1 + MAX_CYCLE_GROWTH) and after - before > CYCLE_NOISE_MS:
        faults.append(f"cycles grew from {before:.0f} to {after:.0f} ms")
    for table, rows in sorted(late[-1].rows.items()):
        if rows > 1.2 * max(early[0].rows.get(table, 0), 100):
            print(f"table {table}: {early[0].rows.get(table, 0)} -> {rows} rows")
    print("\n".join(faults) or "nothing grew")
    return faults

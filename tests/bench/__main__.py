"""`make bench`: the core on the standard workloads, grouping, binds, and a burst from submission to bound."""

from __future__ import annotations

import subprocess
import sys

from tests.bench import binds, burst, grouping, latency

CORE = (
    ("fill", "nodes=500"),
    ("fill", "nodes=1000"),
    ("gang_fill", "nodes=512", "jobs=8"),
    ("reclaim_half", "nodes=200"),
    ("reclaim_large_job", "nodes=500"),
    ("consolidate_nodes", "nodes=100"),
    ("reclaim_unschedulable", "nodes=100"),
)
#: Pods of many sizes, two in five asking for part of a GPU.
MIXED = ("generated", "--nodes", "1213", "--strategy", "binpack,fragmentation")


def main() -> None:
    """Run all measurements one after the other."""
    for workload in CORE:
        subprocess.run([sys.executable, "-m", "kaiweb", "bench", *workload], check=True)
    subprocess.run([sys.executable, "-m", "kaiweb", "replay", *MIXED], check=True)
    print(grouping.measure())
    print(binds.measure())
    print(latency.measure())
    print(burst.measure())


if __name__ == "__main__":
    main()

"""`make bench`: the core on the standard workloads, grouping, binds, and a burst from submission to bound."""

from __future__ import annotations

import subprocess
import sys

from tests.bench import binds, burst, core, grouping, latency

#: Pods of many sizes, two in five asking for part of a GPU.
MIXED = ("generated", "--nodes", "1213", "--strategy", "binpack,fragmentation")


def main() -> None:
    """Run all measurements one after the other; end with an error if the core got slower."""
    slower = core.main([])
    subprocess.run([sys.executable, "-m", "kaiweb", "bench", "opening"], check=True)
    subprocess.run([sys.executable, "-m", "kaiweb", "replay", *MIXED], check=True)
    print(grouping.measure())
    binds.print_measurement()
    latency.print_all()
    burst.print_all()
    sys.exit(slower)


if __name__ == "__main__":
    main()

"""`make bench`: the core and its packing against their goals, grouping, binds, and a burst from submission to bound."""

from __future__ import annotations

import sys

from tests.bench import binds, burst, core, floor, grouping, latency, packing


def main() -> None:
    """Run all measurements one after the other; end with an error if the core got slower."""
    slower = core.main([])
    packing.main([])
    print(grouping.measure())
    binds.print_measurement()
    floor.print_measurement()
    latency.print_all()
    burst.print_all()
    sys.exit(slower)


if __name__ == "__main__":
    main()

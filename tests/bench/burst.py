"""4,000 one-GPU pods at once on 500 nodes with 8 GPUs each, from submission to bound: `python -m tests.bench.burst`.

    python -m tests.bench.burst [embedded|kube-apiserver ...] [--pods 4000]

Prints the seconds beside their goal, the waits of the pods, and what a pod costs each process in requests and processor
time until everything about it is written. Those costs hardly depend on what else the machine does; the seconds do.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Sequence

from tests.bench.lanes import Lane, measured_stack
from tests.bench.submit import create_all, gateway_to, gpu_pod, make_namespace
from tests.bench.waits import Waits, percentile
from tests.real_cluster.build import ClusterUnavailableError

GPUS = 8
PODS = 4000
#: Seconds until all pods are bound, on a quiet machine with two cores.
GOALS_S = {Lane.EMBEDDED: 20.0, Lane.REAL: 12.0}
#: What KAI needs for the same, on this kind of machine (its own scale test).
KAI_SECONDS = 398
TIMEOUT_S = 900.0


def measure(lane: Lane, pods: int = PODS) -> Iterator[str]:
    """Run the burst once; yield the lines to print."""
    nodes = pods // GPUS
    load = os.getloadavg()[0]
    with measured_stack(lane, {"KAIWEB_NODES": f"{nodes}x{GPUS}"}) as (stack, meter):
        gateway = gateway_to(stack)
        make_namespace(gateway, "burst")
        waits = Waits(gateway, "burst")
        waits.follow()
        bodies = [gpu_pod(f"p{n:04}", "burst") for n in range(pods)]
        meter.wait_until_settled()
        before, started = meter.read(), time.monotonic()
        created = create_all(gateway, bodies, waits.created)
        bound = waits.wait(pods, TIMEOUT_S) - started
        settled = meter.wait_until_settled() - started
        used = meter.read().since(before)
    goal = f"; goal {GOALS_S[lane]:.0f} s" if pods == PODS else ""
    yield (
        f"burst, {lane}: {pods} pods on {nodes} nodes created in {created:.1f} s, all bound after {bound:.1f} s"
        f"{goal}; KAI {KAI_SECONDS} s ({pods / bound:.0f} pods/s, load of the machine before {load:.1f})"
    )
    waited = waits.sorted_ms()
    yield (
        f"  created to bound p50 {percentile(waited, 0.5) / 1000:.2f} s, p95 {percentile(waited, 0.95) / 1000:.2f} s; "
        f"statuses and events written after {settled:.1f} s"
    )
    yield from used.lines(pods)


def print_all(lanes: Sequence[Lane] = tuple(Lane), pods: int = PODS) -> None:
    """Measure and print lane by lane; name what cannot run here."""
    for lane in lanes:
        try:
            for line in measure(lane, pods):
                print(line, flush=True)
        except ClusterUnavailableError as error:
            print(f"burst, {lane}: not measured: {error}")


def main() -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("lanes", nargs="*", type=Lane, default=list(Lane))
    parser.add_argument("--pods", type=int, default=PODS)
    options = parser.parse_args()
    print_all(options.lanes, options.pods)


if __name__ == "__main__":
    main()

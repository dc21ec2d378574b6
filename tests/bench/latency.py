"""How long a new pod waits to be bound while the demo stream keeps the cluster busy: `python -m tests.bench.latency`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence

from kube.gateway import Gateway
from kube.resources import PODS
from tests.bench.lanes import Lane, measured_stack
from tests.bench.submit import gateway_to, gpu_pod, make_namespace
from tests.bench.waits import Waits, percentile
from tests.real_cluster.build import ClusterUnavailableError

WARM_UP_S = 40.0
PODS_MEASURED = 60
PAUSE_S = 0.5
TIMEOUT_S = 60.0
GOAL_P95_MS = 60.0
#: Kept free of demo work, so that the path of a pod is measured and not a full cluster.
FREE_NODE = "gpu-lab-worker"


def measure(lane: Lane) -> Iterator[str]:
    """Submit single pods beside the stream; yield the lines to print."""
    load = os.getloadavg()[0]
    with measured_stack(lane, {"DEMO": "1"}) as (stack, meter):
        gateway = gateway_to(stack)
        make_namespace(gateway, "latency")
        time.sleep(WARM_UP_S)
        before, started = meter.read(), time.monotonic()
        waited = _waits(gateway)
        seconds = time.monotonic() - started
        used = meter.read().since(before)
    yield (
        f"latency with demo stream, {lane}: pod created to bound p50 {percentile(waited, 0.5):.0f} ms, "
        f"p95 {percentile(waited, 0.95):.0f} ms (goal {GOAL_P95_MS:.0f} ms), max {waited[-1]:.0f} ms "
        f"({len(waited)} pods, load of the machine before {load:.1f})"
    )
    busiest = sorted(used.cpu_s.items(), key=lambda item: -item[1])[:6]
    shares = ", ".join(f"{name} {100 * cpu_s / seconds:.0f} %" for name, cpu_s in busiest)
    rate = sum(used.requests.values()) / seconds
    yield f"  meanwhile {rate:.0f} requests/s; of a processor: {shares}"


def _waits(gateway: Gateway) -> list[float]:
    waits = Waits(gateway, "latency")
    waits.follow()
    for number in range(PODS_MEASURED):
        name = f"p{number}"
        body = gpu_pod(name, "latency")
        # The node has eight devices, so each pod goes again once it is bound.
        body["spec"]["nodeSelector"] = {"kubernetes.io/hostname": FREE_NODE}
        waits.created[name] = time.monotonic()
        gateway.create(PODS, body, namespace="latency")
        waits.wait(number + 1, TIMEOUT_S)
        time.sleep(PAUSE_S)
        gateway.delete(PODS, name, namespace="latency", grace_period_s=0)
    return waits.sorted_ms()


def print_all(lanes: Sequence[Lane] = tuple(Lane)) -> None:
    """Measure and print lane by lane; name what cannot run here."""
    for lane in lanes:
        try:
            for line in measure(lane):
                print(line, flush=True)
        except ClusterUnavailableError as error:
            print(f"latency, {lane}: not measured: {error}")


if __name__ == "__main__":
    print_all([Lane(name) for name in sys.argv[1:]] or list(Lane))

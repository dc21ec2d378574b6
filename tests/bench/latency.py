"""How long a new pod waits to be bound while the demo stream keeps the cluster busy."""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from pathlib import Path

from kube.gateway import Gateway
from kube.objects.pod import Pod
from kube.resources import PODS
from tests.bench.submit import gateway_to, gpu_pod, make_namespace
from tests.integration.stack import running_stack

WARM_UP_S = 40.0
PODS_MEASURED = 60
PAUSE_S = 0.5
#: Kept free of demo work, so that the path of a pod is measured and not a full cluster.
FREE_NODE = "gpu-lab-worker"


def measure() -> str:
    """Submit single pods beside the stream; return the line to print."""
    with (
        tempfile.TemporaryDirectory(prefix="kaiweb-bench-") as folder,
        running_stack(Path(folder), {"DEMO": "1"}) as stack,
    ):
        gateway = gateway_to(stack)
        make_namespace(gateway, "latency")
        time.sleep(WARM_UP_S)
        waits = sorted(_waits(gateway))
    if len(waits) < PODS_MEASURED:
        return f"latency: only {len(waits)} of {PODS_MEASURED} pods were bound"
    p95 = waits[int(len(waits) * 0.95) - 1]
    return (
        f"latency with demo stream: pod created to bound p50 {statistics.median(waits):.0f} ms, "
        f"p95 {p95:.0f} ms, max {waits[-1]:.0f} ms ({len(waits)} pods)"
    )


def _waits(gateway: Gateway) -> list[float]:
    created: dict[str, float] = {}
    bound: dict[str, float] = {}
    version = gateway.list(PODS, as_type=Pod, namespace="latency").resource_version

    def follow() -> None:
        for event in gateway.watch(
            PODS, as_type=Pod, resource_version=version, namespace="latency", timeout_s=60
        ):
            if event.object.spec.node_name:
                bound.setdefault(event.object.metadata.name, time.monotonic())
                if len(bound) == PODS_MEASURED:
                    return

    watcher = threading.Thread(target=follow, daemon=True)
    watcher.start()
    for number in range(PODS_MEASURED):
        name = f"p{number}"
        body = gpu_pod(name, "latency")
        # The node has eight devices, so each pod goes again once it is bound.
        body["spec"]["nodeSelector"] = {"kubernetes.io/hostname": FREE_NODE}
        created[name] = time.monotonic()
        gateway.create(PODS, body, namespace="latency")
        time.sleep(PAUSE_S)
        if name in bound:
            gateway.delete(PODS, name, namespace="latency", grace_period_s=0)
    watcher.join(timeout=30)
    return [(bound[name] - created[name]) * 1000 for name in bound]

"""4,000 one-GPU pods at once on 500 nodes with 8 GPUs each, from submission to bound."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from tests.bench.submit import create_all, gateway_to, gpu_pod, make_namespace, wait_for_pods
from tests.integration.stack import running_stack

NODES, GPUS = 500, 8
PODS = NODES * GPUS
#: What KAI needs for the same, on this kind of machine (its own scale test).
KAI_SECONDS = 398


def measure() -> str:
    """Run the burst once; return the line to print."""
    with (
        tempfile.TemporaryDirectory(prefix="kaiweb-bench-") as folder,
        running_stack(Path(folder), {"KAIWEB_NODES": f"{NODES}x{GPUS}"}) as stack,
    ):
        gateway = gateway_to(stack)
        make_namespace(gateway, "burst")
        bodies = [gpu_pod(f"p{n:04}", "burst") for n in range(PODS)]
        started = time.monotonic()
        created = create_all(gateway, bodies)
        wait_for_pods(gateway, "burst", lambda pod: bool(pod.spec.node_name), PODS)
        bound = time.monotonic() - started
    return (
        f"burst: {PODS} pods on {NODES} nodes created in {created:.1f} s, all bound after "
        f"{bound:.1f} s ({PODS / bound:.0f} pods/s; KAI {KAI_SECONDS} s)"
    )

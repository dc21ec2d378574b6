"""How many pods of mixed kinds the pod grouper handles per second in the sandbox."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from kube.gateway import Gateway
from kube.resources import JOBS, REPLICASETS, Resource
from tests.bench.submit import create_all, gateway_to, gpu_pod, make_namespace, wait_for_pods
from tests.integration.stack import running_stack

PODS = 10_000
PODS_PER_OWNER = 20
NAMESPACE = "mixed"


def measure() -> str:
    """Create pods with and without owners; return the line to print."""
    with (
        tempfile.TemporaryDirectory(prefix="kaiweb-bench-") as folder,
        running_stack(Path(folder), {"KAIWEB_NODES": "none"}) as stack,
    ):
        gateway = gateway_to(stack)
        make_namespace(gateway, NAMESPACE)
        bodies = _bodies(gateway)
        before = _memory_mib(stack.pids()["controllers"])
        started = time.monotonic()
        created = create_all(gateway, bodies)
        wait_for_pods(
            gateway, NAMESPACE, lambda pod: "pod-group-name" in pod.metadata.annotations, PODS
        )
        seconds = time.monotonic() - started
        after = _memory_mib(stack.pids()["controllers"])
    return (
        f"grouping: {PODS} pods of mixed kinds created in {created:.1f} s, grouped after "
        f"{seconds:.1f} s ({PODS / seconds:.0f} pods/s), memory {before:.0f} -> {after:.0f} MiB"
    )


def _bodies(gateway: Gateway) -> list[dict[str, Any]]:
    """A third of the pods stand alone, the others belong to jobs and replica sets."""
    bodies = []
    owners = [
        _owner(gateway, JOBS if n % 2 else REPLICASETS, f"owner-{n}")
        for n in range(PODS * 2 // 3 // PODS_PER_OWNER)
    ]
    for number in range(PODS):
        body = gpu_pod(f"p{number:05}", NAMESPACE)
        owner = number // PODS_PER_OWNER
        if owner < len(owners):
            body["metadata"]["ownerReferences"] = [owners[owner]]
        bodies.append(body)
    return bodies


def _owner(gateway: Gateway, resource: Resource, name: str) -> dict[str, Any]:
    """Create an owner whose own controller makes no pods, and return the reference to it."""
    labels = {"owner": name}
    template = {"metadata": {"labels": labels}, "spec": gpu_pod(name, NAMESPACE)["spec"]}
    spec: dict[str, Any] = {"template": template}
    if resource is JOBS:
        template["spec"]["restartPolicy"] = "Never"
        spec |= {"suspend": True, "parallelism": 1}
    else:
        spec |= {"replicas": 0, "selector": {"matchLabels": labels}}
    made = gateway.create(resource, {"metadata": {"name": name}, "spec": spec}, namespace=NAMESPACE)
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": name,
        "uid": made["metadata"]["uid"],
    }


def _memory_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0

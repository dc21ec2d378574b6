"""How fast pods of mixed kinds are grouped on the embedded cluster: `python -m tests.bench.grouping [PODS]`.

Starts an API server of its own, fills it, then starts the pod grouper and waits until every pod names its group.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml

from kube.client import connect
from kube.errors import KubeError
from kube.gateway import Gateway, PatchType
from kube.objects.pod import Pod
from kube.resources import CRDS, JOBS, PODGROUPS, PODS, STATEFULSETS
from queues.controllers.assembly import Controllers, Options
from tests.fakes.sandbox_server import sandbox_server

NAMESPACE = "default"
DEFINITIONS = Path(__file__).resolve().parents[2] / "deploy" / "crds"
PER_WORKLOAD = 20
SCHEDULED = {"schedulerName": "kai-scheduler", "containers": [{"name": "c", "image": "pause"}]}


def measure(count: int = 10_000) -> str:
    """Start everything, group `count` pods, return the figures."""
    with tempfile.TemporaryDirectory() as home, sandbox_server(Path(home)) as server:
        gateway = connect(server.kubeconfig)
        _define(gateway)
        started = time.monotonic()
        _fill(gateway, count)
        seconds = time.monotonic() - started
        return f"{report(gateway, count)} (created in {seconds:.1f} s)"


def report(gateway: Gateway, count: int) -> str:
    """Group all pods and return the figures."""
    controllers = Controllers(gateway, Options(keeps_status=False))
    started = time.monotonic()
    cpu = time.process_time()
    controllers.start()
    memory = [_memory_mib()]
    try:
        while (done := _grouped(controllers)) < count:
            memory.append(_memory_mib())
            if time.monotonic() - started > 300:
                break
            time.sleep(0.1)
        seconds = time.monotonic() - started
    finally:
        controllers.stop.set()
    groups = len(controllers.store.view().kinds[PODGROUPS])
    return (
        f"grouping: {done} pods into {groups} groups in {seconds:.1f} s = {done / seconds:.0f} pods/s, "
        f"{time.process_time() - cpu:.1f} s of CPU, peak memory {_memory_mib()} MiB ({memory[len(memory) // 2]} MiB half way)"
    )


def _grouped(controllers: Controllers) -> int:
    pods = controllers.store.view().of(PODS, Pod).values()
    return sum("pod-group-name" in pod.metadata.annotations for pod in pods)


def _define(gateway: Gateway) -> None:
    for file in sorted(DEFINITIONS.glob("*.yaml")):
        for body in yaml.safe_load_all(file.read_text()):
            gateway.patch(
                CRDS, body["metadata"]["name"], body,
                patch_type=PatchType.APPLY, field_manager="bench", force=True,
            )  # fmt: skip
    for _ in range(100):
        try:
            gateway.list(PODGROUPS, as_type=dict)
        except KubeError:
            time.sleep(0.1)
        else:
            return


def _fill(gateway: Gateway, count: int) -> None:
    """Make a third gangs, a third members of StatefulSets, a third pods of their own."""
    makers: list[Callable[[int], None]] = []
    workloads = count // 3 // PER_WORKLOAD
    makers += [_job(gateway)] * workloads + [_stateful_set(gateway)] * workloads
    alone = count - len(makers) * PER_WORKLOAD
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(make, index) for index, make in enumerate(makers)]:
            done.result()
        for done in [pool.submit(_pod, gateway, f"alone-{index}", None) for index in range(alone)]:
            done.result()


def _job(gateway: Gateway) -> Callable[[int], None]:
    def make(index: int) -> None:
        spec = {"suspend": True, "template": {"spec": {"restartPolicy": "Never", **SCHEDULED}}}
        annotations = {"kai.scheduler/batch-min-member": str(PER_WORKLOAD)}
        metadata = {"name": f"gang-{index}", "annotations": annotations}
        body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
        _members(gateway, gateway.create(JOBS, body, namespace=NAMESPACE))

    return make


def _stateful_set(gateway: Gateway) -> Callable[[int], None]:
    def make(index: int) -> None:
        labels = {"app": f"set-{index}"}
        spec = {
            "replicas": 0,
            "serviceName": "s",
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": SCHEDULED},
        }
        metadata = {"name": f"set-{index}"}
        body = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec}
        _members(gateway, gateway.create(STATEFULSETS, body, namespace=NAMESPACE))

    return make


def _members(gateway: Gateway, owner: dict[str, Any]) -> None:
    for index in range(PER_WORKLOAD):
        _pod(gateway, f"{owner['metadata']['name']}-{index}", owner)


def _pod(gateway: Gateway, name: str, owner: dict[str, Any] | None) -> None:
    metadata: dict[str, Any] = {"name": name, "labels": {"kai.scheduler/queue": "default-queue"}}
    if owner is not None:
        metadata["ownerReferences"] = [
            {
                "apiVersion": owner["apiVersion"],
                "kind": owner["kind"],
                "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"],
            }
        ]
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": SCHEDULED}
    gateway.create(PODS, body, namespace=NAMESPACE)


def _memory_mib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    print(measure(*(int(argument) for argument in sys.argv[1:2])))

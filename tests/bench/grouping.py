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
from kube.gateway import Gateway
from kube.objects.pod import Pod
from kube.resources import (
    DEPLOYMENTS,
    JOBS,
    PODGROUPS,
    PODS,
    REPLICASETS,
    STATEFULSETS,
    Resource,
)
from queues.controllers.assembly import Controllers, Options
from queues.grouping.engine.lookups import KARTAS
from tests.fakes.sandbox_server import sandbox_server
from tests.queues.live_cluster.conftest import define
from tests.queues.live_cluster.objects import definitions_of

NAMESPACE = "default"
DEFINITIONS = Path(__file__).resolve().parents[2] / "deploy" / "crds"
KARTA = Path(__file__).resolve().parents[1] / "queues" / "manifests" / "karta.yaml"
PYTORCH_JOBS = Resource(group="kubeflow.org", version="v1", plural="pytorchjobs", kind="PyTorchJob")
SOLVERS = Resource(group="example.test", version="v1", plural="solvers", kind="Solver")
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
    memory = {0: _memory_mib()}
    try:
        while (grouped := _grouped(controllers)) < count:
            memory.setdefault(grouped * 4 // count, _memory_mib())
            if time.monotonic() - started > 300:
                break
            time.sleep(0.1)
        seconds = time.monotonic() - started
    finally:
        controllers.stop.set()
    groups = len(controllers.store.view().kinds[PODGROUPS])
    return (
        f"grouping: {grouped} pods into {groups} groups in {seconds:.1f} s = {grouped / seconds:.0f} pods/s, "
        f"{time.process_time() - cpu:.1f} s of CPU, memory by quarter "
        f"{', '.join(str(memory[quarter]) for quarter in sorted(memory))}, {_memory_mib()} MiB"
    )


def _grouped(controllers: Controllers) -> int:
    pods = controllers.store.view().of(PODS, Pod).values()
    return sum("pod-group-name" in pod.metadata.annotations for pod in pods)


def _define(gateway: Gateway) -> None:
    own = [body for file in sorted(DEFINITIONS.glob("*.yaml")) for body in _documents(file)]
    kartas = [body for body in _documents(KARTA) if body["kind"] == "Karta"]
    third = [{"apiVersion": r.api_version, "kind": r.kind} for r in (PYTORCH_JOBS, SOLVERS)]
    define(gateway, [*own, *definitions_of([*kartas, *third])])
    for body in kartas:
        gateway.create(KARTAS, body)


def _documents(file: Path) -> list[dict[str, Any]]:
    return [body for body in yaml.safe_load_all(file.read_text()) if body]


def _fill(gateway: Gateway, count: int) -> None:
    """Make five workloads of each kind in turn, then pods of their own for a quarter of all."""
    makers = (_job, _stateful_set, _pytorch_job, _deployment, _solver)
    workloads = count * 3 // 4 // PER_WORKLOAD
    with ThreadPoolExecutor(8) as pool:
        for future in [
            pool.submit(makers[index % len(makers)], gateway, index) for index in range(workloads)
        ]:
            future.result()
        alone = range(count - workloads * PER_WORKLOAD)
        for future in [pool.submit(_pod, gateway, f"alone-{index}", None) for index in alone]:
            future.result()


def _job(gateway: Gateway, index: int) -> None:
    spec = {"suspend": True, "template": {"spec": {"restartPolicy": "Never", **SCHEDULED}}}
    annotations = {"kai.scheduler/batch-min-member": str(PER_WORKLOAD)}
    metadata = {"name": f"gang-{index}", "annotations": annotations}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
    _members(gateway, gateway.create(JOBS, body, namespace=NAMESPACE))


def _stateful_set(gateway: Gateway, index: int) -> None:
    body = _idle("StatefulSet", f"set-{index}", serviceName="s")
    _members(gateway, gateway.create(STATEFULSETS, body, namespace=NAMESPACE))


def _deployment(gateway: Gateway, index: int) -> None:
    """Make a Deployment and its ReplicaSet: two owners to walk, a pod group per pod."""
    top = gateway.create(DEPLOYMENTS, _idle("Deployment", f"web-{index}"), namespace=NAMESPACE)
    body = _idle("ReplicaSet", f"web-{index}")
    body["metadata"]["ownerReferences"] = [_reference(top)]
    _members(gateway, gateway.create(REPLICASETS, body, namespace=NAMESPACE))


def _pytorch_job(gateway: Gateway, index: int) -> None:
    """Make a job whose workers come in segments of four."""
    annotations = {"kai.scheduler/segment-size": "4"}
    template = {"metadata": {"annotations": annotations}, "spec": SCHEDULED}
    worker = {"replicas": PER_WORKLOAD, "template": template}
    body = {
        "apiVersion": PYTORCH_JOBS.api_version,
        "kind": PYTORCH_JOBS.kind,
        "metadata": {"name": f"torch-{index}"},
        "spec": {"pytorchReplicaSpecs": {"Worker": worker}},
    }
    created = gateway.create(PYTORCH_JOBS, body, namespace=NAMESPACE)
    role = "training.kubeflow.org/replica-"
    _members(gateway, created, lambda i: {f"{role}type": "worker", f"{role}index": str(i)})


def _solver(gateway: Gateway, index: int) -> None:
    """Make an object of a kind that only a Karta describes."""
    spec = {"lead": {"replicas": 1}, "helper": {"replicas": PER_WORKLOAD - 1}}
    body = {
        "apiVersion": SOLVERS.api_version,
        "kind": SOLVERS.kind,
        "metadata": {"name": f"solver-{index}"},
        "spec": spec,
    }
    created = gateway.create(SOLVERS, body, namespace=NAMESPACE)
    _members(gateway, created, lambda i: {"example.test/role": "helper" if i else "lead"})


def _idle(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    """Return a workload of the apps group that asks for no pods: its pods are made here."""
    labels = {"app": name}
    body = {
        "replicas": 0,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": SCHEDULED},
        **spec,
    }
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": body}


def _members(
    gateway: Gateway,
    owner: dict[str, Any],
    labels: Callable[[int], dict[str, str]] = lambda _: {},
) -> None:
    for index in range(PER_WORKLOAD):
        _pod(gateway, f"{owner['metadata']['name']}-{index}", owner, labels(index))


def _pod(
    gateway: Gateway,
    name: str,
    owner: dict[str, Any] | None,
    labels: dict[str, str] | None = None,
) -> None:
    queue = {"kai.scheduler/queue": "default-queue"}
    metadata: dict[str, Any] = {"name": name, "labels": {**queue, **(labels or {})}}
    if owner is not None:
        metadata["ownerReferences"] = [_reference(owner)]
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": SCHEDULED}
    gateway.create(PODS, body, namespace=NAMESPACE)


def _reference(owner: dict[str, Any]) -> dict[str, Any]:
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }


def _memory_mib() -> int:
    """Return what this process holds now, not what it held at most."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() >> 20


if __name__ == "__main__":
    print(measure(*(int(argument) for argument in sys.argv[1:2])))

"""What the API server alone needs for a pod, whoever schedules it: `python -m tests.bench.floor`.

An empty kube-apiserver without webhooks and watches gets, from 16 clients, the requests without which no pod is bound (create
the pod, create its PodGroup, name the group on the pod, create the BindRequest, bind), and then those that report it (status
and condition of the bind, two events, start and status of the PodGroup, the kubelet's status). From their processor time
follows how soon 4,000 pods can be bound at best on two processors that do nothing else.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

from kube.client import connect
from kube.gateway import Gateway, PatchType
from kube.keys import LAST_START, POD_GROUP
from kube.link import Target
from kube.resources import BINDREQUESTS, EVENTS, NODES, PODGROUPS, PODS
from tests.bench.binds import children_cpu_s
from tests.bench.submit import CLIENTS, gpu_pod, make_namespace
from tests.real_cluster.build import ClusterUnavailableError, ensure_binaries
from tests.real_cluster.cluster import running_cluster
from tests.real_cluster.installation import DEPLOY, run_kubectl

PODS_MEASURED = 500
PODS_PROMISED, PROCESSORS = 4000, 2
NAMESPACE = "floor"


def bind(gateway: Gateway, name: str) -> None:
    """Send the five requests after which a pod has its node."""
    uid = gateway.create(PODS, gpu_pod(name, NAMESPACE), namespace=NAMESPACE)["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}
    meta = {"name": name, "ownerReferences": [owner]}
    _create(gateway, PODGROUPS, meta, {"minMember": 1, "queue": "default-queue"})
    grouped = {"metadata": {"annotations": {POD_GROUP: name}}}
    gateway.patch(PODS, name, grouped, namespace=NAMESPACE)
    spec = {"podName": name, "selectedNode": NAMESPACE, "receivedResourceType": "Regular"}
    _create(gateway, BINDREQUESTS, meta, spec | {"receivedGPU": {"count": 1, "portion": "1.00"}})
    gateway.bind(NAMESPACE, name, pod_uid=uid, node=NAMESPACE)


def report(gateway: Gateway, name: str) -> None:
    """Send the seven requests that report a bind and its effects."""
    status: dict[str, Any] = {"status": {"phase": "Succeeded"}}
    gateway.patch(BINDREQUESTS, name, status, namespace=NAMESPACE, sub="status")
    _patch_pod(gateway, name, {"conditions": [{"type": "PodBound", "status": "True"}]})
    for reason in ("Bound", "Scheduled"):
        about = {"kind": "Pod", "namespace": NAMESPACE, "name": name}
        meta = {"name": f"{name}.{reason.lower()}", "namespace": NAMESPACE}
        body = {"metadata": meta, "involvedObject": about, "reason": reason, "type": "Normal"}
        gateway.create(EVENTS, body, namespace=NAMESPACE)
    started = {"metadata": {"annotations": {LAST_START: "2026-01-01T00:00:00Z"}}}
    gateway.patch(PODGROUPS, name, started, namespace=NAMESPACE)
    held = {"status": {"resourcesStatus": {"allocated": {"nvidia.com/gpu": "1"}}}}
    gateway.patch(PODGROUPS, name, held, namespace=NAMESPACE, sub="status")
    _patch_pod(gateway, name, {"phase": "Running"})


def measure() -> str:
    """Return the lines to print."""
    with (
        tempfile.TemporaryDirectory(prefix="kaiweb-bench-") as folder,
        running_cluster(Path(folder), ensure_binaries()) as cluster,
        closing(connect(Target(kubeconfig=cluster.kubeconfig, pool_size=CLIENTS))) as gateway,
    ):
        run_kubectl(cluster, "apply", "--server-side", "-f", str(DEPLOY / "crds"))
        make_namespace(gateway, NAMESPACE)
        gateway.create(NODES, {"metadata": {"name": NAMESPACE}})
        _for_all(gateway, bind, "warm-up", 50)
        needed, report_costs = _costs(gateway, bind), _costs(gateway, report)
    return "\n".join(
        [
            _line("binding a pod (5 requests)", needed),
            _line("reporting it (7 requests)", report_costs),
            _line("both", {name: needed[name] + report_costs[name] for name in needed}),
        ]
    )


def _line(what: str, costs_ms: Mapping[str, float]) -> str:
    parts = ", ".join(f"{name} {used:.1f} ms" for name, used in costs_ms.items())
    floor_s = sum(costs_ms.values()) / 1000 * PODS_PROMISED / PROCESSORS
    return (
        f"floor: {what} costs {parts}; {PODS_PROMISED} pods take {floor_s:.0f} s of "
        f"{PROCESSORS} processors that do nothing else"
    )


def _costs(gateway: Gateway, work: Callable[[Gateway, str], None]) -> dict[str, float]:
    """Return the milliseconds of processor time for each pod: of the servers, and of the client."""
    before = {"client": time.process_time(), **children_cpu_s()}
    _for_all(gateway, work, "p", PODS_MEASURED)
    after = {"client": time.process_time(), **children_cpu_s()}
    return {name: 1000 * (used - before[name]) / PODS_MEASURED for name, used in after.items()}


def _for_all(
    gateway: Gateway, work: Callable[[Gateway, str], None], prefix: str, count: int
) -> None:
    with ThreadPoolExecutor(CLIENTS) as pool:
        for done in [pool.submit(work, gateway, f"{prefix}-{n}") for n in range(count)]:
            done.result()


def _create(gateway: Gateway, resource: Any, meta: dict[str, Any], spec: dict[str, Any]) -> None:
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta}
    gateway.create(resource, {**body, "spec": spec}, namespace=NAMESPACE)


def _patch_pod(gateway: Gateway, name: str, status: dict[str, Any]) -> None:
    gateway.patch(
        PODS,
        name,
        {"status": status},
        namespace=NAMESPACE,
        sub="status",
        patch_type=PatchType.STRATEGIC,
    )


def print_measurement() -> None:
    """Measure and print; name what is missing where there is no kube-apiserver."""
    try:
        print(measure(), flush=True)
    except ClusterUnavailableError as error:
        print(f"floor: not measured: {error}")


if __name__ == "__main__":
    print_measurement()

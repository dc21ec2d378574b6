"""The simulated nodes: the machines of a cluster, and their Node objects in an API server.

A profile is a list of machines. GPU nodes have the labels of NVIDIA's GPU feature discovery, and every
node has a zone and a rack. A real API server adds a `not-ready` taint to a new node, and the node
controller removes it later; here the node is reported ready and the taint removed at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from kube.errors import AlreadyExistsError
from kube.gateway import Gateway
from kube.keys import NODE_GPU_COUNT, NODE_GPU_MEMORY, NODE_GPU_PRODUCT
from kube.resources import NODES
from sandbox.nodes.podstatus import HOST_IP
from sandbox.nodes.simpod import GPU
from sandbox.wallclock import timestamp

RACK_LABEL = "topology.kubernetes.io/rack"
ZONE_LABEL = "topology.kubernetes.io/zone"
KEPT_FREE_LABEL = "sandbox.kaiweb/kept-free"
NOT_READY_TAINT = "node.kubernetes.io/not-ready"
# Threads that write to the API server at once.
WRITERS = 8
# Answers about a node list each GPU: at 100,000 GPUs one answer of the web API takes 6.4 MB.
MAX_GPUS_PER_NODE = 999
_UNIFORM = re.compile(r"([0-9]{1,6})x([0-9]{1,6})")


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuModel:
    """A GPU in the terms of GPU feature discovery, and the CPUs and memory of its machine per GPU."""

    product: str
    family: str
    memory_mib: int
    cpus_per_gpu: int
    memory_gib_per_gpu: int


H100 = GpuModel(
    product="NVIDIA-H100-80GB-HBM3", family="hopper", memory_mib=81559,
    cpus_per_gpu=24, memory_gib_per_gpu=256,
)  # fmt: skip
A100 = GpuModel(
    product="NVIDIA-A100-SXM4-80GB", family="ampere", memory_mib=81920,
    cpus_per_gpu=16, memory_gib_per_gpu=128,
)  # fmt: skip
L40S = GpuModel(
    product="NVIDIA-L40S", family="ada-lovelace", memory_mib=46068,
    cpus_per_gpu=16, memory_gib_per_gpu=96,
)  # fmt: skip
T4 = GpuModel(
    product="Tesla-T4", family="turing", memory_mib=15360, cpus_per_gpu=12, memory_gib_per_gpu=48
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine that becomes a node; without a model it has no GPUs."""

    name: str
    zone: str
    rack: str
    model: GpuModel | None = None
    gpus: int = 0
    cpus: int = 32
    memory_gib: int = 128
    labels: dict[str, str] = field(default_factory=dict)


def demo() -> list[Machine]:
    """Return the default cluster: 16 machines in 2 zones and 5 racks, 92 GPUs of four models.

    The demo uses all but two machines with 16 GPUs, so that there is always room for the workloads that
    a person submits.
    """
    kept_free = {KEPT_FREE_LABEL: "true"}
    return [
        replace(_gpu_machine("gpu-lab-worker", A100, 8, "zone-a", "rack-a1"), labels=kept_free),
        *(_gpu_machine(f"h100-{n}", H100, 8, "zone-a", f"rack-a{1 + n // 3}") for n in range(1, 4)),
        replace(_gpu_machine("h100-4", H100, 8, "zone-a", "rack-a2"), labels=kept_free),
        *(_gpu_machine(f"a100-{n}", A100, 8, "zone-b", f"rack-b{1 + n // 3}") for n in range(1, 5)),
        *(_gpu_machine(f"l40s-{n}", L40S, 4, "zone-b", "rack-b3") for n in range(1, 4)),
        *(_gpu_machine(f"t4-{n}", T4, 4, "zone-b", "rack-b3") for n in range(1, 3)),
        Machine(name="cpu-worker-1", zone="zone-a", rack="rack-a1", cpus=64, memory_gib=256),
        Machine(name="cpu-worker-2", zone="zone-b", rack="rack-b1", cpus=64, memory_gib=256),
    ]


def uniform(count: int, gpus: int = 8) -> list[Machine]:
    """Return `count` equal machines, 16 to a rack and 8 racks to a zone; for benchmarks."""
    return [
        _gpu_machine(f"node-{n:04d}", A100, gpus, f"zone-{n // 128}", f"rack-{n // 16}")
        for n in range(count)
    ]


def profile(text: str) -> list[Machine]:
    """Return the machines of a profile: `demo`, `none`, or `<nodes>x<gpus>` such as `500x8`.

    Raises
    ------
    ValueError : the text is none of these, or a node would have more than 999 GPUs
    """
    if text == "demo":
        return demo()
    if text == "none":
        return []
    match = _UNIFORM.fullmatch(text)
    if match is None:
        raise ValueError(f"node profile {text!r}: expected 'demo', 'none' or e.g. '500x8'")
    count, gpus = int(match[1]), int(match[2])
    if gpus > MAX_GPUS_PER_NODE:
        raise ValueError(
            f"node profile {text!r}: expected at most {MAX_GPUS_PER_NODE} GPUs per node, got {gpus}"
        )
    return uniform(count, gpus)


def ensure_nodes(gateway: Gateway, machines: Sequence[Machine], now: float) -> int:
    """Create the missing nodes, make all of them ready, and return how many were new.

    Labels and cordons of existing nodes are not changed.
    """
    with ThreadPoolExecutor(WRITERS) as pool:
        return sum(pool.map(lambda machine: _ensure_node(gateway, machine, now), machines))


def _ensure_node(gateway: Gateway, machine: Machine, now: float) -> bool:
    try:
        gateway.create(NODES, node_body(machine))
        is_new = True
    except AlreadyExistsError:
        is_new = False
    status = {"status": status_body(machine, now)}
    node = gateway.patch(NODES, machine.name, status, sub="status")
    taints = node.get("spec", {}).get("taints") or ()
    other_taints = [taint for taint in taints if taint.get("key") != NOT_READY_TAINT]
    if len(other_taints) < len(taints):
        gateway.patch(NODES, machine.name, {"spec": {"taints": other_taints or None}})
    return is_new


def node_body(machine: Machine) -> dict[str, Any]:
    """Return the node object, without its status."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": machine.name, "labels": dict(_labels(machine))},
        "spec": {"providerID": f"sandbox://{machine.name}"},
    }


def status_body(machine: Machine, now: float) -> dict[str, Any]:
    """Return the node status that the kubelet of a healthy machine reports."""
    resources = {
        "cpu": str(machine.cpus),
        "memory": f"{machine.memory_gib}Gi",
        "ephemeral-storage": "500Gi",
        "pods": "110",
    }
    if machine.gpus:
        resources[GPU] = str(machine.gpus)
    time = timestamp(now)
    return {
        "capacity": resources,
        "allocatable": resources,
        "conditions": [
            {
                "type": kind,
                "status": status,
                "reason": reason,
                "message": "reported by the sandbox",
                "lastHeartbeatTime": time,
                "lastTransitionTime": time,
            }
            for kind, status, reason in (
                ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
                ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                ("PIDPressure", "False", "KubeletHasSufficientPID"),
                ("Ready", "True", "KubeletReady"),
            )
        ],
        "addresses": [
            {"type": "InternalIP", "address": HOST_IP},
            {"type": "Hostname", "address": machine.name},
        ],
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": "",
            "containerRuntimeVersion": "sandbox://1",
            "kernelVersion": "sandbox",
            "kubeProxyVersion": "",
            "kubeletVersion": "v1.35.4-sandbox",
            "machineID": machine.name,
            "operatingSystem": "linux",
            "osImage": "kaiweb sandbox (simulated)",
            "systemUUID": machine.name,
        },
    }


def _gpu_machine(name: str, model: GpuModel, gpus: int, zone: str, rack: str) -> Machine:
    return Machine(
        name=name,
        zone=zone,
        rack=rack,
        model=model,
        gpus=gpus,
        cpus=model.cpus_per_gpu * gpus,
        memory_gib=model.memory_gib_per_gpu * gpus,
    )


def _labels(machine: Machine) -> Iterator[tuple[str, str]]:
    yield "kubernetes.io/hostname", machine.name
    yield "kubernetes.io/os", "linux"
    yield "kubernetes.io/arch", "amd64"
    yield ZONE_LABEL, machine.zone
    yield RACK_LABEL, machine.rack
    model = machine.model
    if model is None:
        yield "node-role.kubernetes.io/cpu-worker", ""
    else:
        yield "node-role.kubernetes.io/gpu-worker", ""
        yield "nvidia.com/gpu.present", "true"
        yield NODE_GPU_PRODUCT, model.product
        yield "nvidia.com/gpu.family", model.family
        yield NODE_GPU_MEMORY, str(model.memory_mib)
        yield NODE_GPU_COUNT, str(machine.gpus)
        yield "nvidia.com/gpu.replicas", "1"
        yield "nvidia.com/mig.capable", "false"
    yield from machine.labels.items()

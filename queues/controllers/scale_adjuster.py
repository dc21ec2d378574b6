"""Make fractional GPU demand visible to cluster autoscalers by stand-in pods that request whole devices.

An autoscaler counts `nvidia.com/gpu` requests and does not know our annotations, so pods that wait for a fraction
of a device seem to need nothing. Each pass compares the devices they need with those that stand-ins request,
creates missing stand-ins and deletes obsolete ones, with a pause after each deletion.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import msgspec

from kube.errors import AlreadyExistsError, InvalidError, KubeError, NotFoundError
from kube.gateway import Gateway
from kube.keys import (
    GPU_FRACTION,
    GPU_FRACTION_DEVICES,
    GPU_MEMORY_MIB,
    NVIDIA_GPU,
    SCALE_ADJUST,
    SCHEDULER_NAME,
)
from kube.objects.pod import Pod
from kube.process.set_aside import SetAside
from kube.resources import PODS
from kube.store import Store
from kube.values.numbers import MAX_INT32, int_or_none
from kube.values.quantity import parse_quantity
from queues.workloads import accounting

log = logging.getLogger(__name__)
_ASIDE = SetAside("scale adjuster")

LEASE = "7n7h49uc.kai.scheduler"
NAME_LABEL = "shared-gpu-pod-name"
NAMESPACE_LABEL = "shared-gpu-pod-namespace"
COOL_DOWN_S = 60.0
# A stand-in must end at once, because it holds the device that its pod waits for.
DEFAULT_IMAGE = "busybox:1.36"
DEFAULT_COMMAND = ["/bin/true"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdjusterSettings:
    """The flags of the adjuster."""

    image: str = DEFAULT_IMAGE
    namespace: str = SCALE_ADJUST
    scheduler_name: str = SCHEDULER_NAME
    app_label: str = "scaling-pod"
    service_account: str = SCALE_ADJUST
    memory_ratio: float = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceDemand:
    """A waiting pod, the devices it waits for, and the hundredths of each."""

    pod: Pod
    hundredths: int
    devices: int


def is_unschedulable(pod: Pod) -> bool:
    condition = pod.condition("PodScheduled")
    return (
        condition is not None
        and condition.status == "False"
        and condition.reason == "Unschedulable"
    )


def waiting_demands(pods: Iterable[Pod], settings: AdjusterSettings) -> list[DeviceDemand]:
    """Return the demands of unschedulable pods of our scheduler, sorted by name."""
    demands = []
    for pod in sorted(pods, key=lambda pod: pod.key):
        waits = (
            pod.spec.scheduler_name == settings.scheduler_name
            and not pod.spec.node_name
            and not pod.is_finished
            and is_unschedulable(pod)
        )
        demand = _demand_of(pod, settings) if waits else None
        if demand is not None:
            demands.append(demand)
    return demands


def devices_needed(demands: Sequence[DeviceDemand]) -> int:
    """Return the whole devices that would hold all fractions."""
    return math.ceil(Fraction(sum(demand.hundredths * demand.devices for demand in demands), 100))


def stale_stand_ins(stand_ins: Iterable[Pod], pods: Mapping[str, Pod]) -> list[Pod]:
    """Return the stand-ins that are no longer needed.

    Parameters
    ----------
    pods : the pods they stand in for, by namespace/name; must be complete
    """
    return [stand_in for stand_in in stand_ins if not _is_needed(stand_in, pods)]


def missing_stand_ins(
    demands: Sequence[DeviceDemand], stand_ins: Sequence[Pod]
) -> list[DeviceDemand]:
    """Return the demands that get a stand-in in this pass."""
    needed = devices_needed(demands)
    if needed == 0:
        return []
    covered = {_source_key(stand_in) for stand_in in stand_ins}
    sizes = _ASIDE.each("Pod", stand_ins, _devices_of)
    total, largest = sum(sizes), max(sizes, default=0)
    missing = []
    for demand in demands:
        if demand.pod.key in covered or not (needed > total or demand.devices > largest):
            continue
        missing.append(demand)
        total += demand.devices
        largest = max(largest, demand.devices)
    return missing


def stand_in_body(demand: DeviceDemand, settings: AdjusterSettings) -> dict[str, Any]:
    """Return the stand-in of a waiting pod: same affinity, CPU and memory, whole devices, an empty command."""
    source = demand.pod
    requests: accounting.ResourceAmounts = {}
    for container in source.spec.containers:
        merged = {**container.resources.limits, **container.resources.requests}
        amounts = {n: parse_quantity(v) for n, v in merged.items() if n in ("cpu", "memory")}
        accounting.add_amounts(requests, amounts)
    devices = str(demand.devices)
    idle: dict[str, Any] = {
        "name": settings.app_label,
        "image": settings.image,
        "imagePullPolicy": "IfNotPresent",
        "resources": {
            "requests": {**accounting.format_list(requests), NVIDIA_GPU: devices},
            "limits": {NVIDIA_GPU: devices},
        },
    }
    if settings.image == DEFAULT_IMAGE:
        idle["command"] = DEFAULT_COMMAND
    spec: dict[str, Any] = {
        "restartPolicy": "OnFailure",
        "serviceAccountName": settings.service_account,
        "containers": [idle],
    }
    copied = msgspec.json.decode(msgspec.json.encode(source.spec))
    spec.update({k: copied[k] for k in ("affinity", "tolerations", "nodeSelector") if k in copied})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{source.metadata.namespace}-{source.metadata.name}",
            "namespace": settings.namespace,
            "labels": {
                "app": settings.app_label,
                NAME_LABEL: source.metadata.name,
                NAMESPACE_LABEL: source.metadata.namespace,
            },
        },
        "spec": spec,
    }


@dataclass(slots=True)
class ScaleAdjuster:
    """Runs passes on two stores: the pods of our scheduler, and the pods of the stand-ins' namespace."""

    gateway: Gateway
    pods: Store
    stand_ins: Store
    settings: AdjusterSettings = field(default_factory=AdjusterSettings)
    clock: Callable[[], float] = time.monotonic
    removed_at: float = float("-inf")

    def run(self, stop: threading.Event) -> None:
        """Run a pass after each change of either store until `stop` is set."""
        wake = threading.Event()
        for store in (self.pods, self.stand_ins):
            store.subscribe(lambda *_: wake.set())
        while not stop.is_set():
            if not (self.pods.is_synced() and self.stand_ins.is_synced()):
                stop.wait(0.5)
                continue
            wake.clear()
            pause_s = self._safe_pass()
            wake.wait(timeout=pause_s)
            stop.wait(0.5)

    def pass_once(self) -> float:
        """Delete and create stand-ins; return the seconds until the next pass without a change."""
        pods = self.pods.view().of(PODS, Pod)
        label = self.settings.app_label
        all_pods = self.stand_ins.view().of(PODS, Pod).values()
        stand_ins = [pod for pod in all_pods if pod.metadata.labels.get("app") == label]
        obsolete = stale_stand_ins(stand_ins, pods)
        for stand_in in obsolete:
            self._delete(stand_in)
        if obsolete:
            self.removed_at = self.clock()
        if self.clock() - self.removed_at < COOL_DOWN_S:
            return COOL_DOWN_S
        remaining = [stand_in for stand_in in stand_ins if stand_in not in obsolete]
        for demand in missing_stand_ins(waiting_demands(pods.values(), self.settings), remaining):
            self._create(demand)
        return COOL_DOWN_S

    def _safe_pass(self) -> float:
        try:
            return self.pass_once()
        except KubeError as error:
            log.warning("scale adjustment: %s", error)
            return 5.0

    def _delete(self, stand_in: Pod) -> None:
        try:
            self.gateway.delete(
                PODS,
                stand_in.metadata.name,
                namespace=stand_in.metadata.namespace,
                uid=stand_in.metadata.uid,
            )
        except NotFoundError:
            return

    def _create(self, demand: DeviceDemand) -> None:
        body = _ASIDE.read("Pod", demand.pod, lambda _: stand_in_body(demand, self.settings))
        if body is None:
            return
        name, namespace = body["metadata"]["name"], self.settings.namespace
        try:
            self.gateway.create(PODS, body, namespace=namespace)
        except AlreadyExistsError:
            return
        except (
            InvalidError
        ) as error:  # for example a name too long for a label, which must not block others
            log.warning("no stand-in for pod %s: %s", demand.pod.key, error)
            return
        # Autoscalers react to this condition, which the default scheduler would set later.
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        patch = {"status": {"conditions": [condition]}}
        self.gateway.patch(PODS, name, patch, namespace=namespace, sub="status")
        log.info("stand-in %s requests %d devices for pod %s", name, demand.devices, demand.pod.key)


def _demand_of(pod: Pod, settings: AdjusterSettings) -> DeviceDemand | None:
    annotations = pod.metadata.annotations
    devices = int_or_none(
        annotations.get(GPU_FRACTION_DEVICES) or "1", smallest=1, largest=MAX_INT32
    )
    if devices is None:
        return None
    portion: Fraction | float
    if annotations.get(GPU_FRACTION):
        portion = accounting.gpu_fraction(annotations)
    elif annotations.get(GPU_MEMORY_MIB):
        portion = settings.memory_ratio
    else:
        return None
    # Round halves up, as in Go; Python's `round` would round 12.5 down.
    hundredths = math.floor(portion * 100 + Fraction(1, 2))
    return DeviceDemand(pod=pod, hundredths=hundredths, devices=devices) if portion > 0 else None


def _source_key(stand_in: Pod) -> str:
    labels = stand_in.metadata.labels
    return f"{labels.get(NAMESPACE_LABEL, '')}/{labels.get(NAME_LABEL, '')}"


def _is_needed(stand_in: Pod, pods: Mapping[str, Pod]) -> bool:
    if stand_in.status.phase == "Succeeded":
        return False
    source = pods.get(_source_key(stand_in))
    if source is None:
        return False
    return source.condition("PodScheduled") is None or is_unschedulable(source)


def _devices_of(stand_in: Pod) -> int:
    return int(accounting.pod_demand(stand_in).gpus)

"""Make cluster autoscalers see fractional GPU demand: stand-in pods that ask for whole devices.

An autoscaler counts `nvidia.com/gpu` requests and cannot read our annotations, so pods waiting for a part of a
device look as if they needed nothing. One global pass compares the devices they need with those the stand-ins
already ask for, adds what is missing and removes what has served, with a pause after each removal.
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
from kube.numbers import MAX_INT32, int_or_none
from kube.objects.pod import Pod
from kube.quantity import parse_quantity
from kube.resources import PODS
from kube.set_aside import SetAside
from kube.store import Store
from queues.workloads import accounting

log = logging.getLogger(__name__)
_ASIDE = SetAside("scale adjuster")

LEASE = "7n7h49uc.kai.scheduler"
NAME_LABEL = "shared-gpu-pod-name"
NAMESPACE_LABEL = "shared-gpu-pod-namespace"
COOL_DOWN_S = 60.0
# Whatever a stand-in runs must end at once: it would hold the device its pod waits for.
DEFAULT_IMAGE = "busybox:1.36"
DEFAULT_COMMAND = ["/bin/true"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdjusterSettings:
    """The adjuster's flags."""

    image: str = DEFAULT_IMAGE
    namespace: str = SCALE_ADJUST
    scheduler_name: str = SCHEDULER_NAME
    app_label: str = "scaling-pod"
    service_account: str = SCALE_ADJUST
    memory_ratio: float = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A waiting pod and the part of how many devices it waits for."""

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


def waiting_needs(pods: Iterable[Pod], settings: AdjusterSettings) -> list[Need]:
    """Return what unplaced pods of our scheduler wait for, in order of their names."""
    found = []
    for pod in sorted(pods, key=lambda pod: pod.key):
        waits = (
            pod.spec.scheduler_name == settings.scheduler_name
            and not pod.spec.node_name
            and not pod.is_finished
            and is_unschedulable(pod)
        )
        need = _need_of(pod, settings) if waits else None
        if need is not None:
            found.append(need)
    return found


def devices_needed(needs: Sequence[Need]) -> int:
    """Return the whole devices that would hold all the parts."""
    return math.ceil(Fraction(sum(need.hundredths * need.devices for need in needs), 100))


def stale_stand_ins(stand_ins: Iterable[Pod], pods: Mapping[str, Pod]) -> list[Pod]:
    """Return the stand-ins that are no longer needed.

    Parameters
    ----------
    pods : the pods they stand in for, by namespace/name; must be complete
    """
    return [stand_in for stand_in in stand_ins if not _is_needed(stand_in, pods)]


def missing_stand_ins(needs: Sequence[Need], stand_ins: Sequence[Pod]) -> list[Need]:
    """Return the needs that get a stand-in now."""
    needed = devices_needed(needs)
    if needed == 0:
        return []
    covered = {_source_key(stand_in) for stand_in in stand_ins}
    sizes = _ASIDE.each("Pod", stand_ins, _devices_of)
    total, largest = sum(sizes), max(sizes, default=0)
    chosen = []
    for need in needs:
        if need.pod.key in covered or not (needed > total or need.devices > largest):
            continue
        chosen.append(need)
        total += need.devices
        largest = max(largest, need.devices)
    return chosen


def stand_in_body(need: Need, settings: AdjusterSettings) -> dict[str, Any]:
    """Return the stand-in of a waiting pod: same place, same CPU and memory, whole devices, no work."""
    source = need.pod
    requests: accounting.Amounts = {}
    for container in source.spec.containers:
        merged = {**container.resources.limits, **container.resources.requests}
        kept = {n: parse_quantity(v) for n, v in merged.items() if n in ("cpu", "memory")}
        accounting.add_amounts(requests, kept)
    devices = str(need.devices)
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
    """Runs passes on two stores: pods of our scheduler, and the stand-ins' namespace."""

    gateway: Gateway
    pods: Store
    stand_ins: Store
    settings: AdjusterSettings = field(default_factory=AdjusterSettings)
    clock: Callable[[], float] = time.monotonic
    removed_at: float = float("-inf")

    def run(self, stop: threading.Event) -> None:
        """Make a pass after each change of either store until `stop` is set."""
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
        """Remove and add stand-ins; return the seconds until the next pass is due without a change."""
        pods = self.pods.view().of(PODS, Pod)
        label = self.settings.app_label
        there = self.stand_ins.view().of(PODS, Pod).values()
        stand_ins = [pod for pod in there if pod.metadata.labels.get("app") == label]
        gone = stale_stand_ins(stand_ins, pods)
        for stand_in in gone:
            self._delete(stand_in)
        if gone:
            self.removed_at = self.clock()
        if self.clock() - self.removed_at < COOL_DOWN_S:
            return COOL_DOWN_S
        kept = [stand_in for stand_in in stand_ins if stand_in not in gone]
        for need in missing_stand_ins(waiting_needs(pods.values(), self.settings), kept):
            self._create(need)
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

    def _create(self, need: Need) -> None:
        body = _ASIDE.read("Pod", need.pod, lambda _: stand_in_body(need, self.settings))
        if body is None:
            return
        name, namespace = body["metadata"]["name"], self.settings.namespace
        try:
            self.gateway.create(PODS, body, namespace=namespace)
        except AlreadyExistsError:
            return
        except (
            InvalidError
        ) as error:  # a name too long for a label, say: others must not wait for it
            log.warning("no stand-in for pod %s: %s", need.pod.key, error)
            return
        # Autoscalers react to the condition; waiting for the default scheduler to set it costs time.
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        patch = {"status": {"conditions": [condition]}}
        self.gateway.patch(PODS, name, patch, namespace=namespace, sub="status")
        log.info("stand-in %s asks for %d devices for pod %s", name, need.devices, need.pod.key)


def _need_of(pod: Pod, settings: AdjusterSettings) -> Need | None:
    annotations = pod.metadata.annotations
    devices = int_or_none(
        annotations.get(GPU_FRACTION_DEVICES) or "1", smallest=1, largest=MAX_INT32
    )
    if devices is None:
        return None
    part: Fraction | float
    if annotations.get(GPU_FRACTION):
        part = accounting.gpu_fraction(annotations)
    elif annotations.get(GPU_MEMORY_MIB):
        part = settings.memory_ratio
    else:
        return None
    # Halves go up, as in Go; Python's `round` would take 12.5 down.
    hundredths = math.floor(part * 100 + Fraction(1, 2))
    return Need(pod=pod, hundredths=hundredths, devices=devices) if part > 0 else None


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

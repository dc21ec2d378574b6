"""The fields of a pod that a simulated kubelet reads: containers, run time, devices."""

from __future__ import annotations

from datetime import datetime

from kube.keys import NVIDIA_GPU, RESERVATION
from kube.objects.meta import KubeObject, KubeStruct
from kube.objects.pod import ExtendedClaimStatus, Quantity, ResourceRequirements
from kube.values import quantity
from sandbox.nodes import podhints

GPU = NVIDIA_GPU
RESERVATION_APP = RESERVATION


class SimContainer(KubeStruct, frozen=True, kw_only=True):
    name: str = ""
    image: str = ""
    restart_policy: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()


class SimPodSpec(KubeStruct, frozen=True, kw_only=True):
    node_name: str = ""
    restart_policy: str = "Always"
    host_network: bool = False
    containers: tuple[SimContainer, ...] = ()
    init_containers: tuple[SimContainer, ...] = ()


class SimContainerStatus(KubeStruct, frozen=True, kw_only=True):
    name: str = ""
    restart_count: int = 0


class SimPodStatus(KubeStruct, frozen=True, kw_only=True):
    phase: str = ""
    start_time: datetime | None = None
    pod_ip: str = ""
    container_statuses: tuple[SimContainerStatus, ...] = ()
    extended_resource_claim_status: ExtendedClaimStatus | None = None


class SimPod(KubeObject, frozen=True, kw_only=True):
    spec: SimPodSpec = SimPodSpec()
    status: SimPodStatus = SimPodStatus()

    @property
    def is_finished(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def is_reservation(self) -> bool:
        """Return whether the pod holds one GPU that other pods share."""
        return self.metadata.labels.get("app") == RESERVATION_APP

    @property
    def restarts(self) -> int:
        return max((status.restart_count for status in self.status.container_statuses), default=0)

    def device_requests(self) -> dict[str, int]:
        """Return how many devices of each extended resource the containers get from device plugins."""
        total: dict[str, int] = {}
        claimed = self._claimed_resources()
        for container in (*self.spec.containers, *self._sidecars()):
            for name, amount in _requests(container).items():
                if "/" in name and (container.name, name) not in claimed:
                    total[name] = total.get(name, 0) + quantity.to_units(amount)
        return {name: count for name, count in total.items() if count}

    def start_delay_s(self) -> float:
        return self._seconds(podhints.START_DELAY, 0.0)

    def shutdown_s(self) -> float:
        """Return how long the containers take to stop; never longer than the grace period."""
        grace = self.metadata.deletion_grace_period_seconds
        shutdown = self._seconds(podhints.SHUTDOWN, 1.0)
        return shutdown if grace is None else min(shutdown, float(grace))

    def duration_s(self) -> float | None:
        """Return how long one run of the containers takes; None if some container does not end by itself."""
        if podhints.DURATION in self.metadata.annotations:
            return self._seconds(podhints.DURATION, 0.0)
        if self.spec.restart_policy == "Always":
            return None
        run_times_s = [_sleep_s(container) for container in self.spec.containers]
        finite_s = [run_time_s for run_time_s in run_times_s if run_time_s is not None]
        return max(finite_s) if finite_s and len(finite_s) == len(run_times_s) else None

    def exit_code(self) -> int:
        text = self.metadata.annotations.get(podhints.EXIT_CODE, "0")
        return int(text) if text.isdigit() else 1

    def _claimed_resources(self) -> set[tuple[str, str]]:
        """Return the (container, resource) pairs that a resource claim provides instead."""
        status = self.status.extended_resource_claim_status
        mappings = status.request_mappings if status is not None else ()
        return {
            (mapping.get("containerName", ""), mapping.get("resourceName", ""))
            for mapping in mappings
        }

    def _sidecars(self) -> tuple[SimContainer, ...]:
        return tuple(
            container
            for container in self.spec.init_containers
            if container.restart_policy == "Always"
        )

    def _seconds(self, key: str, default: float) -> float:
        text = self.metadata.annotations.get(key)
        if text is None:
            return default
        try:
            return podhints.parse_duration(text)
        except ValueError:
            # A typing error in a manifest must not stop the kubelets, so the default applies.
            return default


def _requests(container: SimContainer) -> dict[str, Quantity]:
    return {**container.resources.limits, **container.resources.requests}


def _sleep_s(container: SimContainer) -> float | None:
    words = (*container.command, *container.args)
    if len(words) != 2 or words[0].rpartition("/")[2] != "sleep":
        return None
    text = words[1]
    try:
        return float(text) if text[-1:].isdigit() else podhints.parse_duration(text)
    except ValueError:
        return None

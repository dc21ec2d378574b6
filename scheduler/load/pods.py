"""Convert pods to tasks: status, node, request, constraints.

Converting a pod is expensive, and in a burst each pod changes four times without its request changing. So pods
with equal specs share one `PodShape`, which also lets the core find classes of equal tasks by identity. (That a
pod which did not change keeps its task is the work of `pod_table.py`.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from kube.errors import BadValueError
from kube.keys import (
    GPU_FRACTION,
    GPU_FRACTION_DEVICES,
    GPU_GROUP,
    GPU_GROUP_PREFIX,
    GPU_MEMORY_MIB,
    MIG_PREFIX,
    NUMA_OBSERVED,
    NUMA_PREDICTED,
    SHARED_GPU_CONFIG_MAP,
    SUB_GROUP,
)
from kube.objects.bindrequest import BindRequest, NumaZone
from kube.objects.pod import Pod
from kube.process.progress import track
from kube.process.set_aside import HungError
from kube.values.documents import parse_json
from scheduler.core.cluster.constraints import ClaimReference, TaskConstraints
from scheduler.core.cluster.device_inputs import ClaimAllocation
from scheduler.core.cluster.inputs import DEFAULT_SUBGROUP, NumaShare, TaskInput, TaskRequest
from scheduler.core.cluster.status import TaskStatus
from scheduler.load import claims, terms
from scheduler.load.extended import extended_from
from scheduler.load.requests import amounts_of, container_requests, task_request

_SHAPE_ANNOTATIONS = (
    GPU_MEMORY_MIB,
    GPU_FRACTION,
    GPU_FRACTION_DEVICES,
    SHARED_GPU_CONFIG_MAP,
)


@dataclass(frozen=True, slots=True)
class PodShape:
    """Request and constraints of a pod; shared by all pods with an equal spec."""

    request: TaskRequest
    constraints: TaskConstraints


@dataclass(slots=True)
class TaskBuilder:
    """Converts pods to tasks.

    Parameters
    ----------
    stuck_after_s : a running pod deleted longer ago than this is stuck
    origin : Unix time that creation times count from; only their order matters
    """

    stuck_after_s: float
    origin: float
    #: Encoded spec of a pod -> its shape.
    _shapes: dict[bytes, PodShape] = field(default_factory=dict)

    def task(
        self,
        pod: Pod,
        bind_request: BindRequest | None,
        claimed: Mapping[str, claims.Claim],
        now: float,
    ) -> TaskInput:
        """Return the task of a pod.

        Parameters
        ----------
        bind_request : its live bind request, if it has one
        claimed : resource claims by `namespace/name`
        now : Unix time of the cycle
        """
        if not track().take("Pod", pod, "snapshot"):
            raise HungError
        return self._make(pod, bind_request, self._shape(pod, claimed), now)

    def limit_shapes(self, pods: int) -> None:
        """Drop all shapes once there are many more than pods."""
        if len(self._shapes) > 4 * pods + 1024:
            self._shapes.clear()

    def _shape(self, pod: Pod, claimed: Mapping[str, claims.Claim]) -> PodShape:
        key = _shape_key(pod)
        shape = None if pod.spec.resource_claims else self._shapes.get(key)
        if shape is None:
            shape = PodShape(task_request(pod, claims.of_pod(pod, claimed)), _constraints(pod))
            self._shapes[key] = shape
        return shape

    def _make(
        self, pod: Pod, bind_request: BindRequest | None, shape: PodShape, now: float
    ) -> TaskInput:
        meta = pod.metadata
        return TaskInput(
            name=meta.name,
            uid=meta.uid,
            namespace=meta.namespace,
            status=task_status(pod, bind_request, now - self.stuck_after_s),
            node=pod.spec.node_name or (bind_request.spec.selected_node if bind_request else ""),
            subgroup=meta.labels.get(SUB_GROUP, "") or DEFAULT_SUBGROUP,
            request=shape.request,
            constraints=shape.constraints,
            created=meta.created - self.origin,
            labels=meta.labels,
            gpu_groups=gpu_groups(pod, bind_request),
            nominated_node=pod.status.nominated_node_name,
            numa=_numa(pod, bind_request),
            claim_allocations=_allocations(pod, bind_request) if bind_request else (),
        )


def task_status(pod: Pod, bind_request: BindRequest | None, stuck_before: float) -> TaskStatus:
    """Return the status of a pod; `bind_request` is its live one, `stuck_before` a Unix time."""
    phase = pod.status.phase or "Pending"
    deleted = pod.metadata.deleted
    if phase == "Running":
        if deleted is None:
            return TaskStatus.RUNNING
        is_stuck = deleted < stuck_before
        return TaskStatus.STUCK_IN_RELEASING if is_stuck else TaskStatus.RELEASING
    if phase == "Pending":
        if deleted is not None:
            return TaskStatus.RELEASING
        if pod.spec.node_name:
            return TaskStatus.BOUND
        if bind_request is not None:
            return TaskStatus.BINDING
        return TaskStatus.GATED if pod.spec.scheduling_gates else TaskStatus.PENDING
    finished = {"Succeeded": TaskStatus.SUCCEEDED, "Failed": TaskStatus.FAILED}
    return finished.get(phase, TaskStatus.UNKNOWN)


def gpu_groups(pod: Pod, bind_request: BindRequest | None = None) -> tuple[str, ...]:
    """Return the shared devices a pod holds: by its bind request, else by its labels."""
    if bind_request is not None and bind_request.spec.selected_gpu_groups:
        return bind_request.spec.selected_gpu_groups
    labels = pod.metadata.labels
    several = sorted(
        value for key, value in labels.items() if key.startswith(GPU_GROUP_PREFIX) and value
    )
    single = labels.get(GPU_GROUP, "")
    return (single, *several) if single and single not in several else tuple(several)


def _shape_key(pod: Pod) -> bytes:
    spec = pod.spec
    annotations = pod.metadata.annotations
    has_sharing = any(
        key.startswith("gpu-") or key.startswith(MIG_PREFIX) or key == SHARED_GPU_CONFIG_MAP
        for key in annotations
    )
    sharing = (
        sorted(
            item
            for item in annotations.items()
            if item[0] in _SHAPE_ANNOTATIONS or item[0].startswith(MIG_PREFIX)
        )
        if has_sharing
        else None
    )
    ephemeral = any(volume.ephemeral for volume in spec.volumes)
    return msgspec.msgpack.encode(
        (
            spec.containers,
            spec.init_containers,
            spec.overhead,
            spec.node_selector,
            spec.affinity,
            spec.tolerations,
            spec.topology_spread_constraints,
            spec.volumes,
            spec.priority_class_name,
            spec.priority,
            pod.status.qos_class,
            sharing,
            pod.metadata.name if ephemeral else "",
            pod.metadata.uid if spec.resource_claims else "",
        )
    )


def _constraints(pod: Pod) -> TaskConstraints:
    spec = pod.spec
    affinity = spec.affinity
    anti = affinity.pod_anti_affinity if affinity else None
    near = affinity.pod_affinity if affinity else None
    constraints = TaskConstraints(
        node_selector=tuple(sorted(spec.node_selector.items())),
        node_affinity=terms.required_node_affinity(affinity),
        tolerations=terms.tolerations(spec.tolerations),
        host_ports=terms.host_ports(pod),
        pod_affinity=terms.required_pod_terms(near),
        pod_anti_affinity=terms.required_pod_terms(anti),
        preferred_pod_affinity=terms.preferred_pod_terms(near),
        preferred_pod_anti_affinity=terms.preferred_pod_terms(anti),
        volume_claims=volume_claims(pod),
        config_maps=_config_maps(pod),
        device_claims=tuple(
            ClaimReference(claims.claim_name(pod, item), bool(item.resource_claim_template_name))
            for item in spec.resource_claims
        ),
        containers=container_requests(pod),
        qos_class=pod.status.qos_class or "Burstable",
        priority_class=f"{spec.priority_class_name}/{spec.priority}",
        signature_extra=_signature_extra(pod),
    )
    return terms.require_bounded(constraints)


def volume_claims(pod: Pod) -> tuple[str, ...]:
    """Return the names of the volume claims a pod uses; ephemeral ones are named after the pod."""
    names = []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            names.append(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            names.append(f"{pod.metadata.name}-{volume.name}")
    return tuple(names)


def _config_maps(pod: Pod) -> tuple[str, ...]:
    """Return the config maps a pod cannot start without, except the shared-GPU ones, which the binder creates."""
    containers = [*pod.spec.init_containers, *pod.spec.containers]
    mounted = {mount.name for container in containers for mount in container.volume_mounts}
    references = []
    for volume in pod.spec.volumes:
        if volume.name in mounted:
            references.append(volume.config_map)
            sources = volume.projected.sources if volume.projected else ()
            references.extend(source.config_map for source in sources)
    for container in containers:
        references.extend(source.config_map_ref for source in container.env_from)
        references.extend(
            variable.value_from.config_map_key_ref
            for variable in container.env
            if variable.value_from is not None
        )
    needed = {item.name for item in references if item is not None and not item.optional}
    exempt = pod.metadata.annotations.get(SHARED_GPU_CONFIG_MAP, "")
    return tuple(sorted(name for name in needed if not (exempt and name.startswith(exempt))))


def _signature_extra(pod: Pod) -> str:
    volumes = [
        (volume.persistent_volume_claim, volume.ephemeral)
        for volume in pod.spec.volumes
        if volume.config_map is None
    ]
    if not volumes and not pod.spec.topology_spread_constraints:
        return ""
    return msgspec.json.encode((volumes, pod.spec.topology_spread_constraints)).decode()


def _numa(pod: Pod, bind_request: BindRequest | None) -> tuple[NumaShare, ...]:
    observed = _numa_record(pod.metadata.annotations.get(NUMA_OBSERVED, ""))
    if observed:
        return observed
    if bind_request is not None and bind_request.spec.predicted_numa_zones:
        return _shares(bind_request.spec.predicted_numa_zones)
    return _numa_record(pod.metadata.annotations.get(NUMA_PREDICTED, ""))


def _numa_record(text: str) -> tuple[NumaShare, ...]:
    if not text:
        return ()
    try:
        return _shares(parse_json(text, tuple[NumaZone, ...]))
    except BadValueError:
        return ()


def _shares(zones: tuple[NumaZone, ...]) -> tuple[NumaShare, ...]:
    return tuple(
        NumaShare(zone=item.zone, amounts=tuple(sorted(amounts_of(item.amount).items())))
        for item in zones
    )


def _allocations(pod: Pod, bind_request: BindRequest) -> tuple[ClaimAllocation, ...]:
    names = {item.name: claims.claim_name(pod, item) for item in pod.spec.resource_claims}
    namespace = pod.metadata.namespace
    allocations = [
        claims.allocation_from(names[item.name], namespace, item.allocation)
        for item in bind_request.spec.resource_claim_allocations
        if item.name in names and item.allocation
    ]
    extended = bind_request.spec.extended_resource_claim_allocation
    if extended is not None and extended.allocation:
        allocations.append(extended_from(extended, namespace))
    return tuple(allocations)

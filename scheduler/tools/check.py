"""Check the invariants of a cluster, independently of how decisions were made.

Reads pods, nodes, pod groups and bind requests and reports violations with the objects involved: a GPU
allocated twice, a node above its capacity, a gang of which only a part runs, a bind request that contradicts
its pod. Kill tests use it, and so can people.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from kube.gateway import Gateway
from kube.keys import (
    MIG_PREFIX,
    NVIDIA_GPU,
    POD_GROUP,
    RESERVATION,
    RESERVED_DEVICE,
    SCHEDULER_NAME,
    STALE_SINCE,
    SUB_GROUP,
)
from kube.objects.bindrequest import BindRequest
from kube.objects.devices import ResourceClaim
from kube.objects.node import Node
from kube.objects.pod import Pod
from kube.objects.podgroup import PodGroup
from kube.resources import BINDREQUESTS, NODES, PODGROUPS, PODS
from kube.values.quantity import format_decimal, parse_quantity
from queues.workloads.accounting import (
    WHOLE_GPUS,
    AccountingError,
    PodDemand,
    node_gpu_memory,
    pod_demand,
)
from scheduler.core.cluster.inputs import SubGroupInput
from scheduler.load.podgroups import group_shape
from scheduler.load.pods import gpu_groups
from scheduler.tools.check_claims import devices_given_twice, read_claims

TOLERANCE = Fraction(1, 1000)


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken invariant; `rule` is a short name, `objects` are those involved."""

    rule: str
    objects: tuple[str, ...]
    text: str


@dataclass(slots=True)
class ClusterPicture:
    """The objects that are checked."""

    pods: Sequence[Pod] = ()
    nodes: Sequence[Node] = ()
    groups: Sequence[PodGroup] = ()
    requests: Sequence[BindRequest] = ()
    claims: Sequence[ResourceClaim] = ()
    scheduler_name: str = SCHEDULER_NAME
    #: By `namespace/name` of the pod.
    _demands: dict[str, PodDemand] = field(default_factory=dict)

    def demand(self, pod: Pod) -> PodDemand:
        demand = self._demands.get(pod.key)
        if demand is None:
            demand = pod_demand(pod)
            if _gets_gpus_by_claim(pod):
                demand = replace(demand, gpus=Fraction(0))
            self._demands[pod.key] = demand
        return demand

    def placed(self) -> Iterator[Pod]:
        """Return the pods that occupy a node."""
        return (pod for pod in self.pods if pod.spec.node_name and not pod.is_finished)


def read_picture(gateway: Gateway) -> ClusterPicture:
    """Read the cluster.

    Bind requests come first: a pod listed later can only be further along than its request says.
    """
    requests = gateway.list(BINDREQUESTS, as_type=BindRequest).items
    groups = gateway.list(PODGROUPS, as_type=PodGroup).items
    nodes = gateway.list(NODES, as_type=Node).items
    pods = gateway.list(PODS, as_type=Pod).items
    return ClusterPicture(
        pods=pods, nodes=nodes, groups=groups, requests=requests, claims=read_claims(gateway)
    )


def violations(picture: ClusterPicture, *, is_settled: bool = False) -> list[Violation]:
    """Return all violations.

    Parameters
    ----------
    is_settled : no change is in progress; then every pending pod must have a reason, and no bind
        request may be unfinished
    """
    broken = [
        *_capacity(picture),
        *_shared_devices(picture),
        *_claimed_devices(picture),
        *_gangs(picture),
        *_requests(picture),
    ]
    if is_settled:
        broken += _unsettled(picture)
    return sorted(broken, key=lambda item: (item.rule, item.objects))


def _gets_gpus_by_claim(pod: Pod) -> bool:
    """Return whether a device class serves the GPUs that the pod requests by name."""
    status = pod.status.extended_resource_claim_status
    mappings = status.request_mappings if status is not None else ()
    return any(mapping.get("resourceName") in WHOLE_GPUS for mapping in mappings)


# ----------------------------------------------------------------------------------------- capacity


def _capacity(picture: ClusterPicture) -> Iterator[Violation]:
    """Check that no node is above its capacity; shared devices count once, through their reservation."""
    used_by_node: dict[str, dict[str, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    holders: dict[str, list[str]] = defaultdict(list)
    for pod in picture.placed():
        demand, node = picture.demand(pod), pod.spec.node_name
        for name, amount in demand.amounts.items():
            used_by_node[node][name] += amount
        used_by_node[node]["pods"] += 1
        if demand.gpus:
            used_by_node[node][NVIDIA_GPU] += demand.gpus
            holders[node].append(pod.key)
        for name, count in demand.mig.items():
            used_by_node[node][name] += count
    nodes = {node.metadata.name: node for node in picture.nodes}
    for name in sorted(used_by_node):
        if name not in nodes:
            yield Violation("node-missing", (name,), f"pods sit on node {name}, which is gone")
            continue
        has = _allocatable(nodes[name])
        for resource, amount in sorted(used_by_node[name].items()):
            if resource in has and amount > has[resource]:
                is_gpu = resource == NVIDIA_GPU
                rule = "gpu-given-twice" if is_gpu else "node-above-capacity"
                objects = (name, *sorted(holders[name])) if is_gpu else (name,)
                yield Violation(
                    rule,
                    objects,
                    f"node {name} has {format_decimal(has[resource])} {resource}, "
                    f"{format_decimal(amount)} are given",
                )


def _allocatable(node: Node) -> dict[str, Fraction]:
    has: dict[str, Fraction] = {}
    for name, value in node.status.allocatable.items():
        key = NVIDIA_GPU if name in WHOLE_GPUS else name
        has[key] = has.get(key, Fraction(0)) + parse_quantity(value)
    if not any(name.startswith(MIG_PREFIX) for name in has):
        has.setdefault(NVIDIA_GPU, Fraction(0))
    return has


def _claimed_devices(picture: ClusterPicture) -> Iterator[Violation]:
    for (driver, pool, device), claims in devices_given_twice(picture.claims):
        text = f"device {device} of pool {pool}, driver {driver}, is given to {', '.join(claims)}"
        yield Violation("device-given-twice", tuple(claims), text)


def _shared_devices(picture: ClusterPicture) -> Iterator[Violation]:
    """Check that a GPU group is one device on one node, with one reservation and shares of at most 1."""
    users: dict[str, list[Pod]] = defaultdict(list)
    holders: dict[str, list[Pod]] = defaultdict(list)
    devices: dict[tuple[str, str], list[str]] = defaultdict(list)
    for pod in picture.placed():
        is_holder = pod.metadata.labels.get("app") == RESERVATION
        for group in gpu_groups(pod):
            (holders if is_holder else users)[group].append(pod)
        device = pod.metadata.annotations.get(RESERVED_DEVICE, "")
        if is_holder and device:
            devices[(pod.spec.node_name, device)].append(pod.key)
    memory = _gpu_memory(picture.nodes)
    for group, pods in sorted(users.items()):
        names = tuple(sorted(pod.key for pod in pods))
        nodes = sorted({pod.spec.node_name for pod in pods})
        if len(nodes) > 1:
            text = f"GPU group {group} is used on nodes {', '.join(nodes)}"
            yield Violation("gpu-group-on-two-nodes", names, text)
        total = sum(
            (_share(picture.demand(pod), memory.get(nodes[0])) for pod in pods), Fraction(0)
        )
        if total > 1 + TOLERANCE:
            text = (
                f"GPU group {group} on node {nodes[0]}: shares add up to {float(total):g} devices"
            )
            yield Violation("gpu-given-twice", names, text)
        if not holders.get(group):
            text = f"GPU group {group} on node {nodes[0]} has no reservation pod"
            yield Violation("gpu-not-reserved", names, text)
    for group, pods in sorted(holders.items()):
        if len(pods) > 1:
            names = tuple(sorted(pod.key for pod in pods))
            yield Violation("gpu-reserved-twice", names, f"GPU group {group} has two reservations")
    for (node, device), names_list in sorted(devices.items()):
        if len(names_list) > 1:
            text = f"device {device} of node {node} is reserved for {len(names_list)} groups"
            yield Violation("gpu-given-twice", tuple(sorted(names_list)), text)


def _share(demand: PodDemand, memory_mib: int | None) -> Fraction:
    if demand.gpu_fraction:
        return demand.gpu_fraction
    return Fraction(demand.gpu_memory_mib, memory_mib) if memory_mib else Fraction(0)


def _gpu_memory(nodes: Iterable[Node]) -> dict[str, int]:
    memory = {}
    for node in nodes:
        try:
            memory[node.metadata.name] = node_gpu_memory(node)
        except AccountingError:
            continue
    return memory


# -------------------------------------------------------------------------------------------- gangs


def _gangs(picture: ClusterPicture) -> Iterator[Violation]:
    """Check that a gang runs with its minimum or not at all, unless it is ending or marked stale."""
    live = {
        f"{item.metadata.namespace}/{item.spec.pod_name}"
        for item in picture.requests
        if not item.is_failed
    }
    members: dict[str, list[Pod]] = defaultdict(list)
    for pod in picture.pods:
        name = pod.metadata.annotations.get(POD_GROUP, "")
        if name:
            members[f"{pod.metadata.namespace}/{name}"].append(pod)
    for group in picture.groups:
        pods = members.get(group.key, [])
        if STALE_SINCE in group.metadata.annotations:
            continue
        if any(pod.is_finished or pod.metadata.deletion_timestamp for pod in pods):
            continue
        placed = [pod for pod in pods if pod.spec.node_name or pod.key in live]
        if not placed:
            continue
        counts: dict[str, int] = defaultdict(int)
        for pod in placed:
            counts[pod.metadata.labels.get(SUB_GROUP, "") or "default"] += 1
        root = group_shape(group, {}).root
        if not _is_satisfied(root, counts):
            names = (group.key, *sorted(pod.key for pod in placed))
            text = (
                f"only {len(placed)} pods of gang {group.key} run, which is less than its minimum"
            )
            yield Violation("gang-torn", names, text)


def _is_satisfied(group: SubGroupInput, counts: Mapping[str, int]) -> bool:
    satisfied = sum(counts.get(item.name, 0) >= item.min_available for item in group.pod_sets)
    satisfied += sum(_is_satisfied(inner, counts) for inner in group.subgroups)
    members = len(group.pod_sets) + len(group.subgroups)
    needed = members if group.min_subgroups is None else group.min_subgroups
    return satisfied >= needed


# ------------------------------------------------------------------------------------ bind requests


def _requests(picture: ClusterPicture) -> Iterator[Violation]:
    """Check that each pod has one bind request, which agrees with the pod."""
    pods = {pod.key: pod for pod in picture.pods}
    by_pod: dict[str, list[BindRequest]] = defaultdict(list)
    for request in picture.requests:
        by_pod[f"{request.metadata.namespace}/{request.spec.pod_name}"].append(request)
    for key, requests in sorted(by_pod.items()):
        if len(requests) > 1:
            names = tuple(sorted(item.key for item in requests))
            yield Violation("two-bind-requests", names, f"pod {key} has several bind requests")
        pod = pods.get(key)
        for request in requests:
            yield from _request(request, pod)


def _request(request: BindRequest, pod: Pod | None) -> Iterator[Violation]:
    owners = [owner.uid for owner in request.metadata.owner_references if owner.kind == "Pod"]
    if pod is None or (owners and pod.metadata.uid not in owners):
        return  # its pod is gone and the garbage collector will follow
    node, selected_node = pod.spec.node_name, request.spec.selected_node
    if request.status.phase == "Succeeded" and not node:
        text = f"bind request {request.key} succeeded, but the pod has no node"
        yield Violation("bind-request-lies", (request.key,), text)
    if request.status.phase == "Succeeded" and node and node != selected_node:
        text = f"bind request {request.key} chose {selected_node}, the pod is bound to {node}"
        yield Violation("pod-bound-twice", (request.key, pod.key), text)


# ------------------------------------------------------------------------------------------ settled


def _unsettled(picture: ClusterPicture) -> Iterator[Violation]:
    for request in picture.requests:
        if request.status.phase != "Succeeded" and not request.is_failed:
            text = f"bind request {request.key} is unfinished"
            yield Violation("bind-request-unfinished", (request.key,), text)
    for pod in picture.pods:
        is_ours = pod.spec.scheduler_name == picture.scheduler_name
        if not is_ours or pod.spec.node_name or pod.is_finished or pod.metadata.deletion_timestamp:
            continue
        condition = pod.condition("PodScheduled")
        if condition is None or not condition.message:
            text = f"pod {pod.key} is pending and nobody says why"
            yield Violation("pending-without-reason", (pod.key,), text)

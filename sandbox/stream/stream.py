"""Submits the workloads of the simulated day to a cluster, each at its time, at any speed.

While far more pods are pending than the cluster can run, it submits nothing. Services are scaled with the
hour. Finished notebooks are deleted here, and Jobs by their time to live. After a restart, workloads get
new names, and existing queues and services are used again.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from kube.errors import AlreadyExistsError, KubeError, UnauthorizedError
from kube.gateway import Gateway
from kube.keys import GPU_FRACTION
from kube.objects.node import Node
from kube.objects.pod import Pod
from kube.resources import (
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    NODES,
    PODS,
    QUEUES,
    TOPOLOGIES,
    Resource,
)
from kube.values import quantity
from sandbox.nodes.profiles import KEPT_FREE_LABEL
from sandbox.nodes.simpod import GPU
from sandbox.stream import manifests
from sandbox.stream.day import TEAMS, Arrival, Cluster, Work, arrivals, service_replicas

log = logging.getLogger(__name__)

RETRY_S = 2.0
CHECK_EVERY_S = 5.0
# Share of the cluster that the first workloads fill at once.
WARM_START = 0.7
# Nothing is submitted while pending pods request more than this share of the cluster.
MAX_PENDING = 0.75


@dataclass(slots=True)
class Stream:
    """Submits the workloads.

    Attributes
    ----------
    on_fatal : called when the API server no longer accepts our credentials
    speed : simulated seconds per real second
    fractions : share of the notebooks that share a GPU, 0 to 1
    """

    gateway: Gateway
    stop: threading.Event
    on_fatal: Callable[[KubeError], None]
    speed: float = 120.0
    seed: int = 1
    fractions: float = 0.0
    clock: Callable[[], float] = time.time
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _run_id: str = ""

    def run(self) -> None:
        """Run until stopped."""
        # The names of two runs differ, unless they began a multiple of 36**4 seconds (19 days) apart.
        self._run_id = f"{int(self.clock()) % 36**4:x}"
        cluster = self._prepare()
        if cluster is None:
            return
        started_at = self.clock()
        paused_s, checked_at, is_paused = 0.0, 0.0, False
        day = arrivals(cluster, seed=self.seed, fractions=self.fractions)
        for arrival in with_warm_start(day, cluster, self._requested_gpus()):
            while not self.stop.is_set():
                now = self.clock()
                if now - checked_at >= CHECK_EVERY_S:
                    paused_s += now - checked_at if is_paused else 0.0
                    checked_at = now
                    is_paused = self._check_cluster(cluster, (now - started_at) * self.speed)
                due_at = started_at + paused_s + arrival.at_s / self.speed
                if not is_paused and now >= due_at:
                    break
                self.stop.wait(min(CHECK_EVERY_S, max(0.05, due_at - now)))
            if self.stop.is_set():
                return
            self.submit(arrival)

    def submit(self, arrival: Arrival) -> None:
        """Create the workload of one arrival; only log it if the API server refuses."""
        name = f"{arrival.work}-{self._run_id}-{next(self._numbers)}"
        resource = PODS if arrival.work is Work.NOTEBOOK else JOBS
        body = manifests.workload(arrival, name, self.speed)
        try:
            self.gateway.create(resource, body, namespace=manifests.namespace_of(arrival.team))
        except KubeError as error:
            log.warning("workload %s: %s", name, error)

    def _prepare(self) -> Cluster | None:
        """Create queues and namespaces once the cluster has GPUs and KAI's kinds; return its size, None if stopped."""
        while not self.stop.is_set():
            try:
                cluster = measure(self.gateway.list(NODES, as_type=Node).items)
                if cluster.gpus:
                    self._create_missing(NAMESPACES, manifests.namespaces())
                    self._create_missing(QUEUES, manifests.queues(cluster))
                    self._create_missing(TOPOLOGIES, [manifests.topology()])
                    return cluster
            except UnauthorizedError as error:
                self.on_fatal(error)
                return None
            except KubeError as error:
                log.info("the cluster is not ready for the demo: %s", error)
            self.stop.wait(RETRY_S)
        return None

    def _create_missing(self, resource: Resource, bodies: Iterable[dict[str, Any]]) -> None:
        for body in bodies:
            try:
                self.gateway.create(resource, body)
            except AlreadyExistsError:
                continue

    def _requested_gpus(self) -> float:
        """Return the GPUs that all unfinished demo pods request."""
        try:
            return sum(gpus_of(pod) for pod in self._pods() if not pod.is_finished)
        except KubeError as error:
            log.info("could not read the demo's pods: %s", error)
            return 0.0

    def _check_cluster(self, cluster: Cluster, at_s: float) -> bool:
        """Scale services, delete finished notebooks, and return whether too much is pending."""
        try:
            self._adjust_services(cluster, at_s)
            return self._pending_gpus() > MAX_PENDING * cluster.gpus
        except KubeError as error:
            log.info("could not read the demo's pods: %s", error)
            return True

    def _adjust_services(self, cluster: Cluster, at_s: float) -> None:
        for team in TEAMS:
            for name, share in team.services:
                replicas = service_replicas(share, cluster, at_s)
                namespace = manifests.namespace_of(team)
                try:
                    body = manifests.service(team, name, replicas)
                    self.gateway.create(DEPLOYMENTS, body, namespace=namespace)
                except AlreadyExistsError:
                    scale = {"spec": {"replicas": replicas}}
                    self.gateway.patch(DEPLOYMENTS, name, scale, namespace=namespace)

    def _pending_gpus(self) -> float:
        """Delete finished notebooks, and return the GPUs that unbound demo pods request."""
        pending = 0.0
        for pod in self._pods():
            if pod.is_finished and not pod.metadata.owner_references:
                self._delete(pod)
            elif not pod.spec.node_name:
                pending += gpus_of(pod)
        return pending

    def _pods(self) -> Iterator[Pod]:
        for team in TEAMS:
            namespace = manifests.namespace_of(team)
            yield from self.gateway.list(PODS, as_type=Pod, namespace=namespace).items

    def _delete(self, pod: Pod) -> None:
        try:
            self.gateway.delete(PODS, pod.metadata.name, namespace=pod.metadata.namespace)
        except KubeError as error:
            log.info("could not delete the finished pod %s: %s", pod.key, error)


def with_warm_start(
    day: Iterable[Arrival], cluster: Cluster, filled: float = 0.0
) -> Iterator[Arrival]:
    """Yield the first arrivals at once, until they fill most of the cluster, then the rest in time.

    Parameters
    ----------
    filled : GPUs that the workloads of an earlier run request already
    """
    shift = None
    for arrival in day:
        if shift is None and filled < WARM_START * cluster.gpus:
            filled += arrival.pods * arrival.gpus
            yield replace(arrival, at_s=0.0)
            continue
        if shift is None:
            shift = arrival.at_s
        yield replace(arrival, at_s=arrival.at_s - shift)


def measure(nodes: Iterable[Node]) -> Cluster:
    """Return the size of the part of the cluster that the demo uses."""
    counts = [
        quantity.to_units(node.status.allocatable.get(GPU, 0))
        for node in nodes
        if KEPT_FREE_LABEL not in node.metadata.labels
    ]
    return Cluster(gpus=sum(counts), per_node=max(counts, default=8) or 8)


def gpus_of(pod: Pod) -> float:
    """Return the GPUs that a pod requests, whole or a fraction."""
    fraction = pod.metadata.annotations.get(GPU_FRACTION)
    if fraction:
        return float(fraction)
    return float(
        sum(quantity.to_units(c.resources.limits.get(GPU, 0)) for c in pod.spec.containers)
    )

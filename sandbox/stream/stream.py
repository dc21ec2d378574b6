"""Plays the day on a cluster: submits each workload when its time has come, at any speed.

Like people, it looks before it submits: while far more pods wait than the cluster can take, it holds
back. Services grow and shrink with the hour. Finished notebooks are cleared away; Jobs clear
themselves. A restart goes on with new names and finds its queues and services as they are.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from kube import quantity
from kube.errors import AlreadyExistsError, KubeError, UnauthorizedError
from kube.gateway import Gateway
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
from sandbox.nodes.profiles import KEPT_FREE_LABEL
from sandbox.nodes.simpod import GPU
from sandbox.stream import manifests
from sandbox.stream.day import TEAMS, Arrival, Cluster, Work, arrivals, service_replicas

log = logging.getLogger(__name__)

RETRY_S = 2.0
LOOK_EVERY_S = 5.0
WARM_START = 0.7
PATIENCE = 0.75


@dataclass(slots=True)
class Stream:
    """The player; `speed` simulated seconds pass in one real second."""

    gateway: Gateway
    stop: threading.Event
    on_fatal: Callable[[KubeError], None]
    speed: float = 120.0
    seed: int = 1
    fractions: float = 0.0
    clock: Callable[[], float] = time.time
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _run: str = ""

    def run(self) -> None:
        """Play until stopped."""
        self._run = f"{int(self.clock()) % 36**4:x}"
        cluster = self._prepare()
        if cluster is None:
            return
        started = self.clock()
        held_s, looked_at, is_held = 0.0, 0.0, False
        day = arrivals(cluster, seed=self.seed, fractions=self.fractions)
        for arrival in with_warm_start(day, cluster, self._demand()):
            while not self.stop.is_set():
                now = self.clock()
                if now - looked_at >= LOOK_EVERY_S:
                    before, looked_at = looked_at, now
                    held_s += now - before if is_held else 0.0
                    is_held = self._look_around(cluster, (now - started) * self.speed)
                due = started + held_s + arrival.at_s / self.speed
                if not is_held and now >= due:
                    break
                self.stop.wait(min(LOOK_EVERY_S, max(0.05, due - now)))
            if self.stop.is_set():
                return
            self.submit(arrival)

    def submit(self, arrival: Arrival) -> None:
        """Create the workload of one arrival; a refusal is logged, and the day goes on."""
        name = f"{arrival.work}-{self._run}-{next(self._numbers)}"
        resource = PODS if arrival.work is Work.NOTEBOOK else JOBS
        body = manifests.workload(arrival, name, self.speed)
        try:
            self.gateway.create(resource, body, namespace=manifests.namespace_of(arrival.team))
        except KubeError as error:
            log.warning("workload %s: %s", name, error)

    def _prepare(self) -> Cluster | None:
        """Make queues and namespaces once the cluster has nodes and our kinds; None when stopped."""
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
                log.info("the demo waits for the cluster: %s", error)
            self.stop.wait(RETRY_S)
        return None

    def _create_missing(self, resource: Resource, bodies: Iterable[dict[str, Any]]) -> None:
        for body in bodies:
            try:
                self.gateway.create(resource, body)
            except AlreadyExistsError:
                continue

    def _demand(self) -> float:
        """Return the GPUs that all unfinished demo pods ask for."""
        try:
            return sum(gpus_of(pod) for pod in self._pods() if not pod.is_finished)
        except KubeError as error:
            log.info("the demo cannot look around: %s", error)
            return 0.0

    def _look_around(self, cluster: Cluster, at_s: float) -> bool:
        """Adjust services, clear away finished notebooks, and tell whether too much is waiting."""
        try:
            self._adjust_services(cluster, at_s)
            return self._waiting_gpus() > PATIENCE * cluster.gpus
        except KubeError as error:
            log.info("the demo cannot look around: %s", error)
            return True

    def _adjust_services(self, cluster: Cluster, at_s: float) -> None:
        for team in TEAMS:
            for name, part in team.services:
                replicas = service_replicas(part, cluster, at_s)
                namespace = manifests.namespace_of(team)
                try:
                    body = manifests.service(team, name, replicas)
                    self.gateway.create(DEPLOYMENTS, body, namespace=namespace)
                except AlreadyExistsError:
                    scale = {"spec": {"replicas": replicas}}
                    self.gateway.patch(DEPLOYMENTS, name, scale, namespace=namespace)

    def _waiting_gpus(self) -> float:
        """Return the GPUs that unbound demo pods wait for; finished notebooks are deleted on the way."""
        waiting = 0.0
        for pod in self._pods():
            if pod.is_finished and not pod.metadata.owner_references:
                self._clear(pod)
            elif not pod.spec.node_name:
                waiting += gpus_of(pod)
        return waiting

    def _pods(self) -> Iterator[Pod]:
        for team in TEAMS:
            namespace = manifests.namespace_of(team)
            yield from self.gateway.list(PODS, as_type=Pod, namespace=namespace).items

    def _clear(self, pod: Pod) -> None:
        try:
            self.gateway.delete(PODS, pod.metadata.name, namespace=pod.metadata.namespace)
        except KubeError as error:
            log.info("finished pod %s stays: %s", pod.key, error)


def with_warm_start(
    day: Iterable[Arrival], cluster: Cluster, filled: float = 0.0
) -> Iterator[Arrival]:
    """Let the first arrivals come at once, until they fill most of the cluster; then the day runs.

    Parameters
    ----------
    filled : GPUs that workloads of an earlier start ask for already
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
    """Return how many GPUs the nodes have that are open to the demo."""
    counts = [
        quantity.to_units(node.status.allocatable.get(GPU, 0))
        for node in nodes
        if KEPT_FREE_LABEL not in node.metadata.labels
    ]
    return Cluster(gpus=sum(counts), per_node=max(counts, default=8) or 8)


def gpus_of(pod: Pod) -> float:
    """Return the GPUs a pod asks for, whole or a fraction."""
    fraction = pod.metadata.annotations.get("gpu-fraction")
    if fraction:
        return float(fraction)
    return float(
        sum(quantity.to_units(item.resources.limits.get(GPU, 0)) for item in pod.spec.containers)
    )

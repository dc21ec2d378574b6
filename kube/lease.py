"""Leader election on a coordination Lease: one holder per name.

As in client-go, a candidate respects another holder's lease until it has seen it unchanged for the
lease's duration by its own clock; clocks of different machines are never compared. Writes carry the
resourceVersion read, so one of two candidates gets a Conflict. `step` is one attempt and takes the time as an
argument; `run` is the loop around it.
"""

from __future__ import annotations

import logging
import socket
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Event
from typing import Any

from kube.errors import AlreadyExistsError, ConflictError, KubeError, NotFoundError
from kube.gateway import Gateway
from kube.objects.cluster import Lease
from kube.resources import LEASES
from kube.values.times import format_micro_time

log = logging.getLogger(__name__)


def candidate_identity() -> str:
    """Return `<hostname>_<uuid>`, the identity KAI's components use."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTerms:
    """How long a lease lasts without renewal, and how often a candidate renews or tries to take it."""

    duration_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_s: float = 5.0


@dataclass(slots=True)
class Elector:
    """One candidate for one lease."""

    gateway: Gateway
    namespace: str
    name: str
    identity: str
    terms: LeaseTerms = LeaseTerms()
    is_leader: bool = False
    renewed_at: float = 0.0
    #: (Holder, time of renewal) as last read.
    _observed: tuple[str, datetime | None] = ("", None)
    _observed_at: float = 0.0

    def step(self, now: float, wall: datetime) -> bool:
        """Try once to take or renew the lease; return whether this candidate leads.

        Parameters
        ----------
        now : seconds of a monotonic clock
        wall : the time to write into the lease
        """
        try:
            holds_lease = self._acquire(now, wall)
        except KubeError as error:
            log.warning("lease %s/%s: %s", self.namespace, self.name, error)
            holds_lease = False
        if holds_lease:
            self.is_leader, self.renewed_at = True, now
        elif self.is_leader and now - self.renewed_at >= self.terms.renew_deadline_s:
            self.is_leader = False
        return self.is_leader

    def release(self, wall: datetime) -> None:
        """Release the lease, so that the next candidate need not wait for it to expire."""
        if not self.is_leader:
            return
        self.is_leader = False
        try:
            lease = self.gateway.get(LEASES, self.name, as_type=Lease, namespace=self.namespace)
            if lease.spec.holder_identity == self.identity:
                self._replace(lease, self._spec(wall, holder="", duration_s=1.0))
        except KubeError as error:
            log.warning("lease %s/%s was not released: %s", self.namespace, self.name, error)

    def run(self, stop: Event, *, on_lost: Callable[[], None]) -> None:
        """Take and renew the lease until `stop` is set.

        Parameters
        ----------
        on_lost : called once when a lease that was held could not be renewed in time; then `run` returns
        """
        while not stop.is_set():
            was_leader = self.is_leader
            self.step(time.monotonic(), datetime.now(UTC))
            if was_leader and not self.is_leader:
                on_lost()
                return
            stop.wait(self.terms.retry_s)
        self.release(datetime.now(UTC))

    def _acquire(self, now: float, wall: datetime) -> bool:
        try:
            lease = self.gateway.get(LEASES, self.name, as_type=Lease, namespace=self.namespace)
        except NotFoundError:
            return self._create(wall)
        holder = lease.spec.holder_identity
        observed = (holder, lease.spec.renew_time)
        if observed != self._observed:
            self._observed, self._observed_at = observed, now
        duration_s = lease.spec.lease_duration_seconds or self.terms.duration_s
        is_expired = now - self._observed_at >= duration_s
        if holder and holder != self.identity and not is_expired:
            return False
        spec = self._spec(wall, holder=self.identity, duration_s=self.terms.duration_s)
        if holder == self.identity and lease.spec.acquire_time:
            spec["acquireTime"] = format_micro_time(lease.spec.acquire_time)
            spec["leaseTransitions"] = lease.spec.lease_transitions
        else:
            spec["leaseTransitions"] = lease.spec.lease_transitions + 1
        return self._replace(lease, spec)

    def _create(self, wall: datetime) -> bool:
        spec = self._spec(wall, holder=self.identity, duration_s=self.terms.duration_s)
        body = self._body({"name": self.name, "namespace": self.namespace}, spec)
        try:
            self.gateway.create(LEASES, body, namespace=self.namespace)
        except AlreadyExistsError:
            return False
        return True

    def _replace(self, lease: Lease, spec: dict[str, Any]) -> bool:
        metadata = {
            "name": self.name,
            "namespace": self.namespace,
            "resourceVersion": lease.metadata.resource_version,
        }
        body = self._body(metadata, spec)
        try:
            self.gateway.replace(LEASES, self.name, body, namespace=self.namespace)
        except ConflictError:
            return False
        return True

    def _spec(self, wall: datetime, *, holder: str, duration_s: float) -> dict[str, Any]:
        return {
            "holderIdentity": holder,
            "leaseDurationSeconds": max(1, int(duration_s)),
            "acquireTime": format_micro_time(wall),
            "renewTime": format_micro_time(wall),
            "leaseTransitions": 0,
        }

    def _body(self, metadata: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
        return {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": metadata,
            "spec": spec,
        }

"""The fence numbers of a shard's schedulers, kept in the cluster so that they only ever rise.

A number from the broker or from the clock alone would start again from below when the broker is restarted
or the clock steps back, and the binder would refuse everything. So the last number is an annotation of a
Lease, and the next one is above it and at least the clock's seconds: above what a binder remembers from a
cluster that was emptied, and above the numbers of versions that took the clock alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kube.errors import AlreadyExistsError, ConflictError, NotFoundError
from kube.gateway import Gateway
from kube.keys import FENCE, SYSTEM_NAMESPACE
from kube.objects.cluster import Lease
from kube.resources import LEASES

NAMESPACE = SYSTEM_NAMESPACE
ATTEMPTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceLease:
    """The Lease `kaiweb-fence-<shard>`, which each new holder of the shard's lock rewrites.

    Attributes
    ----------
    holder : who takes the numbers, for people who look at the Lease
    wall : the wall clock, in seconds
    """

    gateway: Gateway
    shard: str
    holder: str
    wall: Callable[[], float] = time.time

    @property
    def name(self) -> str:
        return f"kaiweb-fence-{self.shard}"

    def next_fence(self) -> int:
        """Take a number above all earlier ones of the shard, and store it.

        Raises
        ------
        KubeError : the Lease can be neither read nor written
        """
        for _ in range(ATTEMPTS):
            try:
                return self._advance()
            except (AlreadyExistsError, ConflictError):
                continue  # another process took a number at the same time
        raise ConflictError(
            f"lease {NAMESPACE}/{self.name} was written by others at each of {ATTEMPTS} attempts"
        )

    def _advance(self) -> int:
        try:
            lease = self.gateway.get(LEASES, self.name, as_type=Lease, namespace=NAMESPACE)
        except NotFoundError:
            fence = int(self.wall())
            self.gateway.create(LEASES, self._body(fence, ""), namespace=NAMESPACE)
            return fence
        last = lease.metadata.annotations.get(FENCE, "")
        fence = max(int(last) + 1 if last.isdecimal() else 1, int(self.wall()))
        body = self._body(fence, lease.metadata.resource_version)
        self.gateway.replace(LEASES, self.name, body, namespace=NAMESPACE)
        return fence

    def _body(self, fence: int, version: str) -> dict[str, Any]:
        metadata: dict[str, Any] = {
            "name": self.name,
            "namespace": NAMESPACE,
            "annotations": {FENCE: str(fence)},
        }
        if version:
            metadata["resourceVersion"] = version
        return {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": metadata,
            "spec": {"holderIdentity": self.holder},
        }

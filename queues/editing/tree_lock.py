"""The lock for edits that change the shape of the tree: creations below a parent, moves, deletions.

Such an edit is checked against the whole tree, so two concurrent edits may each be valid and together create a
circle or an orphan. The lock is a Lease in the cluster: it holds for all web processes that edit this cluster,
needs nothing but the API server, and expires when its holder dies. A mutex keeps the threads of one process
from competing for the Lease (ADR 11).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from kube.gateway import Gateway
from kube.keys import SYSTEM_NAMESPACE
from kube.lease import Elector, LeaseTerms, candidate_identity
from queues.errors import BusyError

NAMESPACE = SYSTEM_NAMESPACE
LEASE = "kaiweb-queue-tree"
TERMS = LeaseTerms(duration_s=10.0, renew_deadline_s=10.0, retry_s=0.02)
WAIT_S = 5.0


@dataclass(slots=True)
class TreeLock:
    """The lock of one process. The elector is reused, because it has to observe how long a lease was not renewed."""

    gateway: Gateway
    elector: Elector
    mutex: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock for the block.

        Raises
        ------
        BusyError : it was not free within `WAIT_S`
        """
        deadline = time.monotonic() + WAIT_S
        if not self.mutex.acquire(timeout=WAIT_S):
            raise BusyError("other changes of the queue tree are being made")
        try:
            self._acquire(deadline)
            try:
                yield
            finally:
                self.elector.release(datetime.now(UTC))
        finally:
            self.mutex.release()

    def _acquire(self, deadline: float) -> None:
        while not self.elector.step(time.monotonic(), datetime.now(UTC)):
            if time.monotonic() >= deadline:
                raise BusyError(
                    f"the lease {NAMESPACE}/{LEASE}, which guards the queue tree,"
                    f" was not free within {WAIT_S:g} s"
                )
            time.sleep(TERMS.retry_s)


_current: TreeLock | None = None
_current_guard = threading.Lock()


def lock_of(gateway: Gateway) -> TreeLock:
    """Return this process's lock for the cluster behind the gateway."""
    global _current
    with _current_guard:
        if _current is None or _current.gateway is not gateway:
            elector = Elector(gateway, NAMESPACE, LEASE, candidate_identity(), TERMS)
            _current = TreeLock(gateway, elector)
        return _current

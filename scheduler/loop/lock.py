"""One worker per shard at a time: a lock with a short life, renewed while its holder lives.

The lock is a key with a random token that expires by itself, so a killed holder is replaced within the
time to live. A holder that froze longer than that finds its token gone and must stop writing. Its last
writes may still be on their way: each new holder gets a higher fence number, which travels on bind
requests, and the binder refuses an old fence after it has seen a newer one.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import redis
from redis.exceptions import LockError
from redis.lock import Lock

from kube.errors import KubeError

log = logging.getLogger(__name__)

TTL_S = 5.0


@dataclass(slots=True)
class ShardLock:
    """The right to schedule one shard, for one process.

    Parameters
    ----------
    next_fence : returns a number above all that were given out for the shard
    """

    client: redis.Redis
    shard: str
    next_fence: Callable[[], int]
    ttl_s: float = TTL_S
    clock: Callable[[], float] = time.monotonic
    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    fence: int = 0
    _lock: Lock = field(init=False)
    _valid_until: float = 0.0
    _stop: threading.Event | None = None
    #: (Token in the lock, since when it has been seen unchanged).
    _stuck: tuple[Any, float] | None = None

    def __post_init__(self) -> None:
        """Name the key; the renewing thread shares the token, so it is not kept per thread."""
        name = f"kaiweb:lock:{self.shard}"
        self._lock = Lock(self.client, name, timeout=self.ttl_s, thread_local=False)

    def acquire(self) -> bool:
        """Take the lock and keep it alive from a thread until `release`; False if another holds it.

        Raises
        ------
        redis.RedisError : the broker cannot be asked
        kube.errors.KubeError : the cluster gives no fence number
        """
        if self._stop is not None:
            self._stop.set()  # the thread of a lock that was lost
        requested_at = self.clock()
        if not self._lock.acquire(blocking=False, token=self.token):
            self._remove_if_stuck()
            return False
        self._stuck = None
        self._valid_until = requested_at + self.ttl_s
        self._stop = threading.Event()
        threading.Thread(
            target=self._renew_forever, args=(self._stop,), name=f"lock-{self.shard}", daemon=True
        ).start()
        try:
            self._update_fence()
        except (redis.RedisError, KubeError):
            self.release()
            raise
        return True

    def is_held(self) -> bool:
        """Return whether writing is still allowed; by our own clock, without asking anyone."""
        return self.clock() < self._valid_until

    def renew(self) -> bool:
        """Prolong the lock once; False if it is not ours any more."""
        requested_at = self.clock()
        try:
            self._lock.reacquire()
        except LockError:
            self._valid_until = 0.0
            return False
        self._valid_until = requested_at + self.ttl_s
        return True

    def release(self) -> None:
        """Release the lock, if it is still ours."""
        if self._stop is not None:
            self._stop.set()
            self._stop = None
        self._valid_until = 0.0
        try:
            self._lock.release()
        except LockError:
            log.debug("shard %s: nothing to release", self.shard)
        except redis.RedisError as error:
            log.info("lock of shard %s expires by itself: %s", self.shard, error)

    def _update_fence(self) -> None:
        """Take a new number if another process has held the lock since we last did.

        The holder's name is written first: whoever is interrupted between the two steps finds another
        name next time, or has no number, and takes a new one.
        """
        key = f"kaiweb:holder:{self.shard}"
        before = self.client.set(key, self.token, get=True)
        if self.fence and before in (self.token, self.token.encode()):
            return
        self.fence = 0
        self.fence = self.next_fence()

    def _remove_if_stuck(self) -> None:
        """Remove a lock that lives longer than any of ours and that nobody has renewed for that long.

        Somebody else set it, or its holder died just before the clock stepped back (the broker ends keys
        by the wall clock). A living holder renews, which shortens the life to ours.
        """
        remaining_ms = self.client.pttl(self._lock.name)
        token: Any = self.client.get(self._lock.name)
        if token is None or 0 <= remaining_ms <= self.ttl_s * 1000:
            self._stuck = None
            return
        now = self.clock()
        if self._stuck is None or self._stuck[0] != token:
            self._stuck = (token, now)
        elif now - self._stuck[1] > self.ttl_s:
            self._stuck = None
            log.error("shard %s: removing a lock that nobody renews", self.shard)
            try:
                self._lock.do_release(token)
            except LockError:
                log.info("shard %s: another process removed it", self.shard)

    def _renew_forever(self, stop: threading.Event) -> None:
        while not stop.wait(self.ttl_s / 3):
            try:
                if not self.renew() and not stop.is_set():
                    log.error("shard %s: the lock was lost", self.shard)
                    return
            except redis.RedisError as error:
                log.warning("shard %s: lock not renewed: %s", self.shard, error)

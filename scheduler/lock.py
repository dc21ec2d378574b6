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

log = logging.getLogger(__name__)

TTL_S = 5.0

# Takes the lock, or renews it for the same token; a change of holder raises the fence.
_TAKE = """
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if redis.call('GET', KEYS[2]) ~= ARGV[1] then
  redis.call('SET', KEYS[2], ARGV[1])
  redis.call('SETNX', KEYS[3], ARGV[3])
  redis.call('INCR', KEYS[3])
end
return tonumber(redis.call('GET', KEYS[3]))
"""
_RENEW = """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 0
"""
_RELEASE = """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
"""


@dataclass(slots=True)
class ShardLock:
    """The right to schedule one shard, for one process.

    Parameters
    ----------
    first_fence : the fence numbers begin above this; the clock's seconds, so that they keep growing when
        the broker forgets everything
    """

    client: redis.Redis
    shard: str
    ttl_s: float = TTL_S
    clock: Callable[[], float] = time.monotonic
    first_fence: int = field(default_factory=lambda: int(time.time()))
    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    fence: int = 0
    _valid_until: float = 0.0
    _stop: threading.Event | None = None

    def acquire(self) -> bool:
        """Take the lock for a cycle and keep it alive from a thread; False if another holds it.

        Raises
        ------
        redis.RedisError : the broker cannot be asked
        """
        asked = self.clock()
        answer = self._run(
            _TAKE, self._keys(), self.token, str(int(self.ttl_s * 1000)), str(self.first_fence)
        )
        if not answer:
            return False
        self.fence = int(answer)
        self._valid_until = asked + self.ttl_s
        self._stop = threading.Event()
        threading.Thread(
            target=self._renew_forever, args=(self._stop,), name=f"lock-{self.shard}", daemon=True
        ).start()
        return True

    def is_held(self) -> bool:
        """Tell whether writing is still allowed; by our own clock, without asking anyone."""
        return self.clock() < self._valid_until

    def renew(self) -> bool:
        """Prolong the lock once; False if it is not ours any more."""
        asked = self.clock()
        answer = self._run(_RENEW, self._keys()[:1], self.token, str(int(self.ttl_s * 1000)))
        if answer:
            self._valid_until = asked + self.ttl_s
        else:
            self._valid_until = 0.0
        return bool(answer)

    def release(self) -> None:
        """Give the lock back, if it is still ours."""
        if self._stop is not None:
            self._stop.set()
            self._stop = None
        self._valid_until = 0.0
        try:
            self._run(_RELEASE, self._keys()[:1], self.token)
        except redis.RedisError as error:
            log.info("lock of shard %s expires by itself: %s", self.shard, error)

    def _renew_forever(self, stop: threading.Event) -> None:
        while not stop.wait(self.ttl_s / 3):
            try:
                if not self.renew():
                    log.error("shard %s: the lock was lost", self.shard)
                    return
            except redis.RedisError as error:
                log.warning("shard %s: lock not renewed: %s", self.shard, error)

    def _keys(self) -> list[str]:
        return [f"kaiweb:{name}:{self.shard}" for name in ("lock", "holder", "fence")]

    def _run(self, script: str, keys: list[str], *arguments: str) -> Any:
        return self.client.eval(script, len(keys), *keys, *arguments)

"""Limit how often strangers can try passwords and how much work the log-in form causes.

A failed attempt counts against the pair of name and address, and against the address. It does not count
against the name alone, because then anybody could lock a person out. A password hash takes 0.4 s of a core, so
only a few are computed at once and only one for each address: one address cannot block the form for others.

Counts are kept in the cache `login`: in the memory of the web process unless configured otherwise.
"""

from __future__ import annotations

import hashlib
import ipaddress
import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from django.contrib.auth.models import User
from django.core.cache import caches
from django.core.cache.backends.base import BaseCache
from django.http import HttpRequest
from prometheus_client import Counter as Metric

from queues.access.rate_limits import AT_ONCE, RateLimit

log = logging.getLogger(__name__)

WINDOW_S = 300
PAIR_FAILURES = 5
ADDRESS_FAILURES = 30
HASHES_AT_ONCE = 2
BUSY_RETRY_S = 1
#: The limits that a refused client is told.
FAILURES = RateLimit(name="failures", quota=PAIR_FAILURES, unit="failed-log-ins", window_s=WINDOW_S)
HASHES = RateLimit(name="passwords", quota=HASHES_AT_ONCE, unit=AT_ONCE)
LOGGED_NAME_LENGTH = 64
ATTEMPTS = Metric("kaiweb_login_attempts", "Log-in attempts", labelnames=["outcome"])


@dataclass(frozen=True, slots=True)
class LoginAttempt:
    """Who tries to log in, and from where."""

    name: str
    address: str

    @property
    def network(self) -> str:
        """Return the address; of IPv6 the /64, since one machine has all of its addresses."""
        try:
            address = ipaddress.ip_address(self.address)
        except ValueError:
            return self.address
        if address.version == 4:
            return str(address)
        return str(ipaddress.ip_network((address, 64), strict=False))

    @property
    def limits(self) -> tuple[tuple[str, int], ...]:
        """Return the key of each counter of the attempt, with the number of failures it allows."""
        name = User.normalize_username(self.name).strip()
        pair = hashlib.sha256(f"{self.network} {name}".encode(errors="replace")).hexdigest()
        address = hashlib.sha256(self.network.encode()).hexdigest()
        return (f"pair:{pair}", PAIR_FAILURES), (f"address:{address}", ADDRESS_FAILURES)

    @property
    def log_fields(self) -> dict[str, str]:
        """Return the fields of a log line; the name is clipped and printable, as anybody can send one."""
        return {"user": ascii(self.name[:LOGGED_NAME_LENGTH]), "address": self.address}


def attempt_of(request: HttpRequest, name: str = "") -> LoginAttempt:
    """Return the attempt that a request makes; without a name where another system knows who it is."""
    return LoginAttempt(name, request.META.get("REMOTE_ADDR", ""))


@dataclass(slots=True)
class HashSlots:
    """The slots in which passwords are checked."""

    total: int = HASHES_AT_ONCE
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _taken_by_network: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def take(self, attempt: LoginAttempt) -> Iterator[bool]:
        """Yield whether a slot was free; never wait for one."""
        network = attempt.network
        with self._lock:
            is_free = (
                not self._taken_by_network[network] and self._taken_by_network.total() < self.total
            )
            self._taken_by_network[network] += is_free
        try:
            yield is_free
        finally:
            with self._lock:
                self._taken_by_network[network] -= is_free
                self._taken_by_network += Counter()  # removes zero counts


SLOTS = HashSlots()


def locked_for_s(attempt: LoginAttempt) -> int:
    """Return in how many seconds the attempt is allowed; 0 if it is allowed now."""
    waits = [
        max(1, round(_cache().get(f"{key}:until", 0) - time.time()))
        for key, allowed in attempt.limits
        if _cache().get(key, 0) >= allowed
    ]
    if waits:
        ATTEMPTS.labels("locked").inc()
    return max(waits, default=0)


def note_failure(attempt: LoginAttempt) -> None:
    """Count a wrong password, and log it."""
    ATTEMPTS.labels("failed").inc()
    log.warning("log-in failed", extra=attempt.log_fields)
    for key, allowed in attempt.limits:
        if _cache().add(key, 0, WINDOW_S):
            _cache().set(f"{key}:until", time.time() + WINDOW_S, WINDOW_S)
        try:
            failures = _cache().incr(key)
        except ValueError:  # the window ended between the two calls
            continue
        if failures == allowed:
            counter = key.partition(":")[0]
            log.warning("log-in locked for this %s", counter, extra=attempt.log_fields)


def note_success(attempt: LoginAttempt) -> None:
    """Reset the failures of the pair, not those of the address: one known account would reset them for all names."""
    ATTEMPTS.labels("ok").inc()
    (pair, _allowed), _address = attempt.limits
    _cache().delete_many([pair, f"{pair}:until"])


def note_busy() -> None:
    """Count an attempt for which no slot was free."""
    ATTEMPTS.labels("busy").inc()


def _cache() -> BaseCache:
    return caches["login"]

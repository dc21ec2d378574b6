"""Start the watches that keep a worker's store in step with the cluster."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from threading import Event
from typing import Any

from kube.errors import KubeError
from kube.gateway import Gateway
from kube.process.progress import WAIT_S, track
from kube.store import Store
from kube.watch import Reflector
from scheduler.settings.watched import WATCHED

log = logging.getLogger(__name__)
SYNC_TIMEOUT_S = 60.0


def start_watches(
    gateway: Gateway, store: Store, stop: Event, *, on_fatal: Callable[[KubeError], None]
) -> None:
    """Start a thread for every kind that a scheduler reads; each follows it until `stop` is set."""
    for kind in WATCHED:
        reflector: Reflector[Any] = Reflector(
            gateway,
            kind.resource,
            kind.as_type,
            store,
            field_selector=kind.field_selector,
            is_optional=kind.is_optional,
        )
        reflector.start(stop, on_fatal=on_fatal)


def wait_for_first_lists(store: Store, shard: str) -> None:
    """Wait until every watched kind has been listed once, but at most a minute."""
    track().beat("waiting for first lists", WAIT_S)
    if not store.wait_until_synced(SYNC_TIMEOUT_S):
        log.warning("shard %s: not all kinds have been listed after %.0f s", shard, SYNC_TIMEOUT_S)
    # The listed objects stay for as long as the process: the garbage collector need not visit them again.
    gc.collect()
    gc.freeze()

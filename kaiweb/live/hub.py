"""One reader of the change log for each process, whatever the number of sockets.

The hub reads new changes and their present states once, and offers them to every subscription. A wake-up over
the channel layer makes it read at once; without one it reads every second, so that a broker that is down only
delays the dashboard. The hub runs only while there are listeners.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async
from channels.layers import get_channel_layer

from kaiweb.live.frames import READ_CHANGES, read_states
from kaiweb.live.subscription import INTERVAL_S, Batch
from kaiweb.live.topics import CLUSTER, Topic
from queues import live

log = logging.getLogger(__name__)

POLL_S = 1.0
CLUSTER_S = 1.0
# Stands for any change: the cluster item is computed from all kinds.
ANY_CHANGE = live.LogEntry(0, "", "")


class Listener(Protocol):
    """What the hub needs of a socket."""

    def topics(self) -> Iterable[Topic]: ...

    def offer(self, batch: Batch) -> None: ...

    def expire(self) -> None: ...


class Hub:
    """Reads the change log while it has listeners."""

    def __init__(self) -> None:
        self._listeners: set[Listener] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._woken = asyncio.Event()
        self._position = -1
        self._epoch = ""
        self._is_new_epoch = False
        self._cluster_at = float("-inf")
        self._is_cluster_due = False

    async def join(self, listener: Listener) -> None:
        """Offer batches to this listener from now on."""
        self._listeners.add(listener)
        if not self._tasks:
            self._epoch, self._position = await database_sync_to_async(_end_of_log)()
            self._tasks = [
                asyncio.create_task(self._forever(self._read_once), name="live-hub"),
                asyncio.create_task(self._forever(self._receive_wake_ups), name="live-wake"),
            ]

    async def leave(self, listener: Listener) -> None:
        """Offer no more; without listeners the reading stops."""
        self._listeners.discard(listener)
        if self._listeners:
            return
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def wake(self) -> None:
        """Read the log soon."""
        self._woken.set()

    async def _forever(self, step: Callable[[], Awaitable[None]]) -> None:
        """Repeat a step. Log a failure (database or broker away) and try again after a pause."""
        while True:
            try:
                await step()
            except asyncio.CancelledError:
                raise
            except Exception as error:  # entry point of a task, whose errors nobody else reads
                log.warning("live hub: %s: %s", type(error).__name__, error)
                await asyncio.sleep(POLL_S)

    async def _receive_wake_ups(self) -> None:
        layer = get_channel_layer()
        assert layer is not None
        channel = await layer.new_channel("live")
        await layer.group_add(live.GROUP, channel)
        try:
            while True:
                await layer.receive(channel)
                self._woken.set()
        finally:
            await asyncio.shield(_discard(layer, channel))

    async def _read_once(self) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._woken.wait(), POLL_S)
        self._woken.clear()
        batch = await database_sync_to_async(self._read)()
        if self._is_new_epoch:
            self._is_new_epoch = False
            for listener in tuple(self._listeners):
                listener.expire()
        if batch is None:
            return
        self._position = batch.position
        for listener in tuple(self._listeners):
            listener.offer(batch)
        # Changes during this pause share one frame, and are read without another wake-up.
        await asyncio.sleep(INTERVAL_S)
        self._woken.set()

    def _read(self) -> Batch | None:
        epoch = live.epoch()
        self._is_new_epoch = self._is_new_epoch or epoch != self._epoch
        self._epoch = epoch
        changes = live.changes_after(self._position, limit=READ_CHANGES)
        keys_by_family = self._subscribed_keys()
        # Recompute the cluster item at most once a second; a skipped update is sent later.
        self._is_cluster_due = CLUSTER in keys_by_family and (self._is_cluster_due or bool(changes))
        now = time.monotonic()
        reads_cluster = self._is_cluster_due and now - self._cluster_at >= CLUSTER_S
        if reads_cluster:
            self._is_cluster_due, self._cluster_at = False, now
        else:
            keys_by_family.pop(CLUSTER, None)
        if changes:
            return read_states(changes, changes[-1].position, keys_by_family)
        if reads_cluster:
            return read_states([ANY_CHANGE], self._position, {CLUSTER: None})
        return None

    def _subscribed_keys(self) -> dict[str, Collection[str] | None]:
        """Return the families with subscriptions, each with its keys if none asks for all of it."""
        keys_by_family: dict[str, set[str] | None] = {}
        for listener in tuple(self._listeners):
            for topic in listener.topics():
                name = topic.family.name
                if not topic.key:
                    keys_by_family[name] = None
                elif name not in keys_by_family:
                    keys_by_family[name] = {topic.key}
                elif (keys := keys_by_family[name]) is not None:
                    keys.add(topic.key)
        return dict(keys_by_family)


def _end_of_log() -> tuple[str, int]:
    return live.epoch(), live.position()


async def _discard(layer: Any, channel: str) -> None:
    try:
        await layer.group_discard(live.GROUP, channel)
    except Exception as error:  # the broker is away and has lost the group anyway
        log.debug("live hub: %s", error)


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


def hub() -> Hub:
    """Return the hub of the running event loop."""
    loop = asyncio.get_running_loop()
    if loop not in _hubs:
        _hubs[loop] = Hub()
    return _hubs[loop]

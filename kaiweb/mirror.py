"""A process of the mirror: one watch for each kind, and one writer of rows. There may be several (ADR 42).

It is put together here because it joins what three packages know: the kinds of `queues` and `binder`, and the
reasons of `scheduler`.
"""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from django.db import OperationalError, close_old_connections
from django.utils import timezone

from binder import mirror as binder_mirror
from kube.errors import KubeError, UnauthorizedError
from kube.gateway import Gateway
from kube.objects.config import Config
from kube.objects.meta import KubeObject
from kube.process import progress
from kube.resources import CONFIGS, NAMESPACES
from kube.watch import Reflector
from queues import live
from queues.mirror.feed import MessageQueue, Mirror, heartbeat_of, write_heartbeat
from queues.mirror.handover import touched_between
from queues.mirror.identity import start_with_cluster
from queues.mirror.kinds import KINDS
from queues.mirror.lone_pods import show_lone_pods
from queues.mirror.part import Part
from queues.mirror.rollup import ReasonSources, Touched
from queues.mirror.turns import DivisionChangedError, turn
from queues.mirror.writer import MirroredKind, Writer
from scheduler import mirror as scheduler_mirror
from scheduler.settings.shard import CONFIG_NAME

log = logging.getLogger(__name__)

CONTACT_EVERY_S = 2.0
#: How long the writer waits for messages; with several workers shorter, because it must see what others touched.
TAKE_S, TAKE_AMONG_SEVERAL_S = 0.5, 0.1
#: How many messages are written between two looks at what others touched.
MESSAGES_AMONG_SEVERAL = 1_000
DATABASE_PAUSE_S = 1.0
CLUSTER_PAUSE_S = 1.0
LONE_PODS_EVERY_S = 1.0
REASON_SOURCES = ReasonSources(
    bind_errors=binder_mirror.bind_errors, standings=scheduler_mirror.standings
)
ALL_KINDS: tuple[MirroredKind, ...] = (*KINDS, binder_mirror.KIND)


def follow(cluster: Gateway, stop: threading.Event, part: Part | None = None) -> Exception | None:
    """Mirror the cluster until `stop` is set; return the error that ended it, None without one.

    part : what this worker writes; by default everything
    """
    errors: list[Exception] = []

    def on_fatal(error: Exception) -> None:
        errors.append(error)
        stop.set()

    part = _wait_for_cluster(cluster, stop, on_fatal, part or Part())
    if part is None:
        return errors[0] if errors else None
    message_queue = MessageQueue()
    for kind in kinds_of(part):
        reflector = Reflector(
            cluster,
            kind.resource,
            kind.as_type,
            message_queue,
            field_selector=kind.field_selector,
            is_optional=kind.is_optional,
        )
        reflector.start(stop, on_fatal=on_fatal)
    contact = Contact()
    watch_contact = partial(_watch_contact, cluster, stop, contact)
    # A daemon: a request may hang for minutes, and nothing is lost with it.
    threading.Thread(target=watch_contact, name="cluster-contact", daemon=True).start()
    upkeep = Upkeep(cluster, Writer(REASON_SOURCES, part=part), contact)
    try:
        _write_rows(message_queue, upkeep, stop)
    except DivisionChangedError as error:
        on_fatal(error)
    return errors[0] if errors else None


def kinds_of(part: Part) -> tuple[MirroredKind, ...]:
    """Return the kinds that a worker follows; those that are not divided are the first one's."""
    return tuple(kind for kind in ALL_KINDS if part.is_first or kind.divided_by is not None)


@dataclass(slots=True)
class Contact:
    """When the cluster last answered: one thread writes it, another reads it."""

    answered_at: datetime | None = None


@dataclass(slots=True)
class Upkeep:
    """What the writer does between batches: heartbeat row, reasons and sums that others changed, lone pods.

    The writer's thread writes the heartbeat, not the one that asks the cluster. So the heartbeat also stops
    when rows can no longer be written.
    """

    cluster: Gateway
    writer: Writer
    contact: Contact = field(default_factory=Contact)
    clock: Callable[[], float] = time.monotonic
    #: Up to where the live log was read.
    read_position: int = 0
    next_lone_pods_at: float = 0.0

    def start(self) -> None:
        """Go on where the last run of this worker stopped reading; sum up the whole part if that is unknown.

        One worker alone reads the whole log: it hands over nothing to itself, and reasons are few.
        """
        part = self.writer.part
        heartbeat = heartbeat_of(part)
        position = live.position() if heartbeat is None else heartbeat.version
        if heartbeat is None:
            self.writer.refresh_all()
        if not part.is_alone:
            self.read_position = position

    def run(self) -> None:
        """Do what is due."""
        progress.track().beat("upkeep", progress.WAIT_S)
        part = self.writer.part
        answered_at, self.contact.answered_at = self.contact.answered_at, None
        if answered_at is not None:
            with turn(part):
                write_heartbeat(answered_at, part, self.read_position)
        self._follow_log()
        if part.is_first and self.clock() >= self.next_lone_pods_at:
            self.next_lone_pods_at = self.clock() + LONE_PODS_EVERY_S
            show_lone_pods(_scheduler_name(self.cluster), timezone.now())

    def _follow_log(self) -> None:
        """Compute what others changed since the last run: the scheduler's reasons, and what workers handed over."""
        if live.position() == self.read_position:
            return
        is_alone = self.writer.part.is_alone
        if not is_alone and not live.reaches_back_to(self.read_position):
            log.warning("the live log was cut before it was read: all sums are computed again")
            newest = live.position()
            self.writer.refresh_all()
            self.read_position = newest
        newest, groups = scheduler_mirror.changed_since(self.read_position)
        touched = Touched() if is_alone else touched_between(self.read_position, newest)
        touched.groups.update(groups)
        self.writer.refresh(touched)
        self.read_position = newest


def _write_rows(message_queue: MessageQueue, upkeep: Upkeep, stop: threading.Event) -> None:
    """Write what the watches put into the queue until `stop` is set."""
    mirror = Mirror(ALL_KINDS, upkeep.writer)
    take = partial(message_queue.take, timeout_s=TAKE_S)
    if not upkeep.writer.part.is_alone:
        take = partial(
            message_queue.take,
            timeout_s=min(TAKE_S, TAKE_AMONG_SEVERAL_S),
            max_messages=MESSAGES_AMONG_SEVERAL,
        )
    is_first = True
    _retry(upkeep.start, stop)
    while not stop.is_set():
        progress.track().beat("waiting for changes")
        messages = take()
        if messages:
            _retry(partial(mirror.consume, messages), stop)
            if is_first:
                # The first lists stay for good, so the garbage collector need not scan them again.
                gc.freeze()
                is_first = False
        _retry(upkeep.run, stop)


def _scheduler_name(cluster: Gateway) -> str:
    """Return the `schedulerName` of pods that are ours; the default if the cluster does not tell."""
    default = Config()
    try:
        config = cluster.get(CONFIGS, CONFIG_NAME, as_type=Config)
    except KubeError:
        config = default
    return config.spec.global_.scheduler_name or default.spec.global_.scheduler_name


def _wait_for_cluster(
    cluster: Gateway, stop: threading.Event, on_fatal: Callable[[Exception], None], part: Part
) -> Part | None:
    """Wait until the cluster answers, and drop rows of another cluster; return None if stopped meanwhile.

    The result is the part with the uid of the cluster. All workers but the first wait for the first one.
    """
    is_said = False
    while not stop.is_set():
        progress.track().beat("waiting for the cluster", progress.WAIT_S)
        try:
            ready_part = start_with_cluster(cluster, ALL_KINDS, timezone.now(), part)
        except UnauthorizedError as error:
            on_fatal(error)
        except (KubeError, OperationalError) as error:
            log.warning("waiting for the cluster: %s", error)
            stop.wait(CLUSTER_PAUSE_S)
        else:
            if ready_part is not None:
                return ready_part
            if not is_said:
                log.warning(
                    "%s of the mirror waits until worker 0 has started with %d workers on this cluster",
                    part, part.count,
                )  # fmt: skip
                is_said = True
            stop.wait(CLUSTER_PAUSE_S)
    return None


def _watch_contact(cluster: Gateway, stop: threading.Event, contact: Contact) -> None:
    """Ask the cluster every two seconds, so that the dashboard can show data as delayed when it is away."""
    while not stop.wait(CONTACT_EVERY_S):
        try:
            cluster.get(NAMESPACES, "default", as_type=KubeObject)
            contact.answered_at = timezone.now()
        except KubeError as error:
            log.debug("the cluster does not answer: %s", error)


def _retry(write: Callable[[], None], stop: threading.Event) -> None:
    """Repeat a write while the database is away, because a dropped message would leave a gap."""
    while not stop.is_set():
        progress.track().beat("writing rows", progress.WAIT_S)
        try:
            close_old_connections()
            write()
        except OperationalError as error:
            log.warning("database write failed, retrying: %s", error)
            stop.wait(DATABASE_PAUSE_S)
        else:
            return

"""`kaiweb mirror_cluster`: one watch per kind, one writer, until a signal or refused credentials."""

from __future__ import annotations

import gc
import logging
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, close_old_connections
from django.utils import timezone

from binder import mirror as binder_mirror
from kube import progress
from kube.errors import KubeError, UnauthorizedError
from kube.gateway import Gateway
from kube.objects.config import Config
from kube.objects.meta import KubeObject
from kube.resources import CONFIGS, NAMESPACES
from kube.watch import Reflector
from queues.cluster import gateway
from queues.mirror.feed import Line, Mirror, beat
from queues.mirror.identity import start_with_cluster
from queues.mirror.kinds import KINDS
from queues.mirror.lone_pods import show_lone_pods
from queues.mirror.rollup import Witnesses
from queues.mirror.writer import MirroredKind, Writer
from scheduler import mirror as scheduler_mirror
from scheduler.settings.shard import CONFIG_NAME

log = logging.getLogger(__name__)

BEAT_S = 2.0
TAKE_S = 0.5
DATABASE_PAUSE_S = 1.0
MEET_PAUSE_S = 1.0
LOOK_S = 1.0
WITNESSES = Witnesses(bind_errors=binder_mirror.bind_errors, standings=scheduler_mirror.standings)
ALL_KINDS: tuple[MirroredKind, ...] = (*KINDS, binder_mirror.KIND)


class Command(BaseCommand):
    """Keep the database in step with the cluster."""

    help = "Mirror the cluster's objects into the database (the only writer of mirror rows)."
    # The checks load every view; CI runs them, a start need not wait for them.
    requires_system_checks = ()

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Follow until told to stop; end with an error when following became impossible."""
        progress.start("mirror", Path(settings.KAIWEB_HOME))
        stop = threading.Event()

        def on_signal(_number: int, _frame: FrameType | None) -> None:
            stop.set()

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, on_signal)
        fault = follow(gateway(), stop)
        progress.stop()
        if fault is not None:
            raise CommandError(f"the mirror cannot go on: {fault}")


def follow(cluster: Gateway, stop: threading.Event) -> Exception | None:
    """Start a thread for each kind and write in this one; return what ended it, None if told to stop."""
    faults: list[Exception] = []

    def on_fatal(error: Exception) -> None:
        faults.append(error)
        stop.set()

    if not _meet(cluster, stop, on_fatal):
        return faults[0] if faults else None
    line = Line()
    for kind in ALL_KINDS:
        reflector = Reflector(
            cluster,
            kind.resource,
            kind.as_type,
            line,
            field_selector=kind.field_selector,
            is_optional=kind.is_optional,
        )
        _start(f"watch-{kind.resource.plural}", partial(_watch, reflector, stop, on_fatal))
    pulse = Pulse()
    _start("pulse", partial(_take_pulse, cluster, stop, pulse))
    mirror = Mirror(ALL_KINDS, Writer(WITNESSES))
    chores = Chores(cluster, mirror.writer, pulse=pulse)
    is_frozen = False
    while not stop.is_set():
        progress.track().beat("waiting for changes")
        messages = line.take(timeout_s=TAKE_S)
        if messages:
            _write(partial(mirror.consume, messages), stop)
            if not is_frozen:
                gc.freeze()
                is_frozen = True
        _write(chores.run, stop)
    return faults[0] if faults else None


@dataclass(slots=True)
class Pulse:
    """When the cluster last answered, as one thread notes it and another reads it."""

    answered_at: datetime | None = None


@dataclass(slots=True)
class Chores:
    """What the writer does besides following the cluster: hear the scheduler, look for lone pods, beat.

    The writer notes the pulse and not the thread that takes it: a mirror that writes no more is not alive,
    however well the cluster answers.
    """

    cluster: Gateway
    writer: Writer
    pulse: Pulse = field(default_factory=Pulse)
    clock: Callable[[], float] = time.monotonic
    heard: int = 0
    next_look: float = 0.0

    def run(self) -> None:
        """Do what is due."""
        progress.track().beat("chores", progress.WAIT_S)
        answered_at, self.pulse.answered_at = self.pulse.answered_at, None
        if answered_at is not None:
            beat(answered_at)
        position, groups = scheduler_mirror.changed_since(self.heard)
        self.writer.judge_again(groups)
        self.heard = position
        if self.clock() >= self.next_look:
            self.next_look = self.clock() + LOOK_S
            show_lone_pods(_scheduler_name(self.cluster), timezone.now())


def _scheduler_name(cluster: Gateway) -> str:
    """Return by which name pods ask for us; the default where the cluster does not say."""
    default = Config()
    try:
        config = cluster.get(CONFIGS, CONFIG_NAME, as_type=Config)
    except KubeError:
        config = default
    return config.spec.global_.scheduler_name or default.spec.global_.scheduler_name


def _meet(cluster: Gateway, stop: threading.Event, on_fatal: Callable[[Exception], None]) -> bool:
    """Wait for the cluster to answer and make sure that the rows are its own; False if told to stop."""
    while not stop.is_set():
        progress.track().beat("waiting for the cluster", progress.WAIT_S)
        try:
            start_with_cluster(cluster, ALL_KINDS, timezone.now())
        except UnauthorizedError as error:
            on_fatal(error)
        except (KubeError, OperationalError) as error:
            log.warning("waiting for the cluster: %s", error)
            stop.wait(MEET_PAUSE_S)
        else:
            return True
    return False


def _start(name: str, work: Callable[[], None]) -> None:
    # Daemons: a watch may sit in a read for minutes, and nothing is lost with it.
    threading.Thread(target=work, name=name, daemon=True).start()


def _watch(
    reflector: Reflector[Any], stop: threading.Event, on_fatal: Callable[[Exception], None]
) -> None:
    """Follow one kind; a kind that silently stopped would leave its rows stale for ever."""
    try:
        reflector.run(stop, on_fatal=on_fatal)
    except Exception as error:  # entry point of a thread: the process must hear of it
        log.exception("the watch of %s ended", reflector.resource.plural)
        on_fatal(error)


def _take_pulse(cluster: Gateway, stop: threading.Event, pulse: Pulse) -> None:
    """Note every two seconds that the cluster answers: data grow old on screen when it does not."""
    while not stop.wait(BEAT_S):
        try:
            cluster.get(NAMESPACES, "default", as_type=KubeObject)
            pulse.answered_at = timezone.now()
        except KubeError as error:
            log.debug("no pulse: %s", error)


def _write(work: Callable[[], None], stop: threading.Event) -> None:
    """Do it again and again while the database is away: dropping messages would leave gaps."""
    while not stop.is_set():
        progress.track().beat("writing rows", progress.WAIT_S)
        try:
            close_old_connections()
            work()
        except OperationalError as error:
            log.warning("the database does not take the rows: %s", error)
            stop.wait(DATABASE_PAUSE_S)
        else:
            return

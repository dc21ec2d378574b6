"""`kaiweb mirror_cluster`: one watch per kind, one writer, until a signal or refused credentials."""

from __future__ import annotations

import gc
import logging
import signal
import threading
from types import FrameType
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError
from django.utils import timezone

from binder import mirror as binder_mirror
from kube.errors import KubeError
from kube.watch import Reflector
from queues.cluster import gateway
from queues.mirror.feed import Line, Message, Mirror, beat
from queues.mirror.kinds import KINDS
from queues.mirror.writer import Writer

log = logging.getLogger(__name__)

BEAT_S = 2.0
DATABASE_PAUSE_S = 1.0


class Command(BaseCommand):
    """Keep the database in step with the cluster."""

    help = "Mirror the cluster's objects into the database (the only writer of mirror rows)."
    # The checks load every view; CI runs them, a start need not wait for them.
    requires_system_checks = ()

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Start a watch thread for each kind and write in this thread."""
        stop = threading.Event()
        fatal: list[KubeError] = []

        def on_fatal(error: KubeError) -> None:
            fatal.append(error)
            stop.set()

        def on_signal(_number: int, _frame: FrameType | None) -> None:
            stop.set()

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, on_signal)
        line = Line()
        kinds = (*KINDS, binder_mirror.KIND)
        for kind in kinds:
            reflector = Reflector(
                gateway(), kind.resource, kind.as_type, line, is_optional=kind.is_optional
            )
            threading.Thread(
                target=reflector.run,
                args=(stop,),
                kwargs={"on_fatal": on_fatal},
                name=f"watch-{kind.resource.plural}",
                daemon=True,  # a watch may sit in a read for minutes; nothing is lost with it
            ).start()
        mirror = Mirror(kinds, Writer(bind_errors=binder_mirror.bind_errors))
        self._write(mirror, line, stop)
        if fatal:
            raise CommandError(f"the cluster refuses our credentials: {fatal[0]}")

    def _write(self, mirror: Mirror, line: Line, stop: threading.Event) -> None:
        last_beat = timezone.now()
        is_frozen = False
        while not stop.is_set():
            messages = line.take(timeout_s=0.5)
            if messages:
                _consume(mirror, messages, stop)
                if not is_frozen:
                    gc.freeze()
                    is_frozen = True
            now = timezone.now()
            if (now - last_beat).total_seconds() >= BEAT_S:
                last_beat = now
                beat(now)


def _consume(mirror: Mirror, messages: list[Message], stop: threading.Event) -> None:
    """Write the messages, again and again while the database is away: dropping them would leave gaps."""
    while not stop.is_set():
        try:
            mirror.consume(messages)
        except OperationalError as error:
            log.warning("the database does not take the rows: %s", error)
            stop.wait(DATABASE_PAUSE_S)
        else:
            return

"""The binding worker: watches bind requests and carries out several at the same time.

Three kinds of work share the threads: attempts, which bind pods; synchronising reservation pods; and reports,
which write status, condition and event. Attempts come first: while they come in, few threads write reports and one
writes events, so that in a burst the API server's time goes to pods that have no node yet. All state is in the cluster: after a crash every request is found there again, and `sweep` queues
requests whose event was missed or which are due for another attempt.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from queue import PriorityQueue
from typing import Any

from binder.params import BinderParams
from binder.reconcile import Fences, retry_delay_s
from binder.reports import BindResult, Reports
from binder.reservations.groups import add_indexes, groups_of, is_over
from binder.reservations.reserve import Reservations
from binder.services import BindService
from binder.turns import Turns
from kube.errors import KubeError, UnauthorizedError
from kube.events import Pace, Recorder
from kube.gateway import EventType, Gateway
from kube.lease import candidate_identity
from kube.objects.bindrequest import BindRequest
from kube.objects.meta import KubeObject
from kube.objects.node import Node
from kube.objects.pod import Pod
from kube.process.progress import WAIT_S, track
from kube.resources import BINDREQUESTS, NODES, PODS, Resource
from kube.store import Store
from kube.watch import Reflector

log = logging.getLogger(__name__)

COMPONENT = "binder"
#: Priorities of the queue; a lower number goes first.
ATTEMPT, SYNC, REPORT, END = 0, 1, 2, 3
#: Two events tell of each pod, so their pace must be twice the binds that an API server can take.
EVENTS_PER_S, EVENT_WRITERS = 500.0, 4
#: For so long after an attempt was queued, at most so many threads write reports.
BURST_S, REPORTERS_IN_BURST = 0.2, 2
SYNC_TIMEOUT_S = 15.0
SYNC_EVERY_S = 30.0
WATCHED: tuple[tuple[Resource, type[KubeObject]], ...] = (
    (BINDREQUESTS, BindRequest),
    (PODS, Pod),
    (NODES, Node),
)


@dataclass(slots=True)
class BinderWorker:
    """The binder of one process.

    Parameters
    ----------
    on_fatal : called when the API server refuses our credentials for good
    queue : (priority, sequence number, work); work None ends a thread

    The private fields name bind requests by key: `_busy` those queued or running, `_outdated` those of a
    scheduler that lost its shard, `_retry_at` the time on `clock` before which a failed one is not tried again.
    `_set_back` holds reports for which a report under way must end first.
    """

    gateway: Gateway
    params: BinderParams
    on_fatal: Callable[[KubeError], None]
    clock: Callable[[], float] = time.monotonic
    store: Store = field(default_factory=lambda: Store([resource for resource, _ in WATCHED]))
    queue: PriorityQueue[tuple[int, int, Callable[[], None] | None]] = field(
        default_factory=PriorityQueue
    )
    recorder: Recorder = field(init=False)
    reports: Reports = field(init=False)
    service: BindService = field(init=False)
    reservations: Reservations = field(init=False)
    turns: Turns = field(init=False)
    _stop: threading.Event = field(default_factory=threading.Event)
    _sequence: Any = field(default_factory=itertools.count)
    _busy: set[str] = field(default_factory=set)
    _outdated: set[str] = field(default_factory=set)
    _retry_at: dict[str, float] = field(default_factory=dict)
    _sync_at: float = SYNC_EVERY_S
    _attempt_at: float = float("-inf")
    _reporters: int = 0
    _set_back: deque[Callable[[], None]] = field(default_factory=deque)
    _fences: Fences = field(default_factory=Fences)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Connect the parts and subscribe to the store."""
        pace = Pace(per_s=EVENTS_PER_S)
        self.recorder = Recorder(
            self.gateway, COMPONENT, writers=EVENT_WRITERS, pace=pace, is_busy=self._is_burst
        )
        self.reservations = Reservations(self.gateway, self.store, self.params.reservation)
        self.turns = Turns(self.gateway, candidate_identity(), self.clock)
        self.reports = Reports(self.gateway, self.store, self.recorder)
        self.service = BindService(
            self.gateway, self.store, self.reports, self.params, self.reservations, self.turns
        )
        add_indexes(self.store)
        self.store.subscribe(self._on_change)

    def start(self) -> None:
        """Start watches and threads; return when the first lists are in and reservations are in sync."""
        self.recorder.start()
        for resource, as_type in WATCHED:
            reflector: Reflector[Any] = Reflector(self.gateway, resource, as_type, self.store)
            reflector.start(self._stop, on_fatal=self.on_fatal)
        # With incomplete lists some reservations would seem to have no users, and would be deleted.
        track().beat("waiting for first lists", WAIT_S)
        while not self.store.wait_until_synced(SYNC_TIMEOUT_S) and not self._stop.is_set():
            track().beat("waiting for first lists", WAIT_S)
            log.warning("the binder waits for its first lists")
        self._note_shared_nodes()
        self._guarded(self.reservations.sync_all)
        for number in range(self.params.concurrency):
            self._spawn(f"bind-{number}", self._work)
        self.sweep()
        self._spawn("sweep", self._sweep_forever)

    def stop(self, timeout_s: float = 5.0) -> None:
        """End the threads; wait up to `timeout_s` for the running work of each."""
        self._stop.set()
        for _ in range(self.params.concurrency):
            self._put(END, None)
        for thread in self._threads:
            if thread.name.startswith("bind-"):
                thread.join(timeout=timeout_s)
        self.recorder.stop()

    def sweep(self) -> int:
        """Queue every unfinished request whose retry delay has passed; return how many were queued.

        Now and then all reservations are synchronised too: one made by a binder that had stood still has no
        event that would remove it.
        """
        now = self.clock()
        queued = 0
        for key, request in self.store.view().of(BINDREQUESTS, BindRequest).items():
            is_due = self._retry_at.get(key, 0.0) <= now
            if is_due and request.status.phase != "Succeeded" and not request.is_failed:
                queued += self._enqueue(key)
        if now >= self._sync_at:
            self._sync_at = now + SYNC_EVERY_S
            self._put(SYNC, lambda: self._guarded(self.reservations.sync_all))
        return queued

    def _note_shared_nodes(self) -> None:
        """Note the listed requests: listeners hear of them only after waiters for the list have gone on."""
        for request in self.store.view().of(BINDREQUESTS, BindRequest).values():
            self.reservations.shared_nodes.note(request)

    # ----------------------------------------------------------------------------------- listening

    def _on_change(self, resource: Resource, event: EventType, value: Any) -> None:
        if resource == BINDREQUESTS:
            self._on_request(event, value)
        elif resource == PODS and (event is EventType.DELETED or value.is_finished):
            self._sync_groups(groups_of(value))

    def _on_request(self, event: EventType, request: BindRequest) -> None:
        self.reservations.shared_nodes.note(request)
        if event is EventType.DELETED:
            self._retry_at.pop(request.key, None)
            self._outdated.discard(request.key)
            self.turns.forget(request.key)
        if event is EventType.DELETED or is_over(request):
            self._sync_groups(list(request.spec.selected_gpu_groups))
            return
        if request.status.phase in ("", "Pending"):
            if self._fences.record(request):
                self._outdated.add(request.key)
            self._enqueue(request.key)

    def _sync_groups(self, groups: list[str]) -> None:
        if not groups:
            return
        self._put(SYNC, lambda: self._guarded(lambda: self.reservations.sync_groups(groups)))

    # ------------------------------------------------------------------------------------- working

    def _enqueue(self, key: str) -> bool:
        """Queue an attempt, unless one for the request is queued or running; return whether it was queued."""
        with self._lock:
            if key in self._busy:
                return False
            self._busy.add(key)
            self._attempt_at = self.clock()
        self._put(ATTEMPT, lambda: self._attempt(key))
        return True

    def _attempt(self, key: str) -> None:
        request: BindRequest | None = self.store.get(BINDREQUESTS, key)
        result: BindResult | None = None
        try:
            if request is not None and track().take(BINDREQUESTS.kind, request, COMPONENT, WAIT_S):
                result = self.service.attempt(request, is_outdated=key in self._outdated)
        except UnauthorizedError as error:
            self.on_fatal(error)
        except Exception as error:  # a defect in one attempt must not end the thread
            log.exception("bind request %s", key)
            if request is not None:
                text = f"Internal Error: {error}"
                node = request.spec.selected_node
                result = BindResult(request=request, pod=None, node=node, error=text)
        if result is None:
            self._done(key)
        else:
            self._put(REPORT, partial(self._report_in_turn, partial(self._report, key, result)))

    def _report_in_turn(self, report: Callable[[], None]) -> None:
        """Write a report, or set it back in a burst; each report that ends lets others go on."""
        with self._lock:
            if self._is_burst() and self._reporters >= REPORTERS_IN_BURST:
                self._set_back.append(report)
                return
            self._reporters += 1
        try:
            report()
        finally:
            with self._lock:
                self._reporters -= 1
                count = min(1, len(self._set_back)) if self._is_burst() else len(self._set_back)
                again = [self._set_back.popleft() for _ in range(count)]
            for waiting in again:
                self._put(REPORT, partial(self._report_in_turn, waiting))

    def _is_burst(self) -> bool:
        return self.clock() - self._attempt_at < BURST_S

    def _report(self, key: str, result: BindResult) -> None:
        self._guarded(lambda: self.reports.report(result))
        backoff_limit = result.request.spec.backoff_limit
        failed_attempts = result.request.status.failed_attempts + 1
        if result.error and backoff_limit is not None and failed_attempts < backoff_limit:
            self._retry_at[key] = self.clock() + retry_delay_s(failed_attempts, self.params)
        # Until it ended the request kept its reservations, even those of a pod that has ended meanwhile.
        self._sync_groups(list(result.request.spec.selected_gpu_groups))
        self._done(key)

    def _done(self, key: str) -> None:
        with self._lock:
            self._busy.discard(key)

    def _guarded(self, work: Callable[[], None]) -> None:
        """Run work; a failure is only logged, because the next sweep or sync repeats the work."""
        try:
            work()
        except UnauthorizedError as error:
            self.on_fatal(error)
        except KubeError as error:
            log.warning("binder: %s", error)

    def _work(self) -> None:
        while True:
            work = self.queue.get()[2]
            if work is None:
                return
            # An attempt replaces this text by its bind request.
            track().beat("syncing or reporting", WAIT_S)
            work()
            track().rest()

    def _sweep_forever(self) -> None:
        while not self._stop.wait(self.params.base_delay_s):
            self.sweep()

    def _put(self, priority: int, work: Callable[[], None] | None) -> None:
        self.queue.put((priority, next(self._sequence), work))

    def _spawn(self, name: str, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

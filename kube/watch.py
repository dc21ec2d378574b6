"""Keep a sink up to date with one kind: list, watch from there, resume, list again after an error.

`Reflector.run` is the endless loop with its pauses; `pass_once` is one list-and-watch, which tests call with
a fake gateway. A stream that ends normally is resumed at the last version seen (bookmarks advance it
while nothing changes); after an error the kind is listed again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any, Generic, Protocol, TypeVar

from kube.errors import (
    ForbiddenError,
    GoneError,
    KubeError,
    NotFoundError,
    TooManyRequestsError,
    UnauthorizedError,
)
from kube.gateway import Gateway, Listing, Selectors, WatchEvent
from kube.process.backoff import Backoff
from kube.process.progress import track
from kube.resources import Resource

log = logging.getLogger(__name__)
T = TypeVar("T")

ABSENT_KIND_PAUSE_S = 30.0
REFUSALS_ACCEPTED = 4


class Sink(Protocol):
    """A receiver of lists and events, such as `kube.store.Store` or the mirror."""

    def replace(self, resource: Resource, listing: Listing[Any]) -> None:
        """Take a full list in place of everything known of the kind."""
        ...

    def apply(self, resource: Resource, event: WatchEvent[Any]) -> None:
        """Take one change."""
        ...


@dataclass(slots=True)
class Reflector(Generic[T]):
    """Feeds one kind into a sink.

    Parameters
    ----------
    namespace, label_selector, field_selector : which objects are followed; all by default
    is_optional : the cluster may not serve the kind, or may forbid it; then it counts as empty
    timeout_s : how long one stream may last before it is resumed
    """

    gateway: Gateway
    resource: Resource
    as_type: type[T]
    sink: Sink
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""
    is_optional: bool = False
    timeout_s: int = 300
    backoff: Backoff = field(default_factory=Backoff)
    resource_version: str = ""
    _was_listed: bool = field(init=False, default=False)
    _refusals: int = field(init=False, default=0)

    def run(self, stop: Event, *, on_fatal: Callable[[KubeError], None]) -> None:
        """Follow the kind until `stop` is set.

        Parameters
        ----------
        on_fatal : called once when the API server refuses our credentials; then `run` returns
        """
        while not stop.is_set():
            try:
                pause_s = self.pass_once(stop)
            except UnauthorizedError as error:
                on_fatal(error)
                return
            except Exception:  # a defect in a listener must not end the watch of a kind for good
                log.exception("watch of %s", self.resource.plural)
                self.resource_version = ""
                pause_s = self.backoff.pause_s()
            finally:
                track().rest()
            stop.wait(pause_s)

    def start(self, stop: Event, *, on_fatal: Callable[[KubeError], None], name: str = "") -> None:
        """Follow the kind in a daemon thread, which ends soon after `stop` is set.

        Parameters
        ----------
        on_fatal : as in `run`
        name : the thread's name; `watch-<plural>` by default
        """
        Thread(
            target=self.run,
            args=(stop,),
            kwargs={"on_fatal": on_fatal},
            name=name or f"watch-{self.resource.plural}",
            daemon=True,
        ).start()

    def pass_once(self, stop: Event) -> float:
        """List if needed, then watch until the stream ends; return the pause before the next pass."""
        try:
            if not self.resource_version:
                self._list()
            self._watch(stop)
        except GoneError:
            self.resource_version = ""
            return self.backoff.pause_s()
        except NotFoundError as error:
            self.resource_version = ""
            return self._absent(error)
        except ForbiddenError as error:
            self.resource_version = ""
            return self._forbidden(error)
        except TooManyRequestsError as error:
            # The server names the pause, so the backoff of earlier failures does not apply.
            self.resource_version = ""
            pause_s = error.retry_after_s * (1.0 + 0.5 * self.backoff.spread())
            log.info("watch of %s: %s; again in %.1f s", self.resource.plural, error, pause_s)
            return pause_s
        except UnauthorizedError:
            raise
        except KubeError as error:
            # A restarted server may have lost its last writes (the embedded one writes behind). Then our
            # resourceVersion is ahead of its own, and only a new list shows the true state.
            self.resource_version = ""
            pause_s = self.backoff.pause_s()
            log.warning("watch of %s: %s; again in %.1f s", self.resource.plural, error, pause_s)
            return pause_s
        self.backoff.reset()
        return 0.0

    def _list(self) -> None:
        listing = self.gateway.list(
            self.resource,
            as_type=self.as_type,
            namespace=self.namespace,
            selectors=Selectors(labels=self.label_selector, fields=self.field_selector),
        )
        self.sink.replace(self.resource, listing)
        track().rest()
        self.resource_version = listing.resource_version
        self._was_listed = True

    def _watch(self, stop: Event) -> None:
        stream = self.gateway.watch(
            self.resource,
            as_type=self.as_type,
            resource_version=self.resource_version,
            namespace=self.namespace,
            selectors=Selectors(labels=self.label_selector, fields=self.field_selector),
            timeout_s=self.timeout_s,
        )
        for event in stream:
            self.sink.apply(self.resource, event)
            track().rest()
            self.resource_version = event.resource_version or self.resource_version
            self.backoff.reset()
            if stop.is_set():
                return

    def _forbidden(self, error: KubeError) -> float:
        """Accept a refusal only after several: a server that has just started has not read its roles yet.

        A kind that could be read before is kept, because acting as if its objects were gone would be wrong.
        """
        self._refusals += 1
        is_final = self._refusals >= REFUSALS_ACCEPTED and not self._was_listed
        if self.is_optional and is_final:
            log.warning("%s may not be read and counts as empty: %s", self.resource.plural, error)
            return self._absent(error)
        pause_s = self.backoff.pause_s()
        log.warning("watch of %s: %s; again in %.1f s", self.resource.plural, error, pause_s)
        return pause_s

    def _absent(self, error: KubeError) -> float:
        if not self.is_optional:
            pause_s = self.backoff.pause_s()
            log.warning(
                "%s is not served: %s; again in %.1f s", self.resource.plural, error, pause_s
            )
            return pause_s
        self.sink.replace(self.resource, Listing(items=(), resource_version=""))
        return ABSENT_KIND_PAUSE_S

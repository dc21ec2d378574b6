"""Keep a sink in step with one kind: list, watch from there, resume, list again when told to.

`Reflector.run` is the endless loop and knows nothing but "once more, after a pause"; `pass_once` is
one list-and-watch whose errors and stream a test can play. A stream that ends normally is resumed at
the last version seen (bookmarks move it on while nothing happens); an error asks for a new list.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any, Generic, Protocol, TypeVar

from kube.backoff import Backoff
from kube.errors import (
    ForbiddenError,
    GoneError,
    KubeError,
    NotFoundError,
    TooManyRequestsError,
    UnauthorizedError,
)
from kube.gateway import Gateway, Listing, WatchEvent
from kube.progress import track
from kube.resources import Resource

log = logging.getLogger(__name__)
T = TypeVar("T")

ABSENT_KIND_PAUSE_S = 30.0
REFUSALS_BELIEVED = 4


class Sink(Protocol):
    """Who wants to know; `kube.store.Store` is one, the mirror another."""

    def replace(self, resource: Resource, listing: Listing[Any]) -> None: ...

    def apply(self, resource: Resource, event: WatchEvent[Any]) -> None: ...


@dataclass(slots=True)
class Reflector(Generic[T]):
    """Feeds one kind into a sink.

    Parameters
    ----------
    is_optional : the kind may not exist in this cluster, or not for us; then it counts as empty
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
        """Follow the kind until `stop` is set; `on_fatal` hears of refused credentials."""
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
        """Follow the kind in a thread of its own, which ends with the process or soon after `stop`."""
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
            # The server says when: no need for pauses that grew while it was away.
            self.resource_version = ""
            pause_s = error.retry_after_s * (1.0 + 0.5 * self.backoff.spread())
            log.info("watch of %s: %s; again in %.1f s", self.resource.plural, error, pause_s)
            return pause_s
        except UnauthorizedError:
            raise
        except KubeError as error:
            # A server that went away may come back without its last moments (the embedded one writes
            # behind), so that our version names a future that never happens: list again.
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
            label_selector=self.label_selector,
            field_selector=self.field_selector,
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
            label_selector=self.label_selector,
            field_selector=self.field_selector,
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
        """Believe a refusal slowly: a server that has just started has not read its own roles yet.

        What was readable once is kept, for it would be wrong to act as if claims or topologies were gone.
        """
        self._refusals += 1
        is_believed = self._refusals >= REFUSALS_BELIEVED and not self._was_listed
        if self.is_optional and is_believed:
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

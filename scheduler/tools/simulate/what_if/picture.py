"""The objects of a cluster that a simulation starts from, read once and never written back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kube.errors import ForbiddenError, NotFoundError
from kube.gateway import Gateway, Listing, Selectors
from kube.objects.config import Config
from kube.objects.meta import KubeObject, convert
from kube.objects.queue import Queue
from kube.resources import CONFIGS, QUEUES, SHARDS, Resource
from kube.store import Store, StoreView
from scheduler.settings.shard import CONFIG_NAME, ShardSettings
from scheduler.settings.watched import WATCHED

Body = dict[str, Any]
#: resourceVersions by which the store tells kinds: served (above that of every object), and not served.
LISTED = str(2**62)
ABSENT = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """The cluster at one moment.

    Attributes
    ----------
    objects : typed objects by kind; kinds that the cluster does not serve are missing
    queues : the bodies of the queues, which edits change
    shard : the body of the SchedulingShard; None if there is none
    taken_at : Unix time
    version : the resourceVersion of the list of queues
    settings : those of the shard, if they are known otherwise than by its object
    """

    objects: Mapping[Resource, tuple[KubeObject, ...]]
    queues: tuple[Body, ...] = ()
    shard: Body | None = None
    config: Config | None = None
    taken_at: float = 0.0
    version: str = ""
    settings: ShardSettings | None = None
    absent: frozenset[Resource] = field(default_factory=frozenset)


@dataclass(slots=True)
class PictureStore:
    """Shows pictures of one cluster as a scheduling worker's store would hold them.

    What two pictures share stays in the store, so that a snapshot builder converts it once.
    """

    _store: Store = field(default_factory=Store)
    #: By kind, as shown last.
    _shown: dict[Resource, tuple[KubeObject, ...]] = field(default_factory=dict)

    def view(self, picture: Picture) -> StoreView:
        """Return the objects of a picture."""
        queues = tuple(convert(body, Queue) for body in picture.queues)
        for resource, items in {**picture.objects, QUEUES: queues}.items():
            if self._shown.get(resource) is not items:
                self._store.replace(resource, Listing(items=items, resource_version=LISTED))
                self._shown[resource] = items
        for resource in picture.absent:
            self._store.replace(resource, Listing(items=(), resource_version=ABSENT))
        return self._store.view()


def take_picture(gateway: Gateway, shard: str, now: float) -> Picture:
    """Read the cluster.

    Raises
    ------
    kube.errors.KubeError : the cluster does not answer, or refuses a kind that every cluster has
    """
    objects: dict[Resource, tuple[KubeObject, ...]] = {}
    absent = set()
    for kind in WATCHED:
        if kind.resource in (QUEUES, SHARDS, CONFIGS):
            continue
        selectors = Selectors(fields=kind.field_selector)
        try:
            listing = gateway.list(kind.resource, as_type=kind.as_type, selectors=selectors)
        except (NotFoundError, ForbiddenError):
            if not kind.is_optional:
                raise
            absent.add(kind.resource)
            continue
        objects[kind.resource] = tuple(listing.items)
    queues = gateway.list(QUEUES, as_type=dict)
    return Picture(
        objects=objects,
        queues=tuple(queues.items),
        shard=_get(gateway, SHARDS, shard),
        config=_config(gateway),
        taken_at=now,
        version=queues.resource_version,
        absent=frozenset(absent),
    )


def _get(gateway: Gateway, resource: Resource, name: str) -> Body | None:
    try:
        return gateway.get(resource, name, as_type=dict)
    except NotFoundError:
        return None


def _config(gateway: Gateway) -> Config | None:
    body = _get(gateway, CONFIGS, CONFIG_NAME)
    return None if body is None else convert(body, Config)

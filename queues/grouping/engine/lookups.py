"""Lookups of the grouping rules in a cluster: owners from a cache, everything else from the controller's store.

All pods of a workload need its owners at about the same time, so an owner is cached for a few seconds; a later edit
of it is seen at the next pod event. An owner is fetched once for concurrent lookups. The size of the cache is
limited.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kube.errors import ForbiddenError, KubeError, NotFoundError
from kube.gateway import Gateway
from kube.objects.cluster import PriorityClass
from kube.objects.meta import KubeObject
from kube.objects.pod import Pod
from kube.objects.podgroup import PodGroup
from kube.resources import (
    CONFIGMAPS,
    PODGROUPS,
    PODS,
    PRIORITY_CLASSES,
    UPSTREAM_PODGROUPS,
    WORKLOADS,
    Resource,
)
from kube.store import Store
from queues.grouping.base import Json, Kind, KindDefault, uid_of
from queues.grouping.engine.kinds import KindDirectory, guessed_resource
from queues.grouping.engine.owners import references_of
from queues.grouping.errors import GroupingError, NotReadableError, NotThereError, ReadError
from queues.grouping.keys import KNATIVE_REVISION, KUBEFLOW_JOB_NAME
from queues.grouping.metadata import parse_kind_defaults

log = logging.getLogger(__name__)

KARTAS = Resource(
    group="run.ai", version="v1alpha1", plural="kartas", kind="Karta", namespaced=False
)
BY_LABEL = "workload-label"
BY_STEM = "name-stem"
BY_KIND = "karta-kind"
BY_GANG = "gang"
#: The kinds of Kubernetes' gang API, whatever version of them the cluster serves.
GANGS = {resource.kind: resource for resource in (WORKLOADS, UPSTREAM_PODGROUPS)}
OWNER_TTL_S = 5.0
DEFAULTS_TTL_S = 10.0
MAX_OWNERS = 4096
_STEM = re.compile(r".*[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Karta(KubeObject, frozen=True, kw_only=True):
    """A grouping definition with its raw body."""

    spec: dict[str, Any] = {}  # noqa: RUF012 - msgspec copies an empty default


def plain(value: KubeObject) -> Json:
    """Return an object as the API server would send it: lists are lists, times are text."""
    body: Json = msgspec.json.decode(msgspec.json.encode(value))
    return body


def index_for_grouping(store: Store) -> None:
    """Add the lookups that rules need to a store, before its watches start."""
    store.add_index(PODS, BY_LABEL, _label_keys)
    store.add_index(PODS, BY_GANG, _gang_keys)
    store.add_index(PODGROUPS, BY_STEM, lambda group: [_stem(group.key)])
    store.add_index(KARTAS, BY_KIND, _karta_keys)


@dataclass(slots=True)
class OwnerCache:
    """Owners by kind and name, each fetched once per `ttl_s`, at most `MAX_OWNERS` of them."""

    gateway: Gateway
    directory: KindDirectory
    ttl_s: float = OWNER_TTL_S
    clock: Callable[[], float] = time.monotonic
    #: (apiVersion, kind, namespace, name) -> (when it was read, owner), oldest first.
    _owners: OrderedDict[tuple[str, ...], tuple[float, Json]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _fetching: list[threading.Lock] = field(
        default_factory=lambda: [threading.Lock() for _ in range(64)]
    )

    def get(self, api_version: str, kind: str, namespace: str, name: str, *, uid: str = "") -> Json:
        """Return an owner; a cached one with another uid was deleted and created again, and is read again."""
        key = (api_version, kind, namespace, name)
        owner = self._cached(key, uid)
        if owner is not None:
            return owner
        with self._fetching[hash(key) % len(self._fetching)]:
            owner = self._cached(key, uid)
            if owner is None:
                owner = self._fetch(*key)
                self._keep(key, owner)
        return owner

    def forget(self, references: Iterable[Json]) -> None:
        """Drop the referenced owners and the owners above them from the cache, so that a retry reads them again."""
        with self._lock:
            by_uid = {uid_of(owner): key for key, (_, owner) in self._owners.items()}
            to_drop = list(references)
            while to_drop:
                key = by_uid.pop(str(to_drop.pop().get("uid")), None)
                if key is not None:
                    to_drop += references_of(self._owners.pop(key)[1])

    def clear(self) -> None:
        with self._lock:
            self._owners.clear()

    def _cached(self, key: tuple[str, ...], uid: str) -> Json | None:
        with self._lock:
            read_at, owner = self._owners.get(key, (0.0, None))
        if owner is None or self.clock() - read_at > self.ttl_s:
            return None
        return owner if uid in ("", uid_of(owner)) else None

    def _keep(self, key: tuple[str, ...], owner: Json) -> None:
        with self._lock:
            _, former = self._owners.get(key, (0.0, owner))
            if uid_of(former) != uid_of(owner):
                self._drop_below(uid_of(former))
            self._owners[key] = (self.clock(), owner)
            self._owners.move_to_end(key)
            while len(self._owners) > MAX_OWNERS:
                self._owners.popitem(last=False)

    def _drop_below(self, uid: str) -> None:
        """Drop the objects that an owner with this uid owned, because they may have been replaced too."""
        for key, (_, owner) in list(self._owners.items()):
            if any(reference.get("uid") == uid for reference in references_of(owner)):
                del self._owners[key]
                self._drop_below(uid_of(owner))

    def _fetch(self, api_version: str, kind: str, namespace: str, name: str) -> Json:
        resource = guessed_resource(api_version, kind)
        try:
            return self._read(resource, namespace, name)
        except (NotThereError, NotReadableError):
            # The guessed plural may be wrong, and then does not exist or is not covered by the role.
            discovered = self.directory.find(api_version, kind)
            if discovered is None or discovered == resource:
                raise
            return self._read(discovered, namespace, name)

    def _read(self, resource: Resource, namespace: str, name: str) -> Json:
        place = namespace if resource.namespaced else ""
        try:
            body: Json = self.gateway.get(resource, name, as_type=dict, namespace=place)
        except ForbiddenError as error:
            raise NotReadableError(str(error)) from error
        except NotFoundError as error:
            raise NotThereError(str(error)) from error
        except KubeError as error:
            raise ReadError(str(error)) from error
        return {**body, "apiVersion": resource.api_version, "kind": resource.kind}


@dataclass(slots=True)
class ClusterLookups:
    """`queues.grouping.base.Lookups` on a store and an owner cache."""

    store: Store
    owners: OwnerCache
    defaults_config_map: tuple[str, str] = ("", "")
    """Namespace and name."""
    clock: Callable[[], float] = time.monotonic
    #: (When they were read, default by kind).
    _defaults: tuple[float, Mapping[str, KindDefault]] = field(
        default_factory=lambda: (float("-inf"), {})
    )
    _last_warning: str = ""

    def get(self, api_version: str, kind: str, namespace: str, name: str, *, uid: str = "") -> Json:
        return self.owners.get(api_version, kind, namespace, name, uid=uid)

    def may_read(self, kind: Kind) -> bool:
        """Return True: only the API server knows the rights, and refuses what is not covered."""
        return True

    def priority_class_exists(self, name: str) -> bool:
        priority_class: PriorityClass | None = self.store.get(PRIORITY_CLASSES, name)
        return priority_class is not None

    def kind_default(self, kind: Kind) -> KindDefault | None:
        if not all(self.defaults_config_map):
            return None
        entries = self._kind_defaults()
        return entries.get(f"{kind.kind}.{kind.group}") or entries.get(kind.kind)

    def pods(self, namespace: str, labels: Mapping[str, str]) -> Sequence[Json]:
        for key in (KUBEFLOW_JOB_NAME, KNATIVE_REVISION):
            if key in labels:
                pods: list[Pod] = self.store.by_index(
                    PODS, BY_LABEL, _label_key(namespace, key, labels[key])
                )
                return [plain(pod) for pod in pods if labels.items() <= pod.metadata.labels.items()]
        return []

    def pod_group(self, namespace: str, name: str) -> Json | None:
        group: PodGroup | None = self.store.get(PODGROUPS, f"{namespace}/{name}")
        return None if group is None else plain(group)

    def pod_groups_starting(self, namespace: str, prefix: str) -> Sequence[Json]:
        return [
            plain(group)
            for group in self.store.by_index(PODGROUPS, BY_STEM, _stem(f"{namespace}/{prefix}"))
            if group.metadata.name.startswith(prefix)
        ]

    def kartas(self, kind: Kind) -> Sequence[Json]:
        file = f"{kind.group}|{kind.version}|{kind.kind}"
        return [plain(karta) for karta in self.store.by_index(KARTAS, BY_KIND, file)]

    def serves_gangs(self, kind: str) -> bool:
        return self.store.is_served(GANGS[kind])

    def gang(self, kind: str, namespace: str, name: str) -> Json | None:
        gang: KubeObject | None = self.store.get(GANGS[kind], f"{namespace}/{name}")
        return None if gang is None else plain(gang)

    def _kind_defaults(self) -> Mapping[str, KindDefault]:
        read_at, entries = self._defaults
        if self.clock() - read_at <= DEFAULTS_TTL_S:
            return entries
        namespace, name = self.defaults_config_map
        try:
            body: Json = self.owners.gateway.get(
                CONFIGMAPS, name, as_type=dict, namespace=namespace
            )
            entries = parse_kind_defaults(body)
        except (KubeError, GroupingError) as error:
            entries = {}
            self._warn_once(f"cannot read defaults from ConfigMap {namespace}/{name}: {error}")
        else:
            self._last_warning = ""
        self._defaults = (self.clock(), entries)
        return entries

    def _warn_once(self, message: str) -> None:
        """Log a warning unless the last one was the same, because the ConfigMap is read every few seconds."""
        if message != self._last_warning:
            self._last_warning = message
            log.warning("%s", message)


def _label_keys(pod: Pod) -> list[str]:
    labels, namespace = pod.metadata.labels, pod.metadata.namespace
    return [
        _label_key(namespace, key, labels[key])
        for key in (KUBEFLOW_JOB_NAME, KNATIVE_REVISION)
        if key in labels
    ]


def _gang_keys(pod: Pod) -> list[str]:
    namespace, spec = pod.metadata.namespace, pod.spec
    keys = []
    if spec.workload_ref is not None:
        keys.append(gang_key(WORKLOADS, f"{namespace}/{spec.workload_ref.name}"))
    if spec.scheduling_group is not None:
        keys.append(
            gang_key(UPSTREAM_PODGROUPS, f"{namespace}/{spec.scheduling_group.pod_group_name}")
        )
    return keys


def gang_key(resource: Resource, key: str) -> str:
    """Return the key under which the index `BY_GANG` files the pods that name a gang."""
    return f"{resource.kind}|{key}"


def _label_key(namespace: str, key: str, value: str) -> str:
    return f"{namespace}|{key}={value}"


def _stem(key: str) -> str:
    match = _STEM.match(key)
    return match[0] if match else key


def _karta_keys(karta: Karta) -> list[str]:
    labels = karta.metadata.labels
    return [
        "|".join(labels.get(f"run.ai/karta-{part}", "") for part in ("group", "version", "kind"))
    ]

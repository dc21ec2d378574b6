"""The arguments and results of grouping rules: a pod with its owners, and the pod group it needs.

A rule is a pure function `(Context) -> Metadata | None`. It reads the cluster only through `Lookups`, so that the
controller (API server behind a cache) and `kaiweb group` (files) run the same rules. Objects are dicts as the API
server sends them; `dig` and its relatives read them without assuming a valid shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from kube import keys
from kube.keys import SCHEDULER_NAME
from kube.values.numbers import MIN_INT32, int_or_none
from queues.grouping.errors import FieldError

Json = dict[str, Any]
MAX_INT32 = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The flags of the pod grouper that change how pods are grouped."""

    scheduler_name: str = SCHEDULER_NAME
    queue_label: str = keys.QUEUE
    node_pool_label: str = keys.NODE_POOL
    search_legacy: bool = True
    knative_gang: bool = True
    karta_fallback: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Group, version and kind of an object."""

    group: str
    version: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KindDefault:
    """One entry of the defaults ConfigMap."""

    priority_class: str = ""
    preemptibility: str = ""


class Lookups(Protocol):
    """The cluster, as far as rules may read it."""

    def get(self, api_version: str, kind: str, namespace: str, name: str, *, uid: str = "") -> Json:
        """Return one object; raises `NotThereError`, `NotReadableError` or another error.

        Parameters
        ----------
        uid : a cached object is returned only if it has this uid; "" accepts any
        """
        ...

    def may_read(self, kind: Kind) -> bool:
        """Return whether an owner of this kind can be read, if the pod already has a nearer owner."""
        ...

    def priority_class_exists(self, name: str) -> bool: ...

    def kind_default(self, kind: Kind) -> KindDefault | None: ...

    def pods(self, namespace: str, labels: Mapping[str, str]) -> Sequence[Json]: ...

    def pod_group(self, namespace: str, name: str) -> Json | None: ...

    def pod_groups_starting(self, namespace: str, prefix: str) -> Sequence[Json]: ...

    def kartas(self, kind: Kind) -> Sequence[Json]: ...

    def serves_gangs(self, kind: str) -> bool:
        """Return whether the cluster serves a kind of Kubernetes' gang API, `Workload` or `PodGroup`."""
        ...

    def gang(self, kind: str, namespace: str, name: str) -> Json | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """The topology levels within which the pods of a group must or should be placed."""

    name: str = ""
    required: str = ""
    preferred: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubGroup:
    """A named part of a group: a leaf counts pods, a parent counts its children."""

    name: str
    min_member: int | None = None
    min_sub_group: int | None = None
    parent: str = ""
    topology: Topology | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """The pod group that a pod needs, before it is compared with the stored one."""

    name: str
    namespace: str
    owner: Json
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    queue: str = keys.DEFAULT_QUEUE
    min_member: int = 1
    min_sub_group: int | None = None
    priority_class: str = keys.TRAIN
    preemptibility: str = ""
    preemption_delay: str = ""
    staleness_grace: str = ""
    topology: Topology = Topology()
    sub_groups: tuple[SubGroup, ...] = ()
    pod_sub_group: str = ""


Grouper = Callable[["Context"], Metadata | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One pod with its owners (nearest first, top owner last; empty when the pod owns itself)."""

    pod: Json
    top: Json
    owners: tuple[Json, ...]
    lookups: Lookups
    settings: Settings
    delegate: Callable[[Kind], Grouper]
    """Returns the rule registered for exactly this kind, else the default rule."""

    def with_top(self, top: Json, owners: tuple[Json, ...] = ()) -> Context:
        return replace(self, top=top, owners=owners)


def dig(node: Any, *path: str) -> Any:
    """Return the value at a path of keys, or None as soon as something is missing or not a mapping."""
    for key in path:
        if not isinstance(node, dict):
            return None
        node = node.get(key)
    return node


def dig_map(node: Any, *path: str) -> Json:
    value = dig(node, *path)
    return value if isinstance(value, dict) else {}


def dig_list(node: Any, *path: str) -> list[Any]:
    value = dig(node, *path)
    return value if isinstance(value, list) else []


def dig_text(node: Any, *path: str) -> str:
    value = dig(node, *path)
    return value if isinstance(value, str) else ""


def dig_strings(node: Any, *path: str) -> dict[str, str]:
    """Return the string entries of a map, such as the unvalidated annotations of a template."""
    return {key: value for key, value in dig_map(node, *path).items() if isinstance(value, str)}


def labels_of(obj: Json) -> dict[str, str]:
    return dig_map(obj, "metadata", "labels")


def annotations_of(obj: Json) -> dict[str, str]:
    return dig_map(obj, "metadata", "annotations")


def name_of(obj: Json) -> str:
    return dig_text(obj, "metadata", "name")


def namespace_of(obj: Json) -> str:
    return dig_text(obj, "metadata", "namespace")


def uid_of(obj: Json) -> str:
    return dig_text(obj, "metadata", "uid")


def full_name(obj: Json) -> str:
    return f"{namespace_of(obj)}/{name_of(obj)}"


def kind_of(obj: Json) -> Kind:
    """Return the kind of an object; pods from a watch have no apiVersion and kind, so `v1` `Pod` is the default."""
    api_version = dig_text(obj, "apiVersion") or "v1"
    group, _, version = api_version.rpartition("/")
    return Kind(group=group, version=version, kind=dig_text(obj, "kind") or "Pod")


def owner_reference(obj: Json) -> Json:
    """Return the owner reference of a pod group (never a controller reference)."""
    return {
        "apiVersion": dig_text(obj, "apiVersion") or "v1",
        "kind": dig_text(obj, "kind") or "Pod",
        "name": name_of(obj),
        "uid": uid_of(obj),
    }


def count_at(node: Any, *path: str, default: int | None = None, below: str = "") -> int | None:
    """Return the whole number >= 0 at a path, or `default` if it is absent; raise FieldError for anything else.

    Parameters
    ----------
    below : path of the node in its object, for the message
    """
    value = dig(node, *path)
    if value is None:
        return default
    field_path = ".".join([below, *path] if below else path)
    if not is_whole(value):
        raise FieldError(f"{field_path} must be a whole number, got {value!r}")
    if not 0 <= value <= MAX_INT32:
        raise FieldError(f"{field_path} must be between 0 and {MAX_INT32}, got {value!r}")
    return int(value)


def is_whole(value: Any) -> bool:
    """Return whether a JSON value is a whole number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) or value.is_integer()


def topology_from(annotations: Mapping[str, str]) -> Topology:
    """Return the placement of a whole group from the three placement annotations."""
    return Topology(
        name=annotations.get(keys.TOPOLOGY, ""),
        required=annotations.get(keys.TOPOLOGY_REQUIRED, ""),
        preferred=annotations.get(keys.TOPOLOGY_PREFERRED, ""),
    )


def whole_number(text: str) -> int | None:
    """Return a decimal 32-bit number with an optional sign, or None."""
    return int_or_none(text, smallest=MIN_INT32, largest=MAX_INT32)

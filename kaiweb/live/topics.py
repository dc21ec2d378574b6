"""The topics of the live protocol: parse one with its parameters, read its items, filter them.

A topic belongs to a family, which says what its items look like and where they come from. It may be narrowed to
one key or by a filter. All functions that read the database are synchronous.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Case, When

from kaiweb.items.cluster import KEY as CLUSTER_KEY
from kaiweb.items.cluster import WAITING, cluster_item
from kaiweb.items.masks import masked_cluster, masked_node, masked_workload
from kaiweb.items.nodes import node_items
from kaiweb.items.queues import queue_items
from kaiweb.items.sessions import session_items
from kaiweb.items.visibility import EVERYTHING, Visibility
from kaiweb.items.workloads import detail_items, workload_items
from queues import selectors
from queues.models import Node, PodGroup
from queues.tree import hierarchy

Item = dict[str, Any]
CLUSTER = "cluster"
DETAILS = "workload"
# Sessions are a rolling window: clients are not told of each one that leaves it.
SESSIONS = "sessions"


def _cluster_items(_keys: Collection[str] | None = None) -> list[Item]:
    return [cluster_item()]


def _detail_items(keys: Collection[str] | None = None) -> list[Item]:
    return detail_items(keys or ())


@dataclass(frozen=True, slots=True)
class Family:
    """Items of one shape.

    Attributes
    ----------
    kind : the kind of its changes in the log; empty for all kinds
    read : keys (None for all) -> items
    key_of : item -> its key
    keys : all keys, those that pages show first at the beginning; only of families that may be too large to be
        read at once
    """

    name: str
    kind: str
    read: Callable[[Collection[str] | None], list[Item]]
    key_of: Callable[[Item], str]
    keys: Callable[[], list[str]] | None = None


def _workload_key(item: Item) -> str:
    return f"{item['namespace']}/{item['name']}"


def _name(item: Item) -> str:
    return str(item["name"])


def _workload_keys() -> list[str]:
    """Return the keys of all workloads, waiting ones first and then the newest, as the list of workloads begins."""
    is_waiting = Case(When(state__in=WAITING, then=0), default=1)
    return list(PodGroup.objects.order_by(is_waiting, "-created_at").values_list("key", flat=True))


def _node_names() -> list[str]:
    return list(Node.objects.order_by("name").values_list("name", flat=True))


FAMILIES: Mapping[str, Family] = {
    family.name: family
    for family in (
        Family(CLUSTER, "", _cluster_items, lambda _item: CLUSTER_KEY),
        Family("queues", "queue", queue_items, _name),
        Family("workloads", "workload", workload_items, _workload_key, _workload_keys),
        Family(DETAILS, "workload", _detail_items, _workload_key),
        Family("nodes", "node", node_items, _name, _node_names),
        Family(SESSIONS, "session", session_items, lambda item: str(item["id"])),
    )
}
#: Family -> the field with the queue that decides who sees an item; the others show no workloads, or mask them.
QUEUE_OF = {"queues": "name", "workloads": "queue", DETAILS: "queue"}
#: Family -> how its items are masked for clients that see only some queues.
MASKS: Mapping[str, Callable[[Mapping[str, Any], Visibility], Item]] = {
    CLUSTER: masked_cluster,
    "nodes": masked_node,
    DETAILS: masked_workload,
}
# topic with a key -> the family that serves it
SINGLES = {"queue": "queues", "node": "nodes", DETAILS: DETAILS}
PARAMETERS: Mapping[str, frozenset[str]] = {
    "workloads": frozenset({"queue", "subtree", "state", "reason", "namespace", "q"}),
    "queues": frozenset({"root"}),
    "nodes": frozenset({"pool"}),
    SESSIONS: frozenset({"shard"}),
}


class TopicError(ValueError):
    """There is no such topic, or it does not take these parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """What one subscription asks for."""

    family: Family
    key: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    visibility: Visibility = EVERYTHING

    @property
    def is_filtered(self) -> bool:
        return bool(self.params) or self.visibility.is_partial

    def shown(self, item: Item) -> Item:
        """Return the item as the client may see it."""
        mask = MASKS.get(self.family.name)
        return mask(item, self.visibility) if mask and self.visibility.is_partial else item

    def snapshot(self) -> list[Item]:
        """Read all items that this topic shows now, each with its key as `k`."""
        return self.read([self.key] if self.key else None, self.filter())

    def read(self, keys: Collection[str] | None, admits: Callable[[Item], bool]) -> list[Item]:
        """Read the items of these keys (None for all) that the filter admits, each with its key as `k`."""
        return [
            {"k": self.family.key_of(item), **self.shown(item)}
            for item in self.family.read(keys)
            if admits(item)
        ]

    def filter(self) -> Callable[[Item], bool]:
        """Return the predicate of the parameters and of what the client may see; reads the queue tree if needed."""
        admits, queue_of = self._filter(), QUEUE_OF.get(self.family.name)
        if queue_of is None or not self.visibility.is_partial:
            return admits
        return lambda item: self.visibility.shows(item[queue_of]) and admits(item)

    def _filter(self) -> Callable[[Item], bool]:
        if not self.params:
            return lambda _item: True
        allowed: dict[str, Collection[str]] = {
            name: _words(self.params[name])
            for name in ("state", "reason", "namespace", "pool", "shard", "queue")
            if self.params.get(name)
        }
        if self.params.get("queue") and self.params.get("subtree"):
            tree = selectors.tree()
            below = (hierarchy.subtree(tree, name) for name in allowed["queue"])
            allowed["queue"] = set().union(*below)
        if self.params.get("root"):
            allowed["name"] = hierarchy.subtree(selectors.tree(), str(self.params["root"]))
        text = str(self.params.get("q", "")).lower()

        def admits(item: Item) -> bool:
            if any(item.get(name) not in values for name, values in allowed.items()):
                return False
            return not text or any(
                text in str(item.get(name, "")).lower()
                for name in ("name", "namespace", "owner", "user")
            )

        return admits


def _words(value: Any) -> set[str]:
    if isinstance(value, str):
        return {part for part in value.split(",") if part}
    return {str(part) for part in value}


def parse_topic(name: object, params: object) -> Topic:
    """Parse what a client subscribes to.

    Raises
    ------
    TopicError : unknown topic or parameter, or a parameter of another type
    """
    if not isinstance(name, str):
        raise TopicError(f"topic: expected a string, got {type(name).__name__}")
    head, _, key = name.partition(":")
    if key and head in SINGLES:
        family, allowed = FAMILIES[SINGLES[head]], frozenset[str]()
    elif not key and name in FAMILIES and name != DETAILS:
        family, allowed = FAMILIES[name], PARAMETERS.get(name, frozenset())
    else:
        topics = [family for family in FAMILIES if family != DETAILS]
        topics += [f"{single}:<key>" for single in SINGLES]
        raise TopicError(f"topic: expected one of {', '.join(topics)}, got '{name[:80]}'")
    return Topic(family=family, key=key, params=_checked(params, allowed))


def _checked(params: object, allowed: frozenset[str]) -> dict[str, Any]:
    if params is None:
        return {}
    if not isinstance(params, Mapping):
        raise TopicError(f"params: expected an object, got {type(params).__name__}")
    for name, value in params.items():
        if name not in allowed:
            expected = ", ".join(sorted(allowed)) or "none"
            raise TopicError(f"params: expected {expected}, got '{str(name)[:80]}'")
        is_list = isinstance(value, list) and all(isinstance(part, str) for part in value)
        if not (isinstance(value, str | bool) or is_list):
            raise TopicError(f"params.{name}: expected a string, a list of strings, or true")
    return {name: value for name, value in params.items() if value not in ("", [], False)}

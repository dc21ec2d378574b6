"""Lookups of the grouping rules in the objects of files.

Objects are indexed by kind, pods by label and pod groups by sorted name, so that lookups stay fast with many pods.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping
from dataclasses import dataclass, field

from queues.grouping.base import Json, Kind, KindDefault, kind_of, labels_of, name_of, namespace_of
from queues.grouping.engine.table import BEYOND_KAI, READABLE
from queues.grouping.errors import NotReadableError, NotThereError
from queues.grouping.karta.karta import index_labels
from queues.grouping.offline.rights import NO_RIGHTS, Rights

KNOWN_CLASSES = frozenset(
    {
        "train",
        "build-preemptible",
        "build",
        "inference",
        "system-cluster-critical",
        "system-node-critical",
    }
)
# Kinds that KAI's pod grouper may not read: an object left out of the files ends the walk, and a note says so.
OPTIONAL = frozenset((group, kind) for group, _, kind in BEYOND_KAI)
POD_GROUP_API = "scheduling.run.ai"
GANG_API = "scheduling.k8s.io"
POD_GROUP = (POD_GROUP_API, "PodGroup")
POD = ("", "Pod")
Key = tuple[str, str, str, str]


def key_of(obj: Json) -> Key:
    """Return group, kind, namespace and name."""
    kind = kind_of(obj)
    return (kind.group, kind.kind, namespace_of(obj), name_of(obj))


@dataclass(slots=True)
class FileCluster:
    """`queues.grouping.base.Lookups` on the objects of files.

    Attributes
    ----------
    written : pod groups that were created or changed, by namespace and name, in order
    rights : what roles among the files let the pod grouper read beyond its own role
    """

    objects: dict[Key, Json] = field(default_factory=dict)
    written: dict[str, None] = field(default_factory=dict)
    defaults: Mapping[str, KindDefault] = field(default_factory=dict)
    rights: Rights = NO_RIGHTS
    #: (Group, kind) -> objects by key.
    _by_kind: dict[tuple[str, str], dict[Key, Json]] = field(default_factory=dict)
    #: (Namespace, label, value) -> pods by key.
    _by_label: dict[tuple[str, str, str], dict[Key, Json]] = field(default_factory=dict)
    #: Namespace -> names of its pod groups, sorted.
    _group_names: dict[str, list[str]] = field(default_factory=dict)

    def add(self, obj: Json) -> None:
        key = key_of(obj)
        if key[:2] == POD_GROUP and key not in self.objects:
            insort(self._group_names.setdefault(key[2], []), key[3])
        self.objects[key] = obj
        self._by_kind.setdefault(key[:2], {})[key] = obj
        if key[:2] == POD:
            for label, value in labels_of(obj).items():
                self._by_label.setdefault((key[2], label, value), {})[key] = obj

    def of_kind(self, group: str, kind: str) -> list[Json]:
        return list(self._by_kind.get((group, kind), {}).values())

    def get(self, api_version: str, kind: str, namespace: str, name: str, *, uid: str = "") -> Json:
        group, _, version = api_version.rpartition("/")
        for place in (namespace, ""):
            obj = self.objects.get((group, kind, place, name))
            if obj is not None:
                return obj
        may_read = self.may_read(Kind(group=group, version=version, kind=kind))
        if (group, kind) in OPTIONAL or not may_read:
            # In a cluster the grouper would not be allowed to read it, and stop below it.
            raise NotReadableError(f"{kind} {name} is not among the given objects")
        raise NotThereError("it is not among the given objects")

    def may_read(self, kind: Kind) -> bool:
        """Return whether the grouper's role, or a role among the files, covers a kind.

        A kind with a Karta counts as readable, because the Karta could not be used otherwise.
        """
        is_covered = (kind.group, kind.kind) in READABLE or self.rights.cover(kind)
        return is_covered or bool(self.kartas(kind))

    def priority_class_exists(self, name: str) -> bool:
        return name in KNOWN_CLASSES or (
            ("scheduling.k8s.io", "PriorityClass", "", name) in self.objects
        )

    def kind_default(self, kind: Kind) -> KindDefault | None:
        return self.defaults.get(f"{kind.kind}.{kind.group}") or self.defaults.get(kind.kind)

    def pods(self, namespace: str, labels: Mapping[str, str]) -> list[Json]:
        """Return the pods with all these labels, of which there must be at least one."""
        label, value = next(iter(labels.items()))
        candidates = self._by_label.get((namespace, label, value), {})
        return [pod for pod in candidates.values() if labels.items() <= labels_of(pod).items()]

    def pod_group(self, namespace: str, name: str) -> Json | None:
        return self.objects.get((*POD_GROUP, namespace, name))

    def pod_groups_starting(self, namespace: str, prefix: str) -> list[Json]:
        names = self._group_names.get(namespace, [])
        groups = []
        for name in names[bisect_left(names, prefix) :]:
            if not name.startswith(prefix):
                break
            groups.append(self.objects[(*POD_GROUP, namespace, name)])
        return groups

    def kartas(self, kind: Kind) -> list[Json]:
        expected_labels = index_labels(kind)
        return [
            karta
            for karta in self.of_kind("run.ai", "Karta")
            if all(labels_of(karta).get(key, "") == value for key, value in expected_labels.items())
        ]

    def serves_gangs(self, kind: str) -> bool:
        """Return True: a pod can name a gang only in a cluster that serves gangs."""
        return True

    def gang(self, kind: str, namespace: str, name: str) -> Json | None:
        return self.objects.get((GANG_API, kind, namespace, name))

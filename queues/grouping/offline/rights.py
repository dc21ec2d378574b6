"""Rights that roles among the files add to the pod grouper's own role.

In a cluster, a kind without a rule is readable only if a ClusterRole bound to the account of the pod grouper covers it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from queues.grouping.base import Json, Kind, dig_list, dig_text, kind_of, name_of
from queues.grouping.engine.kinds import plural_of

ACCOUNT = "pod-grouper"
RBAC = "rbac.authorization.k8s.io"
ANY = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """Group and plural of readable kinds; `*` stands for all."""

    readable: frozenset[tuple[str, str]] = frozenset()

    def cover(self, kind: Kind) -> bool:
        """Return whether objects of a kind may be read."""
        return any(
            (group, plural) in self.readable
            for group in (kind.group, ANY)
            for plural in (plural_of(kind.kind), ANY)
        )


NO_RIGHTS = Rights()


def granted_rights(objects: Iterable[Json]) -> Rights:
    """Return the rights of the ClusterRoles that are bound to the pod grouper's account."""
    of_rbac = [obj for obj in objects if kind_of(obj).group == RBAC]
    bound = {dig_text(obj, "roleRef", "name") for obj in of_rbac if _is_bound(obj)}
    readable = {
        (group, plural)
        for obj in of_rbac
        if kind_of(obj).kind == "ClusterRole" and name_of(obj) in bound
        for rule in dig_list(obj, "rules")
        if {"get", ANY} & _texts(rule, "verbs")
        for group in _texts(rule, "apiGroups")
        for plural in _texts(rule, "resources")
    }
    return Rights(readable=frozenset(readable))


def _is_bound(obj: Json) -> bool:
    return kind_of(obj).kind == "ClusterRoleBinding" and any(
        dig_text(subject, "kind") == "ServiceAccount" and dig_text(subject, "name") == ACCOUNT
        for subject in dig_list(obj, "subjects")
    )


def _texts(rule: object, field: str) -> set[str]:
    return {text for text in dig_list(rule, field) if isinstance(text, str)}

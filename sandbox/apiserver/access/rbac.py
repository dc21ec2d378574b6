"""Authorization by Roles, ClusterRoles and their bindings, evaluated as in the real server.

The group `system:masters` may do everything. For other users, the rules of a (user, namespace) pair are
collected once and cached until any RBAC object changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sandbox.apiserver.model import errors
from sandbox.apiserver.model.entry import Entry, Obj
from sandbox.apiserver.model.user import MASTERS, User
from sandbox.apiserver.storage.store import Store

_GROUP = "rbac.authorization.k8s.io"
_ROLES = f"roles.{_GROUP}"
_CLUSTER_ROLES = f"clusterroles.{_GROUP}"
_BINDINGS = f"rolebindings.{_GROUP}"
_CLUSTER_BINDINGS = f"clusterrolebindings.{_GROUP}"
_WATCHED = frozenset({_ROLES, _CLUSTER_ROLES, _BINDINGS, _CLUSTER_BINDINGS})

PolicyRules = list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessAttributes:
    """What a request does, for the authorizer; `path` is set for URLs that are no resource."""

    verb: str
    group: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    sub: str = ""
    path: str = ""

    @property
    def full_resource(self) -> str:
        return f"{self.resource}/{self.sub}" if self.sub else self.resource


class Authorizer:
    """Decides whether a user may do something."""

    def __init__(self, store: Store) -> None:
        self._store = store
        #: (User, namespace) -> the rules that apply.
        self._cache: dict[tuple[User, str], PolicyRules] = {}
        store.listeners.append(self._on_change)

    def allows(self, user: User, access: AccessAttributes) -> bool:
        if MASTERS in user.groups:
            return True
        return any(_permits(rule, access) for rule in self.rules(user, access.namespace))

    def require(self, user: User, access: AccessAttributes) -> None:
        """Raise 403, in the wording of the real server, unless the user may do it."""
        if not self.allows(user, access):
            raise _refusal(user, access)

    def rules(self, user: User, namespace: str) -> PolicyRules:
        """Return the rules that apply to a user in a namespace, including the cluster-wide ones."""
        key = (user, namespace)
        if key not in self._cache:
            self._cache[key] = list(self._collect(user, namespace))
        return self._cache[key]

    def _collect(self, user: User, namespace: str) -> Iterator[dict[str, Any]]:
        for binding in self._bindings(_CLUSTER_BINDINGS, ""):
            if _binds(binding, user, ""):
                yield from self._role(binding["roleRef"], "")
        if namespace:
            for binding in self._bindings(_BINDINGS, namespace):
                if _binds(binding, user, namespace):
                    yield from self._role(binding["roleRef"], namespace)

    def _bindings(self, storage: str, namespace: str) -> Iterator[Obj]:
        for entry in self._store.collection(storage).listing(namespace):
            yield entry.load()

    def _role(self, reference: Obj, namespace: str) -> PolicyRules:
        clusterwide = reference["kind"] == "ClusterRole"
        storage = _CLUSTER_ROLES if clusterwide else _ROLES
        entry = self._store.get(storage, "" if clusterwide else namespace, reference["name"])
        if entry is None:
            return []
        rules: PolicyRules = entry.load().get("rules") or []
        return rules

    def _on_change(self, storage: str, before: Entry | None, after: Entry | None) -> None:
        if storage in _WATCHED:
            self._cache.clear()


def _binds(binding: Obj, user: User, namespace: str) -> bool:
    for subject in binding.get("subjects") or ():
        name = subject["name"]
        match subject["kind"]:
            case "User" if name == user.name:
                return True
            case "Group" if name in user.groups:
                return True
            case "ServiceAccount":
                home = subject.get("namespace") or namespace
                if user.name == f"system:serviceaccount:{home}:{name}":
                    return True
    return False


def _permits(rule: dict[str, Any], access: AccessAttributes) -> bool:
    if not _covers(rule.get("verbs"), access.verb):
        return False
    if access.path:
        return any(
            _covers_path(pattern, access.path) for pattern in rule.get("nonResourceURLs") or ()
        )
    if not _covers(rule.get("apiGroups"), access.group):
        return False
    names = rule.get("resourceNames")
    if names and access.name not in names:
        return False
    resources = rule.get("resources") or ()
    if "*" in resources or access.full_resource in resources:
        return True
    return bool(access.sub) and f"*/{access.sub}" in resources


def _covers(allowed: list[str] | None, value: str) -> bool:
    return allowed is not None and ("*" in allowed or value in allowed)


def _covers_path(pattern: str, path: str) -> bool:
    if pattern.endswith("*"):
        return path.startswith(pattern[:-1])
    return pattern == path


def _refusal(user: User, access: AccessAttributes) -> errors.ApiError:
    if access.path:
        message = f'forbidden: User "{user.name}" cannot {access.verb} path "{access.path}"'
        return errors.ApiError(403, "Forbidden", message, details={})
    scope_text = (
        f' in the namespace "{access.namespace}"' if access.namespace else " at the cluster scope"
    )
    why = (
        f'User "{user.name}" cannot {access.verb} resource "{access.full_resource}" '
        f'in API group "{access.group}"{scope_text}'
    )
    return errors.forbidden(access.group, access.resource, access.name, why)

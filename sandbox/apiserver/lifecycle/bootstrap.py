"""The objects that a new cluster has: namespaces, priority classes, roles, one service."""

from __future__ import annotations

from typing import Any

from sandbox.apiserver.lifecycle import metadata
from sandbox.apiserver.model.entry import Obj
from sandbox.apiserver.model.resources import Registry
from sandbox.apiserver.schema.kinds.table import strategy_of
from sandbox.apiserver.storage.store import Store
from sandbox.apiserver.wire.request import Target

_RBAC = "rbac.authorization.k8s.io"
_ALL = ["*"]
_READ = ["get", "list", "watch"]
_WRITE = [*_READ, "create", "update", "patch", "delete", "deletecollection"]
_WORKLOAD_GROUPS = ["", "apps", "batch", "autoscaling", "policy", "networking.k8s.io"]
_DISCOVERY = [
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/healthz",
    "/livez",
    "/readyz",
    "/openapi",
    "/openapi/*",
    "/version",
    "/version/",
]


def ensure_defaults(store: Store, registry: Registry) -> None:
    """Create the default objects that are missing; existing ones are not changed."""
    for name in ("default", "kube-system", "kube-public", "kube-node-lease"):
        _ensure(store, registry, ("", "namespaces", "v1"), _named("Namespace", "v1", name))
    for name, value in (
        ("system-cluster-critical", 2_000_000_000),
        ("system-node-critical", 2_000_001_000),
    ):
        body = {**_named("PriorityClass", "scheduling.k8s.io/v1", name), "value": value}
        _ensure(store, registry, ("scheduling.k8s.io", "priorityclasses", "v1"), body)
    for name, rules in _CLUSTER_ROLES.items():
        role = {**_named("ClusterRole", f"{_RBAC}/v1", name), "rules": rules}
        _ensure(store, registry, (_RBAC, "clusterroles", "v1"), role)
    for name, groups in _CLUSTER_BINDINGS.items():
        subjects = [{"kind": "Group", "apiGroup": _RBAC, "name": group} for group in groups]
        reference = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name}
        binding = {
            **_named("ClusterRoleBinding", f"{_RBAC}/v1", name),
            "subjects": subjects,
            "roleRef": reference,
        }
        _ensure(store, registry, (_RBAC, "clusterrolebindings", "v1"), binding)
    service = _named("Service", "v1", "kubernetes", "default")
    service["spec"] = {
        "clusterIP": "10.96.0.1",
        "ports": [{"name": "https", "port": 443, "targetPort": 6443}],
    }
    _ensure(store, registry, ("", "services", "v1"), service)


_CLUSTER_ROLES: dict[str, list[dict[str, Any]]] = {
    "cluster-admin": [
        {"apiGroups": _ALL, "resources": _ALL, "verbs": _ALL},
        {"nonResourceURLs": _ALL, "verbs": _ALL},
    ],
    "admin": [
        {"apiGroups": _WORKLOAD_GROUPS, "resources": _ALL, "verbs": _WRITE},
        {"apiGroups": [_RBAC], "resources": ["roles", "rolebindings"], "verbs": _WRITE},
    ],
    "edit": [{"apiGroups": _WORKLOAD_GROUPS, "resources": _ALL, "verbs": _WRITE}],
    "view": [
        {
            "apiGroups": _WORKLOAD_GROUPS,
            "resources": [
                "configmaps",
                "cronjobs",
                "deployments",
                "endpoints",
                "events",
                "jobs",
                "namespaces",
                "persistentvolumeclaims",
                "poddisruptionbudgets",
                "pods",
                "pods/status",
                "replicasets",
                "serviceaccounts",
                "services",
                "statefulsets",
            ],
            "verbs": _READ,
        }
    ],
    "system:discovery": [{"nonResourceURLs": _DISCOVERY, "verbs": ["get"]}],
    "system:basic-user": [
        {
            "apiGroups": ["authorization.k8s.io"],
            "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
            "verbs": ["create"],
        },
        {
            "apiGroups": ["authentication.k8s.io"],
            "resources": ["selfsubjectreviews"],
            "verbs": ["create"],
        },
    ],
}
_CLUSTER_BINDINGS = {
    "cluster-admin": ["system:masters"],
    "system:discovery": ["system:authenticated"],
    "system:basic-user": ["system:authenticated"],
}


def _named(kind: str, api_version: str, name: str, namespace: str = "") -> Obj:
    meta = {"name": name}
    if namespace:
        meta["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": meta}


def _ensure(store: Store, registry: Registry, address: tuple[str, str, str], obj: Obj) -> None:
    group, plural, version = address
    resource = registry.find(group, version, plural)
    assert resource is not None, f"{plural}.{group} is built in"
    namespace, name = obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
    if store.get(resource.storage, namespace, name) is not None:
        return
    metadata.begin(Target(resource=resource, namespace=namespace), obj)
    strategy = strategy_of(resource.storage)
    strategy.defaults(obj)
    strategy.prepare(obj)
    if strategy.has_generation:
        obj["metadata"]["generation"] = 1
    store.create(resource, obj)

"""An API server in a dictionary: what `kube.gateway.Gateway` promises, without a network.

It keeps resourceVersions, an event log for watches, conflicts, the patch types we send, the binding
subresource and owner-reference garbage collection. `tests.kube.contract` holds it to what the real
client does against a real server. A watch gives what has happened and then ends, as a server may;
`follow_s` makes it wait for more (for tests with threads).
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from kube.errors import (
    AlreadyExistsError,
    BadValueError,
    ConflictError,
    DisruptionBudgetError,
    GoneError,
    KubeError,
    NotFoundError,
)
from kube.gateway import (
    EVERYTHING,
    NO_OPTIONS,
    Body,
    EventType,
    Listing,
    PatchOptions,
    PatchType,
    Selectors,
    WatchEvent,
)
from kube.objects.meta import convert
from kube.resources import POD_DISRUPTION_BUDGETS, PODS, QUEUES, SHARDS, Resource
from tests.fakes.bodies import copy, merged, patched, selects

EVICTED = "EvictionByEvictionAPI"


@dataclass(slots=True)
class FakeGateway:
    """In-memory gateway. `calls` lists (verb, plural, name) of every write, in order."""

    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    follow_s: float = 0.0
    compacted_before: int = 0
    objects: dict[tuple[Resource, str, str], dict[str, Any]] = field(default_factory=dict)
    calls: list[tuple[str, str, str]] = field(default_factory=list)
    _refusals: dict[tuple[str, str, str], KubeError] = field(default_factory=dict)
    #: By kind: the versions, and in the same order the events (version, event type, body).
    _versions: dict[Resource, list[int]] = field(default_factory=dict)
    _log: dict[Resource, list[tuple[int, str, dict[str, Any]]]] = field(default_factory=dict)
    _version: int = 100
    _uids: int = 0
    _failures: list[tuple[str, str, KubeError]] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    # What tests use beside the protocol.

    def fail_next(self, verb: str, plural: str, error: KubeError) -> None:
        """Let the next `verb` (get, list, watch, create, patch, replace, delete, bind, evict) fail."""
        self._failures.append((verb, plural, error))

    def refuse(self, verb: str, plural: str, name: str, error: KubeError) -> None:
        """Let every such write of one object fail from now on, as an admission webhook can."""
        self._refusals[verb, plural, name] = error

    def allow(self, verb: str, plural: str, name: str) -> None:
        """End what `refuse` began."""
        del self._refusals[verb, plural, name]

    def seed(self, resource: Resource, *bodies: Body) -> list[dict[str, Any]]:
        """Create objects, keeping a given uid, status and creationTimestamp; not listed in `calls`."""
        created = []
        for body in bodies:
            namespace = body.get("metadata", {}).get("namespace", "")
            created.append(self._store_new(resource, copy(dict(body)), namespace))
        return created

    def raw(self, resource: Resource, name: str, namespace: str = "") -> dict[str, Any]:
        """Return the stored body of one object."""
        return copy(self._existing(resource, namespace, name))

    def names(self, resource: Resource, namespace: str = "") -> list[str]:
        return [key[2] for key in self._keys(resource, namespace)]

    # The protocol.

    def get(self, resource: Resource, name: str, *, as_type: type, namespace: str = "") -> Any:
        self._maybe_fail("get", resource)
        return convert(self.raw(resource, name, namespace), as_type)

    def list(
        self,
        resource: Resource,
        *,
        as_type: type,
        namespace: str = "",
        selectors: Selectors = EVERYTHING,
    ) -> Listing[Any]:
        self._maybe_fail("list", resource)
        with self._changed:
            bodies = [copy(self.objects[key]) for key in self._keys(resource, namespace)]
            selected = (body for body in bodies if selects(selectors, body))
            readable = (_readable(body, as_type) for body in selected)
            items = [item for item in readable if item is not None]
            return Listing(items=items, resource_version=str(self._version))

    def watch(
        self,
        resource: Resource,
        *,
        as_type: type,
        resource_version: str,
        namespace: str = "",
        selectors: Selectors = EVERYTHING,
        timeout_s: int = 300,
    ) -> Iterator[WatchEvent[Any]]:
        self._maybe_fail("watch", resource)
        since = int(resource_version or 0)
        if since < self.compacted_before:
            raise GoneError(f"too old resource version: {since}", status=410, reason="Expired")
        while True:
            for version, event_type, body in self._since(resource, since):
                since = version
                is_ours = not namespace or body["metadata"].get("namespace") == namespace
                if not (is_ours and selects(selectors, body)):
                    continue
                item = _readable(copy(body), as_type)
                if item is not None:
                    yield WatchEvent(
                        type=EventType(event_type),
                        object=item,
                        resource_version=str(version),
                    )
            if not self.follow_s or not self._waited(resource, since):
                return

    def create(
        self, resource: Resource, body: Body, *, namespace: str = "", dry_run: bool = False
    ) -> dict[str, Any]:
        self._begin("create", resource, body.get("metadata", {}).get("name", ""))
        fresh = copy(dict(body))
        for server_owned in ("uid", "resourceVersion", "creationTimestamp", "generation"):
            fresh.setdefault("metadata", {}).pop(server_owned, None)
        return self._store_new(resource, fresh, namespace, dry_run=dry_run)

    def replace(
        self, resource: Resource, name: str, body: Body, *, namespace: str = "", sub: str = ""
    ) -> dict[str, Any]:
        self._begin("replace", resource, name)
        with self._changed:
            old = self._existing(resource, namespace, name)
            _check_version(old, body)
            return self._store_changed(resource, old, copy(dict(body)), sub)

    def patch(
        self,
        resource: Resource,
        name: str,
        body: Body | Sequence[Body],
        *,
        namespace: str = "",
        sub: str = "",
        patch_type: PatchType = PatchType.MERGE,
        options: PatchOptions = NO_OPTIONS,
    ) -> dict[str, Any]:
        self._begin("patch", resource, name)
        with self._changed:
            if patch_type is PatchType.APPLY and not self._has(resource, namespace, name):
                assert isinstance(body, dict)
                fresh = copy(dict(body))
                return self._store_new(resource, fresh, namespace, dry_run=options.dry_run)
            old = self._existing(resource, namespace, name)
            if not isinstance(body, Sequence):
                _check_version(old, body)
            new = patched(old, body, patch_type)
            if options.dry_run:
                return new
            return self._store_changed(resource, old, new, sub)

    def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str = "",
        grace_period_s: int | None = None,
        resource_version: str = "",
        uid: str = "",
    ) -> None:
        self._begin("delete", resource, name)
        with self._changed:
            old = self._existing(resource, namespace, name)
            if (uid and old["metadata"]["uid"] != uid) or (
                resource_version and old["metadata"]["resourceVersion"] != resource_version
            ):
                raise ConflictError(
                    f"precondition failed for {name}", status=409, reason="Conflict"
                )
            is_running = resource == PODS and old.get("spec", {}).get("nodeName")
            if (is_running and grace_period_s != 0) or old["metadata"].get("finalizers"):
                new = copy(old)
                new["metadata"].setdefault("deletionTimestamp", _text(self.now))
                self._put(resource, new, "MODIFIED")
                return
            self._drop(resource, old)

    def bind(
        self,
        namespace: str,
        pod: str,
        *,
        pod_uid: str,
        node: str,
        annotations: Body | None = None,
        resource_version: str = "",
    ) -> None:
        self._begin("bind", PODS, pod)
        with self._changed:
            old = self._existing(PODS, namespace, pod)
            if resource_version not in ("", old["metadata"]["resourceVersion"]):
                raise ConflictError(f"pod {pod} has been modified", status=409, reason="Conflict")
            if old["metadata"]["uid"] != pod_uid or old.get("spec", {}).get("nodeName"):
                raise ConflictError(
                    f"pod {pod} is already assigned to a node, or is another pod of that name",
                    status=409,
                    reason="Conflict",
                )
            new = copy(old)
            new.setdefault("spec", {})["nodeName"] = node
            new["metadata"].setdefault("annotations", {}).update(annotations or {})
            conditions = [{"type": "PodScheduled", "status": "True"}]
            new = merged(new, {"status": {"conditions": conditions}}, by_key=True)
            self._put(PODS, new, "MODIFIED")

    def evict(self, namespace: str, pod: str, *, pod_uid: str) -> None:
        self._begin("evict", PODS, pod)
        with self._changed:
            old = self._existing(PODS, namespace, pod)
            if old["metadata"]["uid"] != pod_uid:
                raise ConflictError(f"precondition failed for {pod}", status=409, reason="Conflict")
            is_running = old.get("status", {}).get("phase") == "Running"
            if is_running and not old["metadata"].get("deletionTimestamp"):
                self._spend_budget(old)
            if not old.get("spec", {}).get("nodeName") and not old["metadata"].get("finalizers"):
                self._drop(PODS, old)
                return
            new = copy(old)
            new["metadata"].setdefault("deletionTimestamp", _text(self.now))
            condition = {"type": "DisruptionTarget", "status": "True", "reason": EVICTED}
            new = merged(new, {"status": {"conditions": [condition]}}, by_key=True)
            self._put(PODS, new, "MODIFIED")

    # How it works inside.

    def _spend_budget(self, pod: dict[str, Any]) -> None:
        """Take one from the budget that selects a pod by its labels; refuse if nothing is left."""
        labels, namespace = (
            pod["metadata"].get("labels") or {},
            pod["metadata"].get("namespace", ""),
        )
        for key in self._keys(POD_DISRUPTION_BUDGETS, namespace):
            budget = copy(self.objects[key])
            wanted = budget["spec"]["selector"]["matchLabels"].items()
            if not wanted <= labels.items():
                continue
            allowed = budget["status"]["disruptionsAllowed"]
            if allowed <= 0:
                raise DisruptionBudgetError(
                    "Cannot evict pod as it would violate the pod's disruption budget.",
                    budget_text=f"The disruption budget {key[2]} allows no disruption",
                )
            budget["status"]["disruptionsAllowed"] = allowed - 1
            self._put(POD_DISRUPTION_BUDGETS, budget, "MODIFIED")

    def _begin(self, verb: str, resource: Resource, name: str) -> None:
        self._maybe_fail(verb, resource)
        refusal = self._refusals.get((verb, resource.plural, name))
        if refusal is not None:
            raise refusal
        with self._changed:
            self.calls.append((verb, resource.plural, name))

    def _maybe_fail(self, verb: str, resource: Resource) -> None:
        for planned in self._failures:
            if planned[:2] == (verb, resource.plural):
                self._failures.remove(planned)
                raise planned[2]

    def _keys(self, resource: Resource, namespace: str) -> list[tuple[Resource, str, str]]:
        return sorted(
            (
                key
                for key in self.objects
                if key[0] == resource and (not namespace or key[1] == namespace)
            ),
            key=lambda key: key[1:],
        )

    def _has(self, resource: Resource, namespace: str, name: str) -> bool:
        return (resource, namespace if resource.namespaced else "", name) in self.objects

    def _existing(self, resource: Resource, namespace: str, name: str) -> dict[str, Any]:
        key = (resource, namespace if resource.namespaced else "", name)
        if key not in self.objects:
            raise NotFoundError(
                f'{resource.plural} "{name}" not found', status=404, reason="NotFound"
            )
        return self.objects[key]

    def _store_new(
        self, resource: Resource, body: dict[str, Any], namespace: str, *, dry_run: bool = False
    ) -> dict[str, Any]:
        with self._changed:
            self._uids += 1
            meta = body.setdefault("metadata", {})
            if not meta.get("name"):
                meta["name"] = f"{meta.get('generateName', 'x-')}{self._uids:05d}"
            if resource.namespaced:
                meta["namespace"] = namespace or meta.get("namespace", "default")
            if self._has(resource, meta.get("namespace", ""), meta["name"]):
                raise AlreadyExistsError(
                    f"{resource.plural} {meta['name']!r} already exists",
                    status=409,
                    reason="AlreadyExists",
                )
            meta.setdefault("uid", f"uid-{self._uids}")
            meta.setdefault("creationTimestamp", _text(self.now))
            body.setdefault("apiVersion", resource.api_version)
            body.setdefault("kind", resource.kind)
            if _counts_generations(resource):
                meta.setdefault("generation", 1)
            return copy(body) if dry_run else self._put(resource, body, "ADDED")

    def _store_changed(
        self, resource: Resource, old: dict[str, Any], new: dict[str, Any], sub: str
    ) -> dict[str, Any]:
        if sub:
            new = {**copy(old), sub: new.get(sub)}
        for owned in ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp"):
            new["metadata"].pop(owned, None)
            if owned in old["metadata"]:
                new["metadata"][owned] = old["metadata"][owned]
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        if new == old:
            return copy(old)
        if _counts_generations(resource):
            is_edit = new.get("spec") != old.get("spec")
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + is_edit
        is_on_node = resource == PODS and new.get("spec", {}).get("nodeName")
        is_leaving = new["metadata"].get("deletionTimestamp") and not is_on_node
        if is_leaving and not new["metadata"].get("finalizers"):
            self._drop(resource, new)
            return copy(new)
        return self._put(resource, new, "MODIFIED")

    def _put(self, resource: Resource, body: dict[str, Any], event: str) -> dict[str, Any]:
        self._version += 1
        body["metadata"]["resourceVersion"] = str(self._version)
        key = (resource, body["metadata"].get("namespace", ""), body["metadata"]["name"])
        self.objects[key] = body
        self._note(resource, event, copy(body))
        return copy(body)

    def _drop(self, resource: Resource, body: dict[str, Any]) -> None:
        meta = body["metadata"]
        del self.objects[(resource, meta.get("namespace", ""), meta["name"])]
        self._version += 1
        gone = copy(body)
        gone["metadata"]["resourceVersion"] = str(self._version)
        self._note(resource, "DELETED", gone)
        for key, dependent in list(self.objects.items()):
            owners = dependent["metadata"].get("ownerReferences", ())
            if key in self.objects and any(owner.get("uid") == meta["uid"] for owner in owners):
                self._drop(key[0], dependent)

    def _note(self, resource: Resource, event: str, body: dict[str, Any]) -> None:
        self._versions.setdefault(resource, []).append(self._version)
        self._log.setdefault(resource, []).append((self._version, event, body))
        self._changed.notify_all()

    def _since(self, resource: Resource, version: int) -> list[tuple[int, str, dict[str, Any]]]:
        with self._changed:
            first = bisect_right(self._versions.get(resource, []), version)
            return self._log.get(resource, [])[first:]

    def _waited(self, resource: Resource, version: int) -> bool:
        with self._changed:
            return self._changed.wait_for(
                lambda: bool(self._since(resource, version)), timeout=self.follow_s
            )


def _counts_generations(resource: Resource) -> bool:
    """Return whether the API server counts changes of the spec, as it does for custom resources."""
    return resource in (QUEUES, SHARDS)


def _check_version(old: dict[str, Any], body: Body) -> None:
    expected_version = body.get("metadata", {}).get("resourceVersion")
    if expected_version and expected_version != old["metadata"]["resourceVersion"]:
        raise ConflictError("the object has been modified", status=409, reason="Conflict")


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _readable(body: Body, as_type: type) -> Any:
    """Leave out what the real client cannot decode."""
    try:
        return convert(body, as_type)
    except BadValueError:
        return None

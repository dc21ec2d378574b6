"""DELETE: preconditions, grace periods, finalizers and propagation policies."""

from __future__ import annotations

from typing import Any

from sandbox.apiserver.access.admission import Admission, AdmissionCall
from sandbox.apiserver.lifecycle.writes import touch_deletion
from sandbox.apiserver.model import errors
from sandbox.apiserver.model.entry import Entry, Obj
from sandbox.apiserver.model.user import User
from sandbox.apiserver.schema import conversion
from sandbox.apiserver.storage.store import Store
from sandbox.apiserver.wire.request import Target

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
_POLICIES = ("Background", "Foreground", "Orphan")
# Kinds whose dependents are orphaned unless the request has a policy, as in the real server.
_ORPHANING = frozenset({"jobs.batch"})
_FINISHED_PHASES = ("Succeeded", "Failed")


def _stated(options: Obj) -> Obj:
    return {key: value for key, value in options.items() if key not in ("kind", "apiVersion")}


class Deleter:
    """Deletes one object, at once or after its grace period and finalizers."""

    def __init__(self, store: Store, admission: Admission) -> None:
        self._store = store
        self._admission = admission

    async def delete(
        self, target: Target, entry: Entry, options: Obj, user: User
    ) -> tuple[Entry, bool]:
        """Delete an object; return its last state and whether it is gone."""
        dry_run = bool(options.get("dryRun"))
        call = AdmissionCall("DELETE", target, user, dry_run, [], _stated(options))
        entry = await self._admitted(call, entry, options)
        obj = entry.load()
        grace_s = _grace(target, obj, options)
        finalizers = _finalizers(target, obj, options)
        meta = obj["metadata"]
        waits_for_content = target.resource.storage == "namespaces" and obj["spec"].get(
            "finalizers"
        )
        if not finalizers and not grace_s and not waits_for_content:
            if target.resource.storage == "pods":
                touch_deletion(obj, 0)
            return (entry if dry_run else self._store.remove(entry, obj)), True
        if entry.terminating and not self._changes_deletion(meta, grace_s, finalizers):
            return entry, False
        if finalizers:
            meta["finalizers"] = finalizers
        touch_deletion(obj, grace_s)
        if waits_for_content:
            obj["status"] = {**obj.get("status", {}), "phase": "Terminating"}
            meta.pop("deletionGracePeriodSeconds", None)
        if dry_run:
            return Entry(entry.resource, obj, entry.version), False
        return self._store.update(entry, obj), False

    async def _admitted(self, call: AdmissionCall, entry: Entry, options: Obj) -> Entry:
        """Return the entry whose deletion the webhooks allowed.

        A DELETE has no version, so an object that changed during the calls is no conflict; the webhooks
        are called again with its new state.
        """
        resource = call.target.resource
        while True:
            self.check_preconditions(call.target, entry, options)
            await self._admission.validate(call, None, conversion.load_as(resource, entry))
            current = self._store.get(resource.storage, *entry.key)
            if current is entry:
                return entry
            if current is None:
                raise errors.not_found(resource.group, resource.plural, entry.name)
            entry = current

    def check_preconditions(self, target: Target, entry: Entry, options: Obj) -> None:
        """Refuse a deletion whose preconditions (uid, resourceVersion) the object does not meet."""
        resource = target.resource
        expected: dict[str, Any] = options.get("preconditions") or {}
        if expected.get("uid") and expected["uid"] != entry.uid:
            why = f"the UID in the precondition ({expected['uid']}) does not match the UID in record ({entry.uid}). The object might have been deleted and then recreated"
            raise errors.conflict(resource.group, resource.kind, entry.name, why)
        version = expected.get("resourceVersion")
        if version and version != str(entry.version):
            why = f"the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({entry.version}). The object might have been modified"
            raise errors.conflict(resource.group, resource.kind, entry.name, why)

    def _changes_deletion(self, meta: Obj, grace_s: int, finalizers: list[str]) -> bool:
        """Return whether a repeated delete changes something: a shorter grace period or the policy."""
        current = meta.get("deletionGracePeriodSeconds", 0)
        return grace_s < current or finalizers != (meta.get("finalizers") or [])


def _grace(target: Target, obj: Obj, options: Obj) -> int:
    """Return the grace period in seconds; only a bound pod that has not ended has one."""
    if target.resource.storage != "pods" or not obj["spec"].get("nodeName"):
        return 0
    if (obj.get("status") or {}).get("phase") in _FINISHED_PHASES:
        return 0
    grace_s = options.get("gracePeriodSeconds")
    if grace_s is None:
        grace_s = obj["spec"].get("terminationGracePeriodSeconds", 30)
    if grace_s < 0:
        grace_s = 1
    return int(grace_s)


def _finalizers(target: Target, obj: Obj, options: Obj) -> list[str]:
    """Return the finalizers of an object, with the one of the propagation policy."""
    finalizers = list(obj["metadata"].get("finalizers") or ())
    policy = options.get("propagationPolicy")
    if policy is None:
        if not options.get("orphanDependents") and target.resource.storage not in _ORPHANING:
            return finalizers
        policy = "Orphan"
    if policy not in _POLICIES:
        allowed = ("Foreground", "Background", "Orphan", "nil")
        cause = errors.unsupported("propagationPolicy", policy, allowed)
        raise errors.invalid("meta.k8s.io", "DeleteOptions", "", [cause])
    finalizers = [name for name in finalizers if name not in (FOREGROUND, ORPHAN)]
    if policy == "Foreground":
        finalizers.append(FOREGROUND)
    elif policy == "Orphan":
        finalizers.append(ORPHAN)
    return finalizers

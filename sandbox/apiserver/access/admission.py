"""Admission, between decoding and storing: the namespace lifecycle, pod priorities, runtime classes and webhooks."""

from __future__ import annotations

from dataclasses import dataclass, field

from sandbox.apiserver.access.runtime_class import apply_runtime_class
from sandbox.apiserver.access.webhooks import HookCall, Webhooks
from sandbox.apiserver.model import errors
from sandbox.apiserver.model.entry import Entry, Obj
from sandbox.apiserver.model.user import User
from sandbox.apiserver.storage.store import Store
from sandbox.apiserver.wire.request import Target

_NAMESPACES = "namespaces"
_PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"
_UNKNOWN_CLASS = "no PriorityClass with name {} was found"


@dataclass(frozen=True, slots=True)
class AdmissionCall:
    """One operation to admit: who does what to which target, and the warnings for the client.

    `options` are those that the client stated, without the kind that the operation gives them.
    """

    operation: str
    target: Target
    user: User
    dry_run: bool
    warnings: list[str]
    options: Obj = field(default_factory=dict)


class Admission:
    """The admission checks of the sandbox, in the order of the real server."""

    def __init__(self, store: Store, webhooks: Webhooks) -> None:
        self._store = store
        self._webhooks = webhooks

    def gate_namespace(self, target: Target, name: str) -> None:
        """Refuse new objects in a namespace that is missing or being deleted."""
        if not target.resource.namespaced:
            return
        entry = self._store.get(_NAMESPACES, "", target.namespace)
        if entry is None:
            raise errors.not_found("", _NAMESPACES, target.namespace)
        if entry.terminating and not target.sub:
            resource = target.resource
            why = (
                f"unable to create new content in namespace {target.namespace} because it is "
                "being terminated"
            )
            error = errors.forbidden(resource.group, resource.plural, name, why)
            error.details = {
                **(error.details or {}),
                "causes": [
                    {
                        "reason": "NamespaceTerminating",
                        "message": f"namespace {target.namespace} is being terminated",
                        "field": "metadata.namespace",
                    }
                ],
            }
            raise error

    async def mutate(self, call: AdmissionCall, obj: Obj, old: Obj | None) -> Obj:
        """Return the object after the mutating webhooks, with what its priority class and runtime class say."""
        if self._webhooks.has_mutating:
            obj = await self._webhooks.mutate(self._hook_call(call), obj, old)
        if (
            call.operation == "CREATE"
            and call.target.resource.storage == "pods"
            and not call.target.sub
        ):
            self._set_priority(obj)
            apply_runtime_class(obj, self._store)
        elif old is not None and call.target.resource.storage == "pods":
            _keep_priority(obj, old)
        return obj

    async def validate(self, call: AdmissionCall, obj: Obj | None, old: Obj | None) -> None:
        if self._webhooks.has_validating:
            await self._webhooks.validate(self._hook_call(call), obj, old)

    def _set_priority(self, pod: Obj) -> None:
        spec = pod["spec"]
        name = spec.get("priorityClassName", "")
        entry = self._store.get(_PRIORITY_CLASSES, "", name) if name else self._default_class()
        if name and entry is None:
            raise errors.forbidden(
                "", "pods", pod["metadata"].get("name", ""), _UNKNOWN_CLASS.format(name)
            )
        if entry is None:
            spec.setdefault("priority", 0)
            return
        priority_class = entry.load()
        spec["priorityClassName"] = entry.name
        spec["priority"] = priority_class.get("value", 0)
        spec["preemptionPolicy"] = priority_class.get("preemptionPolicy", "PreemptLowerPriority")

    def _default_class(self) -> Entry | None:
        entries = self._store.collection(_PRIORITY_CLASSES).entries.values()
        defaults = [entry for entry in entries if b'"globalDefault":true' in entry.raw]
        return min(defaults, key=lambda entry: entry.load().get("value", 0), default=None)

    def _hook_call(self, call: AdmissionCall) -> HookCall:
        return HookCall(
            operation=call.operation,
            target=call.target,
            user=call.user.info,
            dry_run=call.dry_run,
            warnings=call.warnings,
            options=call.options,
        )


def _keep_priority(pod: Obj, old: Obj) -> None:
    """Copy the priority from the old pod if an update omits it, because it is set at creation only."""
    for key in ("priority", "preemptionPolicy"):
        if key in old["spec"]:
            pod["spec"].setdefault(key, old["spec"][key])

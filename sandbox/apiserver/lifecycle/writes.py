"""Creates and updates: decode, default, admit, check, store.

Both take a plain object in the served version and end in one call of the `Store`. Between reading the
old state and writing the new one, only webhooks are awaited. The old state is compared again after them,
so that a concurrent write leads to 409 and is not overwritten.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import orjson

from sandbox.apiserver.access.admission import Admission, AdmissionCall
from sandbox.apiserver.lifecycle import metadata
from sandbox.apiserver.model import clock, errors
from sandbox.apiserver.model.entry import Entry, Obj
from sandbox.apiserver.model.errors import Cause
from sandbox.apiserver.model.resources import Registry, ServedResource
from sandbox.apiserver.model.user import User
from sandbox.apiserver.patch.ownership import record_update
from sandbox.apiserver.schema import conversion, validation
from sandbox.apiserver.schema.kinds.base import Strategy
from sandbox.apiserver.schema.kinds.table import strategy_of
from sandbox.apiserver.schema.rules import Rules
from sandbox.apiserver.storage.store import Store
from sandbox.apiserver.wire.request import Request, Target

_GENERATE_TRIES = 8
# Built-in kinds whose update must have a resourceVersion, like that of custom kinds.
_VERSIONED_UPDATES = frozenset(
    {
        "customresourcedefinitions.apiextensions.k8s.io",
        "leases.coordination.k8s.io",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "poddisruptionbudgets.policy",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
    }
)


@dataclass(slots=True, kw_only=True)
class WriteOptions:
    """The options of one write, and the warnings for the client; `stated` are the options as webhooks get them."""

    user: User
    manager: str
    dry_run: bool = False
    validation: str = "Warn"
    applied: bool = False
    is_patch: bool = False
    warnings: list[str] = field(default_factory=list)
    stated: Obj = field(default_factory=dict)

    @classmethod
    def of(cls, request: Request) -> WriteOptions:
        validation = request.params.get("fieldValidation") or "Warn"
        if validation not in ("Strict", "Warn", "Ignore"):
            cause = errors.unsupported(
                "fieldValidation", validation, ["", "Ignore", "Strict", "Warn"]
            )
            raise errors.invalid("meta.k8s.io", "CreateOptions", "", [cause])
        names = ("fieldManager", "fieldValidation")
        stated: Obj = {name: request.params[name] for name in names if request.params.get(name)}
        if request.dry_run:
            stated["dryRun"] = ["All"]
        return cls(
            user=request.user,
            manager=request.manager,
            dry_run=request.dry_run,
            validation=validation,
            stated=stated,
        )

    def call(self, operation: str, target: Target) -> AdmissionCall:
        """Return what admission is asked about this write."""
        return AdmissionCall(operation, target, self.user, self.dry_run, self.warnings, self.stated)


class Writer:
    """Creates and updates objects of every kind."""

    def __init__(
        self, store: Store, registry: Registry, admission: Admission, rules: Rules
    ) -> None:
        self._store = store
        self._registry = registry
        self._admission = admission
        self._rules = rules
        #: Storage name of a kind -> its own check of (new, old) objects.
        self.checks: dict[str, Callable[[Obj, Obj | None], list[Cause]]] = {}

    async def create(self, target: Target, obj: Obj, options: WriteOptions) -> Entry:
        """Store a new object; 409 if its name is in use."""
        resource = target.resource
        self.decode(resource, obj, options)
        meta = metadata.begin(target, obj)
        if not options.applied:
            meta.pop("managedFields", None)
        self._admission.gate_namespace(target, meta.get("name", ""))
        strategy = strategy_of(resource.storage)
        _fill_defaults(resource, strategy, obj)
        call = options.call("CREATE", target)
        obj = await self._mutate(call, strategy, obj, None, options)
        self._prepare_new(resource, strategy, obj)
        self._check(target, strategy, obj, None)
        await self._admission.validate(call, obj, None)
        stored = self._stored(resource)
        if stored is not resource:
            conversion.to_storage(resource, stored, obj)
        self._choose_name(target, meta, obj)
        if options.dry_run:
            return _unsaved(Entry(stored, obj, self._store.version), obj)
        return self._store.create(stored, obj)

    async def update(self, target: Target, entry: Entry, obj: Obj, options: WriteOptions) -> Entry:
        """Replace an object, or the part that `target.sub` names; without a change nothing is written."""
        resource = target.resource
        self.decode(resource, obj, options)
        old = conversion.load_as(resource, entry)
        metadata.check_identity(old, obj, target, is_patch=options.is_patch)
        self._check_version(target, entry, obj)
        metadata.carry_over(old, obj)
        strategy = strategy_of(resource.storage)
        obj = self._merge_part(target, strategy, old, obj)
        if not target.sub or resource.custom is not None:
            _fill_defaults(resource, strategy, obj)
        call = options.call("UPDATE", target)
        obj = await self._mutate(call, strategy, obj, old, options)
        obj["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        if not options.applied:
            record_update(
                old, obj, resource, target.sub, options.manager, self._registry.meta_shape
            )
        if _same(old, obj):
            return entry
        self._count_generation(resource, strategy, old, obj)
        self._check(target, strategy, obj, old)
        await self._admission.validate(call, obj, old)
        if self._store.get(resource.storage, entry.namespace, entry.name) is not entry:
            raise errors.stale(resource.group, resource.plural, entry.name)
        return self._commit(target, entry, obj, options)

    async def _mutate(
        self,
        call: AdmissionCall,
        strategy: Strategy,
        obj: Obj,
        old: Obj | None,
        options: WriteOptions,
    ) -> Obj:
        """Return the object after admission; a changed object is decoded and defaulted again."""
        mutated = await self._admission.mutate(call, obj, old)
        if mutated is not obj:
            self.decode(call.target.resource, mutated, options)
            if not call.target.sub or call.target.resource.custom is not None:
                _fill_defaults(call.target.resource, strategy, mutated)
        return mutated

    async def admit(self, call: AdmissionCall, body: Obj) -> None:
        """Call the webhooks for an operation that stores no object of its own, such as a binding."""
        await self._admission.validate(call, body, None)

    def decode(self, resource: ServedResource, obj: Obj, options: WriteOptions) -> None:
        """Check kind and version, drop unknown fields, and report them as `fieldValidation` says."""
        _check_kind(resource, obj)
        if resource.custom is not None:
            unknown = self._decode_custom(resource, obj)
        else:
            findings = validation.sift(obj, resource.shape) or []
            _refuse_wrong_types(resource, "", findings)
            unknown = [path.lstrip(".") for path, _ in findings]
        if not unknown or options.validation == "Ignore":
            return
        problems = [f'unknown field "{path}"' for path in unknown]
        if options.validation == "Strict":
            raise errors.bad_request(
                f'{resource.kind} in version "{resource.version}" cannot be handled as a '
                f"{resource.kind}: strict decoding error: {', '.join(problems)}"
            )
        options.warnings += problems

    def _decode_custom(self, resource: ServedResource, obj: Obj) -> list[str]:
        # The schema covers the body alone, and the head must stay the first part of the object.
        head: Obj = {key: obj.pop(key) for key in ("apiVersion", "kind", "metadata") if key in obj}
        unknown = validation.prune(obj, resource.shape)
        body = dict(obj)
        obj.clear()
        obj.update(head)
        obj.update(body)
        findings = validation.sift(obj.get("metadata") or {}, self._registry.meta_shape) or []
        _refuse_wrong_types(resource, ".metadata", findings)
        unknown += [f".metadata{path}" for path, _ in findings]
        return sorted(path.lstrip(".") for path in unknown)

    def _prepare_new(self, resource: ServedResource, strategy: Strategy, obj: Obj) -> None:
        if resource.custom is not None:
            if "status" in resource.subresources:
                obj.pop("status", None)
            obj["metadata"]["generation"] = 1
            return
        if strategy.status is not None:
            obj["status"] = dict(strategy.status)
        strategy.prepare(obj)
        if strategy.has_generation:
            obj["metadata"]["generation"] = 1

    def _check(self, target: Target, strategy: Strategy, obj: Obj, old: Obj | None) -> None:
        resource = target.resource
        causes = metadata.validate(obj, strategy.name_rule)
        if old is not None:
            causes += metadata.validate_update(old, obj)
        if resource.custom is not None:
            body = {
                key: value
                for key, value in obj.items()
                if key not in ("apiVersion", "kind", "metadata")
            }
            schema_causes = validation.validate(body, resource.shape, "")
            causes += schema_causes
            causes += self._rules.check(obj, old, resource.shape, schema_causes)
        elif not target.sub:
            causes += strategy.validate(obj)
            if old is not None:
                causes += strategy.validate_update(old, obj)
        elif target.sub == "status" and old is not None:
            causes += strategy.validate_status(old, obj)
        check = self.checks.get(resource.storage)
        if check is not None and not causes:
            causes += check(obj, old)
        if causes:
            name = obj["metadata"].get("name", "")
            raise errors.invalid(resource.group, resource.kind, name, causes)

    def _choose_name(self, target: Target, meta: Obj, obj: Obj) -> None:
        resource = target.resource
        for _ in range(_GENERATE_TRIES):
            name = obj["metadata"]["name"]
            holder = self._store.get(resource.storage, target.namespace, name)
            if holder is None:
                return
            if not meta.get("generateName"):
                raise errors.already_exists(
                    resource.group, resource.plural, name, is_terminating=holder.terminating
                )
            obj["metadata"]["name"] = metadata.generated_name(meta["generateName"])
        raise errors.already_exists(resource.group, resource.plural, obj["metadata"]["name"])

    def _check_version(self, target: Target, entry: Entry, obj: Obj) -> None:
        resource = target.resource
        version = (obj.get("metadata") or {}).get("resourceVersion")
        if version and version != str(entry.version):
            raise errors.stale(resource.group, resource.plural, entry.name)
        if not version and (resource.custom is not None or resource.storage in _VERSIONED_UPDATES):
            cause = errors.invalid_value(
                "metadata.resourceVersion", 0, "must be specified for an update"
            )
            raise errors.invalid(resource.group, resource.plural, entry.name, [cause])

    def _merge_part(self, target: Target, strategy: Strategy, old: Obj, obj: Obj) -> Obj:
        """Return old and new combined: /status changes the status only, other writes all but the status."""
        resource = target.resource
        if target.sub == "status":
            merged = {**old, "status": obj.get("status", {})}
            meta = dict(old["metadata"])
            if strategy.meta_by_status:
                for key in ("labels", "annotations"):
                    _copy_field(obj["metadata"], meta, key)
            _copy_field(obj["metadata"], meta, "managedFields")
            merged["metadata"] = meta
            if "status" not in obj:
                merged.pop("status")
            return merged
        if not target.sub and "status" in resource.subresources:
            _copy_field(old, obj, "status")
        return obj

    def _count_generation(
        self, resource: ServedResource, strategy: Strategy, old: Obj, obj: Obj
    ) -> None:
        if resource.custom is None and not strategy.has_generation:
            return
        ignored = {"metadata", "apiVersion", "kind"}
        if resource.custom is None or "status" in resource.subresources:
            ignored.add("status")
        fields = (old.keys() | obj.keys()) - ignored
        if any(old.get(key) != obj.get(key) for key in fields):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def _commit(self, target: Target, entry: Entry, obj: Obj, options: WriteOptions) -> Entry:
        resource = target.resource
        stored = self._stored(resource)
        if stored is not resource:
            conversion.to_storage(resource, stored, obj)
        if options.dry_run:
            return Entry(stored, obj, entry.version)
        meta = obj["metadata"]
        is_deleted = "deletionTimestamp" in meta and not meta.get("finalizers")
        has_grace = meta.get("deletionGracePeriodSeconds", 0) > 0
        has_content = resource.storage == "namespaces" and obj["spec"].get("finalizers")
        if is_deleted and not has_grace and not has_content:
            return self._store.remove(entry, obj)
        return self._store.update(entry, obj)

    def _stored(self, resource: ServedResource) -> ServedResource:
        if resource.version == resource.storage_version and resource.qualified == resource.storage:
            return resource
        return self._registry.stored(resource.storage) or resource


def _fill_defaults(resource: ServedResource, strategy: Strategy, obj: Obj) -> None:
    """Fill in what the kind's rules or a custom kind's schema say, so that webhooks see it, too."""
    if resource.custom is not None:
        validation.fill_defaults(obj, resource.shape)
    else:
        strategy.defaults(obj)


def _unsaved(entry: Entry, obj: Obj) -> Entry:
    """Remove the version of an entry, because a dry run stores nothing."""
    del obj["metadata"]["resourceVersion"]
    entry.raw = orjson.dumps(obj)
    return entry


def touch_deletion(obj: Obj, grace_s: int) -> None:
    """Mark an object as being deleted in `grace_s` seconds."""
    meta = obj["metadata"]
    repeated = "deletionTimestamp" in meta
    deleted_at = clock.now()
    meta["deletionTimestamp"] = clock.stamp(deleted_at + clock.seconds(grace_s))
    meta["deletionGracePeriodSeconds"] = grace_s
    if meta.get("generation") and not repeated:
        meta["generation"] += 1


def _check_kind(resource: ServedResource, obj: Obj) -> None:
    if not isinstance(obj, dict):
        raise errors.bad_request(f"expected a {resource.kind} object, got {errors.quoted(obj)}")
    if resource.custom is not None and not obj.get("kind"):
        text = orjson.dumps(obj).decode()
        raise errors.bad_request(
            f"the object provided is unrecognized (must be of type {resource.kind}): "
            f"Object 'Kind' is missing in '{text}' ({text[:24]} ...)"
        )
    kind = obj.get("kind") or resource.kind
    version = obj.get("apiVersion") or resource.api_version
    if version != resource.api_version:
        raise errors.bad_request(
            f"the API version in the data ({version}) does not match the expected API version "
            f"({resource.api_version})"
        )
    if kind != resource.kind:
        raise errors.bad_request(
            f"the object provided is unrecognized (must be of type {resource.kind}): got {kind}"
        )
    obj["apiVersion"], obj["kind"] = version, kind


def _refuse_wrong_types(
    resource: ServedResource, prefix: str, findings: list[validation.Finding]
) -> None:
    for path, problem in findings:
        if problem != validation.UNKNOWN:
            sentence = problem.replace(validation.PLACE, f"{resource.kind}{prefix}{path}")
            raise errors.bad_request(
                f'{resource.kind} in version "{resource.version}" cannot be handled as a '
                f"{resource.kind}: {sentence}"
            )


def _copy_field(source: Obj, target: Obj, key: str) -> None:
    if key in source:
        target[key] = source[key]
    else:
        target.pop(key, None)


def _same(old: Obj, new: Obj) -> bool:
    """Return whether two objects are equal, apart from the times of managed fields."""
    if old == new:
        return True
    before, after = old["metadata"].get("managedFields"), new["metadata"].get("managedFields")
    if not before or not after or _untimed(before) != _untimed(after):
        return False
    bare = [{**o, "metadata": {**o["metadata"], "managedFields": None}} for o in (old, new)]
    return bare[0] == bare[1]


def _untimed(entries: list[Obj]) -> list[Obj]:
    return [{key: value for key, value in entry.items() if key != "time"} for entry in entries]

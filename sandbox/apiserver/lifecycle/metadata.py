"""Metadata of all kinds: names, namespaces, labels, and the fields that only the server sets."""

from __future__ import annotations

import random
import re
import uuid
from typing import Any

from sandbox.apiserver.model import clock, errors
from sandbox.apiserver.model.entry import Obj
from sandbox.apiserver.model.errors import Cause
from sandbox.apiserver.schema.kinds.pods import LABEL_MESSAGE
from sandbox.apiserver.wire.request import Target

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_GENERATED_LENGTH = 63
_LABEL = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
_SUBDOMAIN = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
_SERVICE = re.compile(r"^[a-z]([-a-z0-9]*[a-z0-9])?$")
_KEY_NAME = re.compile(r"^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$")
_VALUE = re.compile(r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$")
# Set once by the server; the values in a write are ignored.
_OWNED_BY_SERVER = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")

_SUBDOMAIN_MESSAGE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'example.com', regex used for "
    "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_SERVICE_MESSAGE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    "regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_KEY_MESSAGE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
    "an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_MESSAGE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
    "'12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def begin(target: Target, obj: Obj) -> Obj:
    """Fill in the metadata of a new object: name, namespace, uid and creation time."""
    meta = obj["metadata"] = obj.get("metadata") or {}
    if meta.get("resourceVersion"):
        raise errors.unclassified("resourceVersion should not be set on objects to be created")
    place(target, meta)
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = generated_name(meta["generateName"])
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"):
        meta.pop(field, None)
    meta["uid"] = str(uuid.UUID(int=random.getrandbits(128), version=4))
    meta["creationTimestamp"] = clock.stamp()
    return meta


def place(target: Target, meta: Obj) -> None:
    """Set the namespace of the URL; a different one in the body is an error."""
    if not target.resource.namespaced:
        meta.pop("namespace", None)
        return
    namespace = meta.get("namespace") or target.namespace
    if namespace != target.namespace:
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    meta["namespace"] = target.namespace


def generated_name(prefix: str) -> str:
    suffix = "".join(random.choices(_SUFFIX_LETTERS, k=5))
    return prefix[: _GENERATED_LENGTH - len(suffix)] + suffix


def check_identity(old: Obj, new: Obj, target: Target, *, is_patch: bool) -> None:
    """Refuse a body whose name, namespace or uid is not that of the object in the URL."""
    meta = new["metadata"] = new.get("metadata") or {}
    place(target, meta)
    name = meta.setdefault("name", target.name)
    if name != target.name:
        raise errors.bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({target.name})"
        )
    uid = old["metadata"]["uid"]
    if not meta.get("uid") or meta["uid"] == uid:
        return
    resource = target.resource
    if is_patch:
        cause = errors.invalid_value("metadata.uid", meta["uid"], "field is immutable")
        raise errors.invalid(resource.group, resource.kind, target.name, [cause])
    why = f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: {uid}"
    raise errors.conflict(resource.group, resource.plural, target.name, why)


def carry_over(old: Obj, new: Obj) -> None:
    """Copy the metadata that a client may not change from the old object."""
    meta, before = new["metadata"], old["metadata"]
    for field in (*_OWNED_BY_SERVER, "generation"):
        if field in before:
            meta[field] = before[field]
        else:
            meta.pop(field, None)
    meta.pop("selfLink", None)


def validate(obj: Obj, rule: str) -> list[Cause]:
    """Check name, labels, annotations, finalizers and owner references."""
    meta = obj["metadata"]
    causes = _validate_name(meta, rule)
    for key, value in (meta.get("labels") or {}).items():
        causes += _validate_label(key, value)
    for key in meta.get("annotations") or ():
        causes += _validate_key(key.lower(), "metadata.annotations")
    causes += _validate_owners(meta.get("ownerReferences") or [])
    for index, finalizer in enumerate(meta.get("finalizers") or ()):
        if "/" not in finalizer and finalizer not in ("orphan", "foregroundDeletion", "kubernetes"):
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            path = f"metadata.finalizers[{index}]"
            causes.append(errors.invalid_value(path, finalizer, detail))
    return causes


def _validate_label(key: str, value: object) -> list[Cause]:
    causes = _validate_key(key, "metadata.labels")
    if not isinstance(value, str):
        causes.append(errors.wrong_type(f"metadata.labels.{key}", value, "must be a string"))
    elif len(value) > 63:
        detail = "must be no more than 63 bytes"
        causes.append(errors.invalid_value("metadata.labels", value, detail))
    elif not _VALUE.match(value):
        causes.append(errors.invalid_value("metadata.labels", value, _VALUE_MESSAGE))
    return causes


def _validate_owners(owners: list[Obj]) -> list[Cause]:
    causes = [cause for owner in owners for cause in _validate_owner(owner)]
    controllers = [
        f"{owner['kind']}/{owner['name']}" for owner in owners if owner.get("controller")
    ]
    if len(controllers) > 1:
        detail = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{controllers[0]} and {controllers[1]}"
        )
        causes.append(errors.invalid_value("metadata.ownerReferences", owners, detail))
    return causes


def _validate_owner(owner: Obj) -> list[Cause]:
    if (owner.get("apiVersion"), owner.get("kind")) == ("v1", "Event"):
        detail = "/v1, Kind=Event is disallowed from being an owner"
        return [errors.invalid_value("metadata.ownerReferences", owner, detail)]
    empty = [field for field in ("apiVersion", "kind", "name", "uid") if not owner.get(field)]
    return [
        errors.invalid_value(
            f"metadata.ownerReferences.{field}",
            "",
            "version must not be empty" if field == "apiVersion" else "must not be empty",
        )
        for field in empty
    ]


def validate_update(old: Obj, new: Obj) -> list[Cause]:
    """Refuse new finalizers on an object that is being deleted."""
    if "deletionTimestamp" not in old["metadata"]:
        return []
    before = set(old["metadata"].get("finalizers") or ())
    added = sorted(set(new["metadata"].get("finalizers") or ()) - before)
    if not added:
        return []
    names = ", ".join(errors.quoted(name) for name in added)
    detail = (
        "no new finalizers can be added if the object is being deleted, found new finalizers "
        f"[]string{{{names}}}"
    )
    return [errors.field_forbidden("metadata.finalizers", detail)]


def _validate_name(meta: dict[str, Any], rule: str) -> list[Cause]:
    name = meta.get("name", "")
    if not name:
        return [errors.required("metadata.name", "name or generateName is required")]
    if rule == "path":
        is_bad = name in (".", "..") or "/" in name or "%" in name
        detail = "may not contain '/' or '%'"
        return [errors.invalid_value("metadata.name", name, detail)] if is_bad else []
    pattern, message, limit = {
        "label": (_LABEL, LABEL_MESSAGE, 63),
        "service": (_SERVICE, _SERVICE_MESSAGE, 63),
    }.get(rule, (_SUBDOMAIN, _SUBDOMAIN_MESSAGE, 253))
    causes = []
    if len(name) > limit:
        causes.append(
            errors.invalid_value("metadata.name", name, f"must be no more than {limit} bytes")
        )
    if not pattern.match(name):
        causes.append(errors.invalid_value("metadata.name", name, message))
    return causes


def _validate_key(key: str, path: str) -> list[Cause]:
    prefix, slash, name = key.rpartition("/")
    if slash and not _SUBDOMAIN.match(prefix):
        return [errors.invalid_value(path, key, f"prefix part {_SUBDOMAIN_MESSAGE}")]
    if len(name) > 63:
        return [errors.invalid_value(path, key, "name part must be no more than 63 bytes")]
    if not name:
        return [errors.invalid_value(path, key, "name part must be non-empty")]
    return [] if _KEY_NAME.match(name) else [errors.invalid_value(path, key, _KEY_MESSAGE)]

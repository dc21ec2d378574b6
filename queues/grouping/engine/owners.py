"""Walk from a pod up to its top owner, checking uids so that a recreated owner is not taken for the former one.

The walk follows single references, refuses a loop of references, and stops without an error below an owner that may
not be read.
"""

from __future__ import annotations

from typing import Any

from queues.grouping.base import (
    Json,
    Kind,
    Lookups,
    dig,
    dig_list,
    dig_text,
    name_of,
    namespace_of,
    uid_of,
)
from queues.grouping.errors import GroupingError, NotReadableError, ReadError

MAX_OWNERS = 32


def walk_owners(pod: Json, lookups: Lookups) -> tuple[Json, ...]:
    """Return the readable owners, nearest first; empty when the pod is its own top owner.

    Raises
    ------
    GroupingError : an owner is gone, was recreated, has several owners, or the references form a loop
    """
    references = references_of(pod)
    namespace = namespace_of(pod)
    owners: list[Json] = []
    visited_uids = {uid_of(pod)}
    while references:
        reference = references[0]
        if owners and not lookups.may_read(reference_kind(reference)):
            break
        owner = _fetch(reference, namespace, lookups)
        if owner is None:
            break
        uid = uid_of(owner)
        if uid in visited_uids or len(owners) == MAX_OWNERS:
            raise GroupingError(
                f"owner references of pod {namespace}/{name_of(pod)} form a loop at "
                f"{dig_text(owner, 'kind')} {name_of(owner)}"
            )
        visited_uids.add(uid)
        owners.append(owner)
        references = references_of(owner)
        if len(references) > 1:
            listed = ", ".join(f"{r.get('kind')}/{r.get('name')}" for r in references)
            raise GroupingError(
                f"found {dig_text(owner, 'kind')} <{name_of(owner)} in namespace {namespace}> "
                f"with multiple owners: [{listed}]"
            )
    return tuple(owners)


def references_of(obj: Json) -> list[Json]:
    return [r for r in dig_list(obj, "metadata", "ownerReferences") if isinstance(r, dict)]


def _fetch(reference: Json, namespace: str, lookups: Lookups) -> Json | None:
    api_version, kind, name, uid = (
        _text(reference, k) for k in ("apiVersion", "kind", "name", "uid")
    )
    called = f"{kind}: <{namespace}/{name}>, uid: <{uid}>"
    try:
        owner = lookups.get(api_version, kind, namespace, name, uid=uid)
    except NotReadableError:
        return None
    except ReadError as error:
        raise GroupingError(f"failed to find {called}: {error}") from error
    if uid_of(owner) != uid:
        raise GroupingError(f"failed to find {called}: Owner resource with uid {uid} not found")
    if dig(owner, "kind") and dig(owner, "apiVersion"):
        return owner
    # Typed reads leave out the kind, which the reference has.
    return {**owner, "apiVersion": api_version, "kind": kind}


def reference_kind(reference: Json) -> Kind:
    """Return the kind that an owner reference names."""
    group, _, version = _text(reference, "apiVersion").rpartition("/")
    return Kind(group=group, version=version, kind=_text(reference, "kind"))


def _text(reference: Json, key: str) -> str:
    value: Any = reference.get(key)
    return value if isinstance(value, str) else ""

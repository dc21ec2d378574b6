"""Decode the answers of an API server; an object that cannot be read is left out of its list or watch."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from kube.errors import BadValueError, ServerError, UnreadableError, error_of
from kube.gateway import EventType, Listing, WatchEvent
from kube.objects.meta import (
    KubeList,
    ListMeta,
    Named,
    NamedObject,
    RawList,
    Status,
    WatchLine,
    convert,
    decode,
)
from kube.process.set_aside import SetAside

T = TypeVar("T")

#: Looked up, because calling an enumeration takes a microsecond for each event.
_EVENT_TYPES = {member.value: member for member in EventType}
_UNREAD = SetAside("API server's answers")


def decode_object(raw: bytes, as_type: type[T], what: str) -> T:
    """Return the one object of an answer.

    Raises
    ------
    UnreadableError : it does not have the shape of its kind, or is nested too deeply
    """
    try:
        return decode(raw, as_type)
    except BadValueError as error:
        raise UnreadableError(f"{what}: {error}") from error


def decode_list(raw: bytes, as_type: type[T], kind: str) -> Listing[T]:
    """Return the items of a list; where one cannot be read, the others are decoded one by one.

    Raises
    ------
    ServerError : the answer is no list
    """
    try:
        answer: KubeList[T] = decode(raw, KubeList[as_type])  # type: ignore[valid-type]
        return Listing(items=answer.items, resource_version=answer.metadata.resource_version)
    except BadValueError:
        pass
    try:
        rough = decode(raw, RawList)
    except BadValueError as error:
        raise ServerError(f"list of {kind}: {error}") from error
    items = (_readable(item, as_type, kind) for item in rough.items)
    return Listing(
        items=[item for item in items if item is not None],
        resource_version=rough.metadata.resource_version,
    )


def decode_event(line: bytes, as_type: type[T], kind: str) -> WatchEvent[T] | None:
    """Return one event of a watch; None for an object that cannot be read: its last good state stays.

    Raises
    ------
    KubeError : the server ends the watch with an error, or sends no event
    """
    try:
        envelope = decode(line, WatchLine)
        if envelope.type == "ERROR":
            status = decode(envelope.object, Status)
            raise error_of(status.code, status.reason, f"watch: {status.message}")
    except BadValueError as error:
        raise ServerError(f"watch of {kind}: {error}") from error
    value = _readable(envelope.object, as_type, kind)
    if value is None:
        return None
    return WatchEvent(
        type=_EVENT_TYPES[envelope.type], object=value, resource_version=_version_of(value)
    )


def _readable(raw: msgspec.Raw, as_type: type[T], kind: str) -> T | None:
    """Return an object of a list or a watch; None, and a line in the log, if it cannot be read."""
    try:
        return decode(raw, as_type)
    except BadValueError as error:
        try:
            metadata = decode(raw, NamedObject).metadata
        except BadValueError:
            metadata = Named()
        key = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
        _UNREAD.log_once(kind, key, metadata.resource_version, error)
        return None


def _version_of(value: Any) -> str:
    if isinstance(value, dict):
        return convert(value.get("metadata", {}), ListMeta).resource_version
    version: str = value.metadata.resource_version
    return version

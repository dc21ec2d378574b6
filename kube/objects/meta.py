"""The parts that all Kubernetes objects share, and the decoding of bytes into typed structs.

Structs are frozen and not tracked by the cyclic garbage collector (`gc=False`), because for 5,000 pods the
collector costs more time than the parser. Unknown fields are ignored, absent ones take the default.
The API may send `null` where a field is absent; msgspec refuses that for a list or a map, so a refused
document is decoded again without its nulls (rare, and slower).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from typing import Any, Generic, TypeVar, cast

import msgspec

from kube.errors import BadValueError

T = TypeVar("T")


class KubeStruct(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Base of all typed views: frozen, camelCase on the wire."""


class OwnerReference(KubeStruct, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(KubeStruct, frozen=True, kw_only=True):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Return `namespace/name`, or the bare name of a cluster-scoped object."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def created(self) -> float:
        """Return the creation time in Unix seconds; 0 when the object has none yet."""
        return self.creation_timestamp.timestamp() if self.creation_timestamp else 0.0

    @property
    def deleted(self) -> float | None:
        """Return the deletion time in Unix seconds; None if the object is not being deleted."""
        return self.deletion_timestamp.timestamp() if self.deletion_timestamp else None


class KubeObject(KubeStruct, frozen=True, kw_only=True):
    """An object with metadata; used directly for kinds of which only the metadata is read."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()

    @property
    def key(self) -> str:
        return self.metadata.key


class LabelSelectorRequirement(KubeStruct, frozen=True, kw_only=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(KubeStruct, frozen=True, kw_only=True):
    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class Condition(KubeStruct, frozen=True, kw_only=True):
    """A pod, node or custom-resource condition."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: datetime | None = None


class ListMeta(KubeStruct, frozen=True, kw_only=True):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class ApiVersion(KubeStruct, frozen=True, kw_only=True):
    version: str = ""


class ApiGroup(KubeStruct, frozen=True, kw_only=True):
    """The answer of discovery about one group."""

    versions: tuple[ApiVersion, ...] = ()


class KubeList(KubeStruct, Generic[T], frozen=True, kw_only=True):
    """The answer to a list call."""

    metadata: ListMeta = ListMeta()
    items: tuple[T, ...] = ()


class RawList(KubeStruct, frozen=True, kw_only=True):
    """The answer to a list call, its items undecoded, so that one unreadable item does not spoil the list."""

    metadata: ListMeta = ListMeta()
    items: tuple[msgspec.Raw, ...] = ()


class Named(KubeStruct, frozen=True, kw_only=True):
    """The part of the metadata that names an object, to report one that cannot be read whole."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class NamedObject(KubeStruct, frozen=True, kw_only=True):
    """An object of which only the name is read."""

    metadata: Named = Named()


class WatchLine(KubeStruct, frozen=True, kw_only=True):
    """One line of a watch stream; the object stays undecoded until the event type is known."""

    type: str = ""
    object: msgspec.Raw = msgspec.Raw(b"{}")


class StatusCause(KubeStruct, frozen=True, kw_only=True):
    reason: str = ""
    message: str = ""


class StatusDetails(KubeStruct, frozen=True, kw_only=True):
    retry_after_seconds: int = 0
    causes: tuple[StatusCause, ...] = ()


class Status(KubeStruct, frozen=True, kw_only=True):
    """What the API server answers instead of an object: an error, or the outcome of a delete."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails | None = None


def decode(raw: bytes | msgspec.Raw, as_type: type[T]) -> T:
    """Return one JSON document as a typed struct.

    Parameters
    ----------
    raw : a JSON document
    as_type : the type of the result, a struct or `dict`

    Raises
    ------
    BadValueError : the document is not JSON, or does not fit the type even without its nulls
    """
    try:
        return cast("T", _decoder(cast("Any", as_type))(raw))
    except msgspec.ValidationError:
        with _refusing(as_type):
            return msgspec.convert(_without_nulls(msgspec.json.decode(raw)), as_type)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BadValueError(f"expected a JSON {_name(as_type)}: {error}") from error


def convert(body: Any, as_type: type[T]) -> T:
    """Return parsed JSON (an answer to a write, a fixture, an archive) as a typed struct.

    Raises
    ------
    BadValueError : the body does not fit the type even without its nulls
    """
    try:
        return msgspec.convert(body, as_type)
    except msgspec.ValidationError:
        with _refusing(as_type):
            return msgspec.convert(_without_nulls(body), as_type)
    except RecursionError as error:
        raise BadValueError(f"expected a {_name(as_type)}, got one nested too deeply") from error


def as_body(value: Any) -> Any:
    """Return the plain JSON form of a struct, defaults left out."""
    return msgspec.to_builtins(value)


@cache
def _decoder(as_type: Any) -> Callable[[bytes | msgspec.Raw], Any]:
    return msgspec.json.Decoder(as_type).decode


@contextmanager
def _refusing(as_type: Any) -> Iterator[None]:
    """Raise errors of the decoder as BadValueError that names the expected type."""
    try:
        yield
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BadValueError(f"expected a {_name(as_type)}: {error}") from error


def _name(as_type: Any) -> str:
    return str(getattr(as_type, "__name__", as_type))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value if item is not None]
    return value

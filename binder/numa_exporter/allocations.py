"""What the kubelet has given to each pod, and where that can be read.

The kubelet answers over gRPC on a socket of the node (`kubelet.py`). A file with the same content takes its place
in tests and on simulated nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from kube.errors import BadValueError
from kube.values.documents import parse_json


class AllocationError(Exception):
    """The allocations of the pods cannot be read."""


class DeviceGrant(msgspec.Struct, frozen=True, kw_only=True):
    """Devices of one resource that share their zones."""

    resource: str
    ids: tuple[str, ...] = ()
    zones: tuple[int, ...] = ()


class MemoryGrant(msgspec.Struct, frozen=True, kw_only=True):
    """A block of memory or huge pages (`memory`, `hugepages-1Gi`), in bytes."""

    kind: str
    size: int
    zones: tuple[int, ...] = ()


class PodGrant(msgspec.Struct, frozen=True, kw_only=True):
    """What the containers of one pod got.

    Attributes
    ----------
    cpus : ids of the CPUs that this pod has for itself
    """

    namespace: str
    name: str
    devices: tuple[DeviceGrant, ...] = ()
    cpus: tuple[int, ...] = ()
    memory: tuple[MemoryGrant, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class GrantSource(Protocol):
    """Where the grants of a node's pods come from."""

    def grants(self) -> Sequence[PodGrant]:
        """Return what each pod of the node has got.

        Raises
        ------
        AllocationError : they cannot be read
        """
        ...


@dataclass(frozen=True, slots=True)
class ListedGrants:
    """Grants from a JSON file, which is read anew each time."""

    file: Path

    def grants(self) -> Sequence[PodGrant]:
        try:
            grants: list[PodGrant] = parse_json(self.file.read_text(), list[PodGrant])
        except (OSError, UnicodeError, BadValueError) as error:
            raise AllocationError(f"{self.file}: {error}") from error
        return grants

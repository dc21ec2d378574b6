"""Ask the kubelet over gRPC what it has given to each pod (`v1.PodResourcesLister/List`).

The few messages of this call are decoded here, because the classes that protoc would generate need a build step
and the package protobuf in the image. Field numbers are those of k8s.io/kubelet/pkg/apis/podresources/v1.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from binder.numa_exporter.allocations import (
    AllocationError,
    DeviceGrant,
    MemoryGrant,
    PodGrant,
)

METHOD = "/v1.PodResourcesLister/List"
TIMEOUT_S = 10.0
MAX_ANSWER_BYTES = 16 << 20
#: Wire types of protobuf.
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


@dataclass(frozen=True, slots=True)
class KubeletGrants:
    """Grants from the kubelet of this node."""

    socket: Path

    def grants(self) -> Sequence[PodGrant]:
        grpc = _library()
        options = [("grpc.max_receive_message_length", MAX_ANSWER_BYTES)]
        try:
            with grpc.insecure_channel(f"unix:{self.socket}", options=options) as channel:
                call = channel.unary_unary(
                    METHOD, request_serializer=bytes, response_deserializer=bytes
                )
                answer = call(b"", timeout=TIMEOUT_S)
        except grpc.RpcError as error:
            raise AllocationError(f"{self.socket}: {error.details()}") from error
        return pod_grants(answer)


def pod_grants(answer: bytes) -> list[PodGrant]:
    """Return the pods of a ListPodResourcesResponse.

    Raises
    ------
    AllocationError : the bytes are no such message
    """
    try:
        return [_pod(value) for number, value in _fields(answer) if number == 1]
    except (ValueError, IndexError, TypeError, AttributeError) as error:
        raise AllocationError(f"the kubelet's answer cannot be read: {error}") from error


def _pod(message: bytes) -> PodGrant:
    texts = {1: "", 2: ""}
    devices: list[DeviceGrant] = []
    cpus: list[int] = []
    memory: list[MemoryGrant] = []
    for number, value in _fields(message):
        if number in texts:
            texts[number] = value.decode()
        elif number == 3:
            for inner, part in _fields(value):
                if inner == 2:
                    devices.append(_device(part))
                elif inner == 3:
                    cpus.extend(_integers(part))
                elif inner == 4:
                    memory.append(_memory(part))
    return PodGrant(
        name=texts[1],
        namespace=texts[2],
        devices=tuple(devices),
        cpus=tuple(cpus),
        memory=tuple(memory),
    )


def _device(message: bytes) -> DeviceGrant:
    resource = ""
    ids: list[str] = []
    zones: list[int] = []
    for number, value in _fields(message):
        if number == 1:
            resource = value.decode()
        elif number == 2:
            ids.append(value.decode())
        elif number == 3:
            zones.extend(_zones(value))
    return DeviceGrant(resource=resource, ids=tuple(ids), zones=tuple(zones))


def _memory(message: bytes) -> MemoryGrant:
    kind, size = "", 0
    zones: list[int] = []
    for number, value in _fields(message):
        if number == 1:
            kind = value.decode()
        elif number == 2:
            size = value
        elif number == 3:
            zones.extend(_zones(value))
    return MemoryGrant(kind=kind, size=size, zones=tuple(zones))


def _zones(message: bytes) -> Iterator[int]:
    """Yield the ids of the nodes of a TopologyInfo; proto3 leaves out the id 0."""
    for number, node in _fields(message):
        if number == 1:
            yield next((value for inner, value in _fields(node) if inner == 1), 0)


def _integers(value: Any) -> Iterator[int]:
    """Yield the numbers of a repeated field, packed or not."""
    if isinstance(value, int):
        yield value
        return
    position = 0
    while position < len(value):
        number, position = _varint(value, position)
        yield number


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yield (field number, value) of a message: an int, or the bytes of a text or message."""
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        wire_type = key & 7
        if wire_type == VARINT:
            value, position = _varint(message, position)
            yield key >> 3, value
            continue
        if wire_type == BYTES:
            length, position = _varint(message, position)
        elif wire_type in (FIXED32, FIXED64):
            length = 8 if wire_type == FIXED64 else 4
        else:
            raise ValueError(f"expected a wire type of protobuf 3, got {wire_type}")
        if position + length > len(message):
            raise ValueError("it ends in the middle of a field")
        yield key >> 3, message[position : position + length]
        position += length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Return the number at a position, and the position after it."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, position


def _library() -> Any:
    try:
        return importlib.import_module("grpc")
    except ImportError as error:
        raise AllocationError(
            "the package grpcio is not installed; install kaiweb with the extra `gpu`"
        ) from error

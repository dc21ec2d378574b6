"""The kubelet's answer is read as protobuf has it, over gRPC where the package for that is installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from binder.numa_exporter.allocations import AllocationError, DeviceGrant, MemoryGrant, PodGrant
from binder.numa_exporter.kubelet import METHOD, KubeletGrants, pod_grants


def varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def part(number: int, value: bytes | str | int) -> bytes:
    """Return one field of a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def topology(*zones: int) -> bytes:
    return b"".join(part(1, part(1, zone) if zone else b"") for zone in zones)


GPUS = part(1, "nvidia.com/gpu") + part(2, "GPU-1") + part(2, "GPU-2") + part(3, topology(0))
MEMORY = part(1, "memory") + part(2, 300 << 30) + part(3, topology(0, 1))
FIRST = part(1, "main") + part(2, GPUS) + part(3, varint(2) + varint(300)) + part(4, MEMORY)
# Another container, with CPUs that are not packed and a field of a later version.
SECOND = part(1, "side") + part(3, 7) + part(9, b"later")
POD = part(1, "p") + part(2, "ns") + part(3, FIRST) + part(3, SECOND)
ANSWER = part(1, POD) + part(1, part(1, "idle") + part(2, "ns"))
GRANTS = [
    PodGrant(
        namespace="ns",
        name="p",
        devices=(DeviceGrant(resource="nvidia.com/gpu", ids=("GPU-1", "GPU-2"), zones=(0,)),),
        cpus=(2, 300, 7),
        memory=(MemoryGrant(kind="memory", size=300 << 30, zones=(0, 1)),),
    ),
    PodGrant(namespace="ns", name="idle"),
]


def test_pods_with_their_devices_cpus_and_memory_are_read() -> None:
    assert pod_grants(ANSWER) == GRANTS
    assert pod_grants(b"") == []


@pytest.mark.parametrize(
    "answer", [ANSWER[:-3], b"\x0b", b"\x08\x01", part(1, part(1, 5)), b"\x0a"]
)
def test_bytes_that_are_no_such_message_are_refused(answer: bytes) -> None:
    with pytest.raises(AllocationError, match="the kubelet's answer cannot be read"):
        pod_grants(answer)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(AllocationError, match="grpcio is not installed"):
        KubeletGrants(Path("kubelet.sock")).grants()


@pytest.fixture
def kubelet(tmp_path: Path) -> Iterator[Path]:
    """The socket of a server that answers as the kubelet does."""
    grpc = pytest.importorskip("grpc", reason="grpcio of the extra gpu is not installed")
    handler = grpc.unary_unary_rpc_method_handler(
        lambda request, _context: ANSWER if request == b"" else b"",
        request_deserializer=bytes,
        response_serializer=bytes,
    )
    service, _, method = METHOD.strip("/").partition("/")
    server = grpc.server(ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler(service, {method: handler})]
    )
    socket = tmp_path / "kubelet.sock"
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    yield socket
    server.stop(None).wait()


def test_the_kubelet_is_asked_over_its_socket(kubelet: Path) -> None:
    assert KubeletGrants(kubelet).grants() == GRANTS


def test_a_kubelet_that_does_not_answer_is_an_error(kubelet: Path) -> None:
    with pytest.raises(AllocationError, match=r"absent\.sock"):
        KubeletGrants(kubelet.with_name("absent.sock")).grants()

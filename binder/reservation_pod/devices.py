"""Where the ids of a pod's GPUs come from: NVML in a container, or a list for simulated nodes and tests."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class DeviceError(Exception):
    """The devices cannot be read, or are not what a reservation pod should have."""


class DeviceSource(Protocol):
    """The devices that this process can see."""

    def ids(self) -> Sequence[str]:
        """Return the UUIDs of the visible devices.

        Raises
        ------
        DeviceError : they cannot be read
        """
        ...


@dataclass(frozen=True, slots=True)
class ListedDevices:
    """Devices whose ids were given, so that nothing is asked."""

    device_ids: Sequence[str]

    def ids(self) -> Sequence[str]:
        return self.device_ids


class NvmlDevices:
    """The devices that the NVIDIA driver shows to this container."""

    def ids(self) -> Sequence[str]:
        nvml = _library()
        try:
            nvml.nvmlInit()
            try:
                handles = [
                    nvml.nvmlDeviceGetHandleByIndex(index)
                    for index in range(nvml.nvmlDeviceGetCount())
                ]
                return [_text(nvml.nvmlDeviceGetUUID(handle)) for handle in handles]
            finally:
                nvml.nvmlShutdown()
        except nvml.NVMLError as error:
            raise DeviceError(f"NVML: {error}") from error


def only_device(source: DeviceSource) -> str:
    """Return the id of the one device that a reservation pod holds.

    Raises
    ------
    DeviceError : there is none, or more than one
    """
    ids = source.ids()
    if len(ids) != 1:
        raise DeviceError(f"found {len(ids)} devices, 1 was expected")
    return ids[0]


def _library() -> Any:
    try:
        return importlib.import_module("pynvml")
    except ImportError as error:
        raise DeviceError(
            "the package nvidia-ml-py is not installed; install kaiweb with the extra `gpu`"
        ) from error


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name

"""How well a trace was packed: the share of GPUs allocated, and how much of the idle GPUs is of no use.

Fragmentation is that of Fragmentation Gradient Descent (FGD, USENIX ATC 2023): the idle share of devices
that a pod of the typical mix cannot use. All idle devices of a node are of no use to a pod that
does not fit there or wants no GPU; else only the devices with less left than it wants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scheduler.core.arrays import Bools, Floats
from scheduler.core.decisions import Bind
from scheduler.tools.traces.trace import WHOLE_DEVICE, PodShape, Trace

#: The typical mix consists of the commonest shapes that together are this part of all pods.
TYPICAL_PART = 0.95


@dataclass(frozen=True, slots=True)
class Mark:
    """The state of the cluster at one moment of a trace.

    Attributes
    ----------
    arrived : GPUs that the pods so far ask for, in percent of the cluster's
    allocated : GPUs that were allocated, in percent of the cluster's
    fragmented : idle GPUs that are of no use to the typical mix, in percent of the idle ones
    """

    arrived: float
    allocated: float
    fragmented: float


def packing_curve(
    trace: Trace, binds: Sequence[Sequence[Bind]], marks: Sequence[float]
) -> list[Mark]:
    """Follow the pods in the order of their arrival; return the state at each mark.

    Parameters
    ----------
    binds : per shape of the trace, where its pods were placed
    marks : percent of the cluster's GPUs asked for, rising; the last state stands for marks never reached
    """
    devices = _Devices(trace)
    total = trace.gpu_milli
    arrived = 0
    curve: list[Mark] = []
    marks_ahead = list(marks)
    for shape, placed in zip(trace.pods, binds, strict=True):
        while marks_ahead and 100 * (arrived + shape.gpu_milli) > marks_ahead[0] * total:
            curve.append(devices.mark(marks_ahead.pop(0)))
        arrived += shape.gpu_milli
        for bind in placed:
            devices.take(shape, bind)
    curve += [devices.mark(mark) for mark in marks_ahead]
    return curve


class _Devices:
    """What is left of each device and node after the placements so far."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._row_of = {node.name: row for row, node in enumerate(trace.nodes)}
        widest = max(node.devices for node in trace.nodes)
        self._left: Floats = np.zeros((len(trace.nodes), widest))
        for row, node in enumerate(trace.nodes):
            self._left[row, : node.devices] = WHOLE_DEVICE
        self._cpu: Floats = np.array([float(node.cpu_milli) for node in trace.nodes])
        self._memory: Floats = np.array([float(node.memory_mib) for node in trace.nodes])
        self._models = np.array([node.model for node in trace.nodes])
        #: (Node row, GPU group) -> device.
        self._device_of: dict[tuple[int, str], int] = {}
        self._mix = _typical(trace.pods)

    def take(self, shape: PodShape, bind: Bind) -> None:
        """Subtract what a pod takes from the node it was bound to."""
        row = self._row_of[bind.node]
        self._cpu[row] -= shape.cpu_milli
        self._memory[row] -= shape.memory_mib
        if not bind.gpu_groups:
            for _ in range(shape.devices):
                self._left[row, self._whole_device(row)] = 0
        for group in bind.gpu_groups:
            if (row, group) not in self._device_of:
                self._device_of[row, group] = self._whole_device(row)
            self._left[row, self._device_of[row, group]] -= shape.device_milli

    def _whole_device(self, row: int) -> int:
        (whole,) = np.nonzero(self._left[row] == WHOLE_DEVICE)
        return int(whole[0])

    def mark(self, arrived: float) -> Mark:
        """Return the state now."""
        idle = float(self._left.sum())
        allocated = 100 * (1 - idle / self._trace.gpu_milli)
        useless = sum(part * self._useless(shape) for shape, part in self._mix.items())
        return Mark(arrived, allocated, 100 * useless / idle if idle else 0.0)

    def _useless(self, shape: PodShape) -> float:
        """Return the idle thousandths of devices that a pod of a shape cannot use."""
        left = self._left
        large: Bools = (left >= shape.device_milli) & (left > 0)
        fits = (self._cpu >= shape.cpu_milli) & (self._memory >= shape.memory_mib)
        fits &= (shape.devices > 0) & (large.sum(axis=1) >= shape.devices)
        if shape.models:
            fits &= np.isin(self._models, shape.models)
        useful = np.where(large & fits[:, np.newaxis], left, 0.0)
        return float(left.sum() - useful.sum())


def _typical(pods: Sequence[PodShape]) -> dict[PodShape, float]:
    """Return the commonest shapes and their parts, which add up to 1."""
    counts = Counter(pods)
    mix: dict[PodShape, int] = {}
    for shape, count in counts.most_common():
        mix[shape] = count
        if sum(mix.values()) >= TYPICAL_PART * len(pods):
            break
    total = sum(mix.values())
    return {shape: count / total for shape, count in mix.items()}

"""A workload like openb's that needs no file: its common shapes of nodes and pods, in its proportions.

Two in five GPU pods ask for part of a device. CPU and memory of pods vary, so that there are many sizes.
"""

from __future__ import annotations

import random

from scheduler.tools.traces.openb import arrivals
from scheduler.tools.traces.trace import WHOLE_DEVICE, PodShape, Trace, TraceNode

#: (CPU in thousandths, memory in MiB, devices, model), and how many of openb's 1,213 nodes have this shape.
_NODES = (
    ((96_000, 393_216, 8, "G2"), 549),
    ((104_000, 524_288, 2, "T4"), 404),
    ((16_000, 122_880, 2, "P100"), 134),
    ((128_000, 786_432, 8, "G3"), 39),
    ((32_000, 131_072, 4, "V100M16"), 55),
    ((96_000, 786_432, 8, "V100M32"), 32),
)
#: (CPU in thousandths, memory in MiB, devices, share of each in thousandths), and how many of
#: openb's 8,152 pods are about like that.
_PODS = (
    ((3_152, 5_600, 1, 810), 1_078),
    ((11_300, 49_152, 1, 1000), 1_391),
    ((3_152, 5_600, 1, 1000), 590),
    ((10_000, 38_000, 1, 470), 750),
    ((12_500, 57_344, 0, 0), 364),
    ((32_000, 49_152, 0, 0), 284),
    ((18_708, 64_512, 1, 1000), 380),
    ((11_908, 47_104, 1, 650), 253),
    ((9_810, 41_560, 1, 1000), 750),
    ((8_000, 30_517, 0, 0), 440),
    ((4_000, 22_888, 1, 320), 328),
    ((16_000, 32_768, 1, 1000), 600),
    ((4_000, 30_517, 1, 230), 140),
    ((4_000, 15_258, 1, 160), 240),
    ((4_152, 10_600, 1, 550), 290),
    ((24_000, 98_304, 2, 1000), 16),
    ((48_000, 196_608, 4, 1000), 15),
    ((88_000, 327_680, 8, 1000), 44),
)
#: CPU and memory of a pod differ from its shape by up to this many percent.
_MAX_VARIATION_PERCENT = 5


def generate(nodes: int, *, seed: int = 0, demand: float = 1.3) -> Trace:
    """Return a trace with that many nodes, and pods that ask for `demand` times their GPUs; one trace per seed."""
    draw = random.Random(seed)
    kinds, weights = zip(*_NODES, strict=True)
    node_shapes = draw.choices(kinds, weights, k=nodes)
    cluster = tuple(
        TraceNode(
            name=f"node-{number:05}", cpu_milli=cpu, memory_mib=memory, devices=devices, model=model
        )
        for number, (cpu, memory, devices, model) in enumerate(node_shapes)
    )
    demand_milli = demand * WHOLE_DEVICE * sum(node.devices for node in cluster)
    pods = generated_pods(demand_milli, draw, seed)
    return Trace(name="generated", nodes=cluster, pods=tuple(pods))


def generated_pods(demand_milli: float, draw: random.Random, seed: int) -> list[PodShape]:
    """Return pods that together ask for `demand_milli` thousandths of GPUs, in the order of their arrival."""
    shapes = [_vary(shape, draw) for shape, count in _PODS for _ in range(count)]
    if sum(shape.gpu_milli for shape in shapes) > demand_milli:
        draw.shuffle(shapes)
        shapes = _prefix(shapes, demand_milli)
    return arrivals(shapes, demand_milli, seed)


def _vary(shape: tuple[int, int, int, int], draw: random.Random) -> PodShape:
    cpu, memory, devices, device_milli = shape
    percent = 100 + draw.randint(-_MAX_VARIATION_PERCENT, _MAX_VARIATION_PERCENT)
    return PodShape(
        cpu_milli=cpu * percent // 100,
        memory_mib=memory * percent // 100,
        devices=devices,
        device_milli=device_milli,
    )


def _prefix(shapes: list[PodShape], demand_milli: float) -> list[PodShape]:
    """Return the first shapes that together ask for no more than the demand."""
    requested_milli = 0
    for number, shape in enumerate(shapes):
        requested_milli += shape.gpu_milli
        if requested_milli > demand_milli:
            return shapes[:number]
    return shapes

"""The zones of a pod's resources: what belongs to exactly one zone is counted there, the rest is left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from binder.numa_exporter.allocations import AllocationError, DeviceGrant, MemoryGrant, PodGrant
from binder.numa_exporter.zones import cpu_zones, observed_placement

ZONE_OF_CPU = {cpu: cpu // 4 for cpu in range(8)}
GPU = "nvidia.com/gpu"


def placement(**grant: Any) -> str:
    return observed_placement(PodGrant(namespace="ns", name="p", **grant), ZONE_OF_CPU)


def test_devices_cpus_and_memory_are_summed_by_zone_in_order() -> None:
    text = placement(
        devices=(
            DeviceGrant(resource=GPU, ids=("a", "b"), zones=(1,)),
            DeviceGrant(resource=GPU, ids=("c",), zones=(0,)),
            DeviceGrant(resource=GPU, ids=("d",), zones=(0,)),
        ),
        cpus=(0, 1, 4),
        memory=(
            MemoryGrant(kind="memory", size=1 << 30, zones=(1,)),
            MemoryGrant(kind="hugepages-2Mi", size=1 << 21, zones=(0,)),
        ),
    )
    assert text == (
        '[{"zone":"node-0","amount":{"cpu":"2","hugepages-2Mi":"2097152","nvidia.com/gpu":"2"}},'
        '{"zone":"node-1","amount":{"cpu":"1","memory":"1073741824","nvidia.com/gpu":"2"}}]'
    )


def test_what_spans_zones_or_has_none_is_left_out() -> None:
    assert not placement(
        devices=(
            DeviceGrant(resource=GPU, ids=("a",), zones=(0, 1)),
            DeviceGrant(resource=GPU, ids=("b",)),
        ),
        cpus=(64,),
        memory=(MemoryGrant(kind="memory", size=1, zones=(0, 1)),),
    )
    assert not placement()


def test_the_cpus_of_each_zone_are_read_from_the_kernel(tmp_path: Path) -> None:
    for zone, cpus in ((0, "0-3,8\n"), (1, "4-7,9\n"), (2, "\n")):
        folder = tmp_path / "devices" / "system" / "node" / f"node{zone}"
        folder.mkdir(parents=True)
        (folder / "cpulist").write_text(cpus)
    (tmp_path / "devices" / "system" / "node" / "online").write_text("0-2")
    zones = cpu_zones(tmp_path)
    assert [zones[cpu] for cpu in range(10)] == [0, 0, 0, 0, 1, 1, 1, 1, 0, 1]


def test_a_list_of_cpus_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "devices" / "system" / "node" / "node0"
    folder.mkdir(parents=True)
    (folder / "cpulist").write_text("all")
    with pytest.raises(AllocationError, match="node0/cpulist: invalid literal"):
        cpu_zones(tmp_path)

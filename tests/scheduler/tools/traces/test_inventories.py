"""Traces that list a cluster without its work, or work without a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.tools.traces.inventories import PSW, RACK, inventories_in, read_inventory
from scheduler.tools.traces.one_session import place_trace
from scheduler.tools.traces.trace import PodShape, Trace, TraceError, TraceNode, snapshot_of

FILES = {
    "nodes": "gpu_model,gpu_capacity_num,cpu_num,node_name\nA10,1,32,7\nH800,8,192,12\n",
    "machine_shapes": "gpu_type,cpu_cores,memory_gib,gpus,machines\nCPU,96,512,0,2\nT4,96,512,2,3\n",
    "hosts": "host,DSW,PSW,ASW\nh0,G,P1,S1\nh1,G,P1,S1\nh2,G,P2,S1\n",
    "instances": "role,cpu_request,gpu_request,memory_request\nHN,8,1,40.0\nCN,64,0,320.0\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / f"{name}.csv").write_text(text)
    return tmp_path


def read(folder: Path, name: str, demand: float = 1.0) -> Trace:
    return read_inventory(folder, name, seed=0, demand=demand)


def test_every_format_is_known_by_its_file(folder: Path) -> None:
    assert inventories_in(folder) == ["nodes", "machine_shapes", "hosts", "instances"]
    (folder / "hosts.csv").unlink()
    assert inventories_in(folder) == ["nodes", "machine_shapes", "instances"]


def test_spot_nodes_have_memory_by_their_cores(folder: Path) -> None:
    small, large = read(folder, "nodes").nodes
    assert small == TraceNode(
        name="node-00007", cpu_milli=32_000, memory_mib=131_072, devices=1, model="A10"
    )
    assert (large.name, large.devices, large.model) == ("node-00012", 8, "H800")


def test_each_machine_of_a_shape_is_a_node(folder: Path) -> None:
    trace = read(folder, "machine_shapes")
    assert [(node.model, node.devices) for node in trace.nodes] == [("CPU", 0)] * 2 + [
        ("T4", 2)
    ] * 3
    assert len({node.name for node in trace.nodes}) == 5
    assert 0 < sum(shape.gpu_milli for shape in trace.pods) <= trace.gpu_milli == 6_000


def test_racks_of_different_parents_are_different_domains(folder: Path) -> None:
    trace = read(folder, "hosts")
    assert [node.domains for node in trace.nodes] == [("P1", "P1-S1")] * 2 + [("P2", "P2-S1")]
    snapshot = snapshot_of(trace)
    assert snapshot.topologies[0].levels == (PSW, RACK)
    assert snapshot.nodes[2].labels == {PSW: "P2", RACK: "P2-S1"}


def test_a_gang_of_hosts_stays_in_its_rack_or_waits(folder: Path) -> None:
    """The third host would do, but it is in another rack."""
    nodes = read(folder, "hosts").nodes
    gang = PodShape(
        cpu_milli=1000, memory_mib=1024, devices=8, device_milli=1000, pods=2, level=RACK
    )
    single = PodShape(cpu_milli=1000, memory_mib=1024, devices=8, device_milli=1000)
    levels = (PSW, RACK)
    fits = place_trace(Trace(name="t", nodes=nodes, pods=(gang, single), levels=levels), "binpack")
    assert (fits.pods, fits.placed, fits.at(100.0).allocated) == (3, 3, 100.0)
    apart = place_trace(Trace(name="t", nodes=nodes[1:], pods=(gang,), levels=levels), "binpack")
    assert (apart.pods, apart.placed, apart.at(100.0).allocated) == (2, 0, 0.0)


def test_nodes_are_made_up_for_all_instances(folder: Path) -> None:
    trace = read(folder, "instances", demand=0.1)
    assert sorted((node.name, node.devices) for node in trace.nodes) == [
        ("cpu-00000", 0),
        ("gpu-00000", 8),
    ]
    assert {(shape.cpu_milli, shape.memory_mib, shape.gpu_milli) for shape in trace.pods} == {
        (8_000, 40_960, 1000),
        (64_000, 327_680, 0),
    }
    assert place_trace(trace, "binpack").placed == 2


def test_a_bad_number_is_refused_with_its_line(folder: Path) -> None:
    (folder / "nodes.csv").write_text(FILES["nodes"].replace("192", "many"))
    with pytest.raises(TraceError, match="nodes, line 3"):
        read(folder, "nodes")

"""Reading the openb trace: files, demand and order of arrival."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest

from scheduler.tools.traces.openb import lists_in, read_openb
from scheduler.tools.traces.trace import PodShape, TraceError, snapshot_of

NODES = "sn,cpu_milli,memory_mib,gpu,model\na,8000,16384,2,T4\nb,16000,32768,8,G2\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
    "p0,1000,2048,1,500,\np1,2000,1024,2,1000,G2|T4\np2,3000,1024,0,0,\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "nodes_gpu.csv").write_text(NODES)
    (tmp_path / "pods_default.csv.gz").write_bytes(gzip.compress(PODS.encode()))
    return tmp_path


def test_a_list_that_asks_for_enough_is_only_shuffled(folder: Path) -> None:
    trace = read_openb(folder, "default", seed=0, demand=0.1)
    assert Counter(trace.pods) == Counter(
        [
            PodShape(cpu_milli=1000, memory_mib=2048, devices=1, device_milli=500),
            PodShape(
                cpu_milli=2000, memory_mib=1024, devices=2, device_milli=1000, models=("G2", "T4")
            ),
            PodShape(cpu_milli=3000, memory_mib=1024),
        ]
    )
    assert trace.gpu_milli == 10_000


def test_a_list_is_topped_up_by_draws_to_the_demand_and_no_further(folder: Path) -> None:
    trace = read_openb(folder, "default", seed=0, demand=1.3)
    gpu_milli = sum(shape.gpu_milli for shape in trace.pods)
    assert 13_000 - 2_000 < gpu_milli <= 13_000
    assert set(trace.pods) == set(read_openb(folder, "default", seed=1, demand=0.1).pods)


def test_the_same_seed_gives_the_same_arrivals(folder: Path) -> None:
    first, again = (read_openb(folder, "default", seed=3, demand=1.3) for _ in range(2))
    assert first == again
    assert first != read_openb(folder, "default", seed=4, demand=1.3)


def test_pods_become_pod_groups_of_rising_age_with_their_share_and_models(folder: Path) -> None:
    trace = read_openb(folder, "default", seed=0, demand=0.1)
    groups = snapshot_of(trace).pod_groups
    assert [group.created for group in groups] == [-3.0, -2.0, -1.0]
    tasks = dict(zip(trace.pods, (group.tasks[0] for group in groups), strict=True))
    share, whole, none = (tasks[shape] for shape in sorted(trace.pods, key=lambda s: s.cpu_milli))
    assert (share.request.gpu_fraction, share.request.gpus) == (0.5, 0.0)
    assert (whole.request.gpu_fraction, whole.request.gpus) == (0.0, 2.0)
    assert (none.request.gpu_fraction, none.request.gpus) == (0.0, 0.0)
    assert whole.constraints.node_affinity[0].labels[0].values == ("G2", "T4")
    assert share.constraints.node_affinity is None


def test_a_missing_list_names_the_lists_there_are(folder: Path) -> None:
    assert lists_in(folder) == ["default"]
    with pytest.raises(
        TraceError, match=r"expected pods_cpu\.csv.*there: nodes_gpu\.csv, pods_default"
    ):
        read_openb(folder, "cpu", seed=0, demand=1.3)


def test_a_bad_number_is_refused_with_its_line(folder: Path) -> None:
    (folder / "pods_bad.csv").write_text(PODS.replace("2000", "two"))
    with pytest.raises(TraceError, match="pods_bad, line 3"):
        read_openb(folder, "bad", seed=0, demand=1.3)

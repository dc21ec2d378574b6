"""Placing traces: what is measured, the reports, and the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from scheduler.tools.traces.generated import generate
from scheduler.tools.traces.one_session import place_trace
from scheduler.tools.traces.packing import Mark
from scheduler.tools.traces.report import page_of, plot_of
from scheduler.tools.traces.trace import PodShape, Trace, TraceNode

HALF = PodShape(cpu_milli=1000, memory_mib=1024, devices=1, device_milli=500)
MOST = PodShape(cpu_milli=1000, memory_mib=1024, devices=1, device_milli=800)
PAIR = PodShape(cpu_milli=1000, memory_mib=1024, devices=2, device_milli=1000)
PLAIN = PodShape(cpu_milli=1000, memory_mib=1024)


def trace_of(*pods: PodShape, devices: int = 2, cpu_milli: int = 64_000) -> Trace:
    node = TraceNode(name="n", cpu_milli=cpu_milli, memory_mib=65_536, devices=devices, model="T4")
    return Trace(name="small", nodes=(node,), pods=pods)


def test_what_is_given_away_is_measured_by_what_had_arrived() -> None:
    result = place_trace(trace_of(HALF, HALF, PAIR), "binpack", marks=(25, 50, 150))
    assert result.placed == 2
    assert [mark.allocated for mark in result.curve] == [25, 50, 50]


def test_idle_devices_are_fragmented_by_the_part_of_the_mix_that_cannot_use_them() -> None:
    # 0.2 + 1 are left; the pair fits nowhere, 0.8 fits the whole device, half of one too.
    result = place_trace(trace_of(MOST, PAIR, HALF), "binpack", marks=(40,))
    assert result.curve[0].allocated == pytest.approx(40)
    expected = (0.2 + 1.2 + 0.2) / 3 / 1.2
    assert result.curve[0].fragmented == pytest.approx(100 * expected)


def test_idle_devices_beside_no_free_cpu_are_of_no_use_to_anyone() -> None:
    result = place_trace(trace_of(HALF, HALF, devices=4, cpu_milli=1000), "binpack", marks=(100,))
    assert (result.placed, result.curve[0]) == (1, Mark(100, 12.5, 100))


def test_pods_without_gpu_can_use_no_idle_device() -> None:
    result = place_trace(trace_of(HALF, PLAIN, PLAIN, PLAIN), "binpack", marks=(100,))
    assert result.curve[0].fragmented == pytest.approx(75)


def test_a_generated_workload_is_the_same_every_time_and_of_many_sizes() -> None:
    trace = generate(60, seed=2)
    assert trace == generate(60, seed=2)
    assert 1.2 < sum(pod.gpu_milli for pod in trace.pods) / trace.gpu_milli <= 1.3
    assert len(set(trace.pods)) > 100
    parts = sum(0 < pod.device_milli < 1000 for pod in trace.pods)
    assert 0.3 < parts / sum(pod.devices > 0 for pod in trace.pods) < 0.5


def test_the_command_compares_strategies_in_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("replay", "generated", "--nodes", "6", "--strategy", "binpack,spread")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines[1:]] == [
        ["generated", "binpack", "1"],
        ["generated", "spread", "1"],
    ]


def test_the_command_prints_json_and_writes_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    call_command("replay", "generated", "--nodes=4", "--seeds=2", "--json", f"--html={page}")
    results = json.loads(capsys.readouterr().out)
    assert [result["seed"] for result in results] == [0, 1]
    assert [mark["arrived"] for mark in results[0]["curve"]][-1] == 130
    assert page.read_text().count("<svg") == 2


def test_a_plot_has_a_line_for_each_strategy() -> None:
    results = [
        place_trace(trace_of(HALF, PAIR), strategy, marks=(80, 100, 130))
        for strategy in ("binpack", "spread")
    ]
    assert plot_of(results, "given <away>", lambda mark: mark.allocated).count("<polyline") == 2
    assert "given &lt;away&gt;" in plot_of(results, "given <away>", lambda mark: mark.allocated)
    assert "<td>spread</td>" in page_of(results)


def test_a_folder_without_a_trace_and_an_unknown_strategy_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="expected nodes_gpu"):
        call_command("replay", "trace", str(tmp_path))
    with pytest.raises(CommandError, match="binpack, spread, fragmentation, got 'best'"):
        call_command("replay", "generated", "--nodes=2", "--strategy=best")

"""Jobs in virtual time: how files become jobs, what is measured, and the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from scheduler.tools.traces.timed.jobs import TimedJob, TimedTrace, read_jobs, timed_lists_in
from scheduler.tools.traces.timed.play import play
from scheduler.tools.traces.timed.report import duration, timed_page
from scheduler.tools.traces.timed.result import percentile
from scheduler.tools.traces.trace import PodShape, TraceError, TraceNode

VC_JOBS = """vc,job,submit_s,gpus,sim_duration_s
a,a-1,100,1,600
b,b-1,130,16,1200
a,a-2,100,12,60
"""
DURATIONS = """set,vc,job,submit_s,gpus,duration_s
s1,a,s1-0,0,2,30
s2,,s2-0,7,1,40
"""
NODES = "sn,cpu_milli,memory_mib,gpu,model\nn1,8000,65536,2,T4\n"
PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,creation_time,deletion_time
p1,1000,1024,1,500,,LS,10,70
p2,1000,1024,1,1000,T4,BE,20,
p3,1000,1024,1,1000,T4,BE,30,40
"""


def job(name: str, queue: str, submit_s: float, duration_s: float, gpus: int = 1) -> TimedJob:
    shape = PodShape(cpu_milli=100, memory_mib=10, devices=gpus, device_milli=1000)
    return TimedJob(name=name, queue=queue, submit_s=submit_s, duration_s=duration_s, shape=shape)


def trace_of(*jobs: TimedJob, devices: int = 2) -> TimedTrace:
    node = TraceNode(name="n", cpu_milli=64_000, memory_mib=65_536, devices=devices)
    return TimedTrace(name="small", nodes=(node,), jobs=jobs)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "vc_jobs.csv").write_text(VC_JOBS)
    (tmp_path / "job_durations.csv").write_text(DURATIONS)
    (tmp_path / "nodes_gpu.csv").write_text(NODES)
    (tmp_path / "pods_small.csv").write_text(PODS)
    return tmp_path


def test_large_jobs_become_gangs_of_whole_nodes_and_time_starts_with_the_first(
    folder: Path,
) -> None:
    trace = read_jobs(folder, "vc_jobs", nodes=3, max_jobs=10)
    assert [(job.name, job.submit_s, job.pods, job.shape.devices) for job in trace.jobs] == [
        ("a-1", 0, 1, 1),
        ("a-2", 0, 3, 4),
        ("b-1", 30, 2, 8),
    ]
    assert trace.gpus == 24


def test_every_list_of_a_folder_can_be_named(folder: Path) -> None:
    assert timed_lists_in(folder) == ["vc_jobs", "s1", "s2", "small"]
    assert [job.queue for job in read_jobs(folder, "s2", nodes=1, max_jobs=1).jobs] == ["other"]
    with pytest.raises(TraceError, match="got 's3'; lists there: vc_jobs, s1, s2, small"):
        read_jobs(folder, "s3", nodes=1, max_jobs=1)


def test_pods_of_openb_without_an_end_are_left_out_and_serving_ones_are_not_preemptible(
    folder: Path,
) -> None:
    jobs = read_jobs(folder, "small", nodes=1, max_jobs=10).jobs
    assert [(job.queue, job.duration_s, job.preemptible) for job in jobs] == [
        ("inference", 60, False),
        ("train", 10, True),
    ]


def test_a_queue_has_quota_by_what_its_jobs_use_in_all() -> None:
    trace = trace_of(job("x", "a", 0, 300), job("y", "b", 0, 50, gpus=2), devices=8)
    assert trace.quotas() == {"a": 6, "b": 2}


def test_a_job_waits_until_another_ends_and_time_jumps_from_event_to_event() -> None:
    trace = trace_of(job("x", "a", 0, 600, gpus=2), job("y", "a", 60, 120, gpus=2))
    result = play(trace, "binpack")
    (queue,) = result.queues
    assert (queue.jobs, queue.mean_wait_s, queue.p95_wait_s) == (2, 270, 540)
    assert (result.unfinished, result.evictions, result.span_s) == (0, {}, 720)
    assert result.allocated == 100
    assert result.cycles < 8


def test_an_evicted_job_begins_anew_and_its_work_is_lost() -> None:
    # Both queues have a quota of one GPU: b gets its own back from a, whose newer job waits for the other.
    trace = trace_of(
        job("x", "a", 0, 600), job("y", "a", 60, 600), job("z", "b", 120, 1200), devices=2
    )
    result = play(trace, "binpack")
    assert result.evictions == {"reclaim": 1}
    assert result.lost_gpu_hours == pytest.approx(60 / 3600)
    by_name = {queue.name: queue for queue in result.queues}
    assert (by_name["a"].evictions, by_name["b"].evictions) == (1, 0)
    # z waits for one step, until the evicted pod has left; y from 120 until x ends at 600.
    assert by_name["b"].mean_wait_s == 60
    assert by_name["a"].mean_wait_s == (600 - 120) / 2
    assert 0 < result.unfair < 5


def test_a_job_that_can_never_run_is_reported_as_unfinished() -> None:
    result = play(trace_of(job("x", "a", 0, 60, gpus=4), job("y", "a", 0, 60)), "binpack")
    assert (result.jobs, result.unfinished) == (2, 1)


def test_times_are_written_in_their_largest_unit() -> None:
    assert [duration(s) for s in (59, 60, 5400, 129_600)] == ["59 s", "1.0 min", "1.5 h", "1.5 d"]


def test_a_percentile_is_one_of_the_values() -> None:
    assert [percentile([1, 2, 3, 4], percent) for percent in (0, 50, 95)] == [1, 2, 4]


def test_the_command_compares_strategies_by_run_and_by_queue(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = folder / "page.html"
    options = ("--nodes=2", "--strategy=binpack,spread", f"--html={page}")
    call_command("replay", "jobs", str(folder), *options)
    runs, queues = capsys.readouterr().out.split("\n\n")
    assert [line.split()[1] for line in runs.splitlines()[1:]] == ["binpack", "spread"]
    assert [line.split()[:2] for line in queues.splitlines()[1:]] == [
        ["a", "binpack"],
        ["a", "spread"],
        ["b", "binpack"],
        ["b", "spread"],
    ]
    assert page.read_text().count("<svg") == 2
    call_command("replay", "jobs", str(folder), "--nodes=2", "--json")
    (result,) = json.loads(capsys.readouterr().out)
    assert [queue["name"] for queue in result["queues"]] == ["a", "b"]


def test_numbers_must_be_above_0(folder: Path) -> None:
    with pytest.raises(CommandError, match="--step: expected more than 0, got 0"):
        call_command("replay", "jobs", str(folder), "--step=0")


def test_the_page_names_the_workload_as_text() -> None:
    result = play(trace_of(job("x", "<a>", 0, 60)), "binpack")
    assert "&lt;a&gt;" in timed_page([result])
    assert "<a>" not in timed_page([result])

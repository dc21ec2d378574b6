"""The file between operator, supervisor and beat, and the clock that follows it."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from celery import Celery

from kaiweb import beat
from kaiweb.beat import ShardClock
from kaiweb.supervisor.desired import (
    DESIRED_FILE,
    DesiredFile,
    DesiredProcesses,
    can_be_process,
    read_desired,
    write_desired,
)

WANTED = DesiredProcesses(
    shards=("amber", "default"),
    off=("binding",),
    arguments={"controllers": ("--group-pods=false",)},
    environment={"web": {"KAIWEB_GPU_SHARING": "0"}},
)


def test_what_is_written_is_read_back(tmp_path: Path):
    assert read_desired(tmp_path) == DesiredProcesses(shards=("default",))
    write_desired(tmp_path, WANTED)
    assert read_desired(tmp_path) == WANTED


@pytest.mark.parametrize(
    ("name", "can"),
    [
        ("a100", True),
        ("team-7", True),
        ("x" * 63, True),
        ("x" * 64, False),
        ("pool.eu", False),
        ("-pool", False),
        ("pool-", False),
        ("Pool", False),
        ("../x", False),
        ("a\n", False),
        ("", False),
    ],
)
def test_only_a_dns_label_can_be_a_process(name: str, can: bool):
    assert can_be_process(name) is can


def test_the_file_is_read_only_when_it_has_changed(tmp_path: Path):
    complaints: list[str] = []
    file = DesiredFile(tmp_path, complaints.append)
    assert file.changed() is None
    write_desired(tmp_path, WANTED)
    assert file.changed() == WANTED
    assert file.changed() is None
    (tmp_path / DESIRED_FILE).write_text(
        '{"shards": ["a/b"], "off": [], "arguments": {}, "environment": {}}'
    )
    os.utime(tmp_path / DESIRED_FILE, ns=(1, 1))
    assert file.changed() is None
    assert complaints == [f"{tmp_path / DESIRED_FILE}: expected DNS labels as shards, got 'a/b'"]
    (tmp_path / DESIRED_FILE).write_text("[]")
    assert file.changed() is None
    assert (
        f"{tmp_path / DESIRED_FILE}: expected what the operator writes, got TypeError"
        in complaints[1]
    )


def test_beat_ticks_for_a_shard_as_long_as_it_is_wanted(tmp_path: Path, settings: Any):
    settings.KAIWEB_HOME = tmp_path
    settings.KAIWEB_SHARDS = ["default"]
    app = Celery("clock", broker="memory://", set_as_current=False)
    app.conf.beat_schedule = {}
    clock = ShardClock(app)
    sent: list[tuple[Any, Any]] = []
    clock.apply_async = lambda entry, **_: sent.append((entry.args, entry.options.get("queue")))
    try:
        write_desired(tmp_path, DesiredProcesses(shards=("amber", "default")))
        clock.tick()
        assert {name for name in clock.schedule if name.startswith("cycle-")} == {
            "cycle-amber",
            "cycle-default",
        }
        for entry in clock.schedule.values():
            entry.last_run_at = entry.default_now() - timedelta(days=1)
        clock.populate_heap()
        while clock.tick() == 0:
            pass
        assert ((["amber"], "shard.amber") in sent, (["default"], "shard.default") in sent) == (
            True,
            True,
        )
        write_desired(tmp_path, DesiredProcesses())
        clock.tick()
        assert {name for name in clock.schedule if name.startswith("cycle-")} == {"cycle-default"}
    finally:
        clock.close()


def test_ticks_go_on_when_the_wall_clock_steps_back(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
):
    settings.KAIWEB_HOME = tmp_path
    app = Celery("clock", broker="memory://", set_as_current=False)
    app.conf.beat_schedule = {"cycle": {"task": "cycle", "schedule": 1.0}}
    passed_s, wall = [1000.0], [datetime(2026, 1, 1, 12, tzinfo=UTC)]
    monkeypatch.setattr(beat.time, "monotonic", lambda: passed_s[0])
    monkeypatch.setattr(app, "now", lambda: wall[0])
    clock = ShardClock(app)
    sent: list[float] = []
    clock.apply_async = lambda entry, **_: sent.append(passed_s[0])
    clock.tick()
    for step in range(1, 6):
        passed_s[0] += 1.0
        wall[0] += timedelta(seconds=1) if step != 2 else -timedelta(minutes=100)
        while clock.tick() == 0:
            pass
    assert sent == [1001.0, 1002.0, 1003.0, 1004.0, 1005.0]
    clock.close()


def test_the_clock_leaves_no_file_behind(tmp_path: Path, settings: Any):
    settings.KAIWEB_HOME = tmp_path
    app = Celery("clock", broker="memory://", set_as_current=False)
    clock = ShardClock(app, schedule_filename=str(tmp_path / "celerybeat-schedule"))
    clock.sync()
    clock.close()
    assert list(tmp_path.iterdir()) == []

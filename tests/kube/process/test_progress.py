"""Signs of life: written by threads, read from outside, judged without the help of the process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kube.objects.meta import ObjectMeta
from kube.objects.pod import Pod
from kube.process import progress
from kube.process.left_out import MAX_ENTRIES, HeldObject, LeftOut, add_entry, read_entries
from kube.process.progress import Beat, Sign, beat_file, read_beat, standstill

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def pod(name: str = "a", version: str = "7") -> Pod:
    meta = ObjectMeta(name=name, namespace="team", uid=f"uid-{name}", resource_version=version)
    return Pod(metadata=meta)


def held(name: str = "a", version: str = "7", place: str = "mirror") -> HeldObject:
    return HeldObject(place, "Pod", "team", name, f"uid-{name}", version)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(progress.PROCESS_VARIABLE, raising=False)
    yield tmp_path
    progress.stop()


def sign(
    moment: float,
    limit_s: float = 30.0,
    thread: str = "worker",
    doing: str = "work",
    held: HeldObject | None = None,
) -> Sign:
    return Sign(thread=thread, doing=doing, moment=moment, limit_s=limit_s, held=held)


def beat(*signs: Sign, pid: int = 2**22 + 1) -> Beat:
    return Beat(pid=pid, started_at=0.0, signs=signs)


def test_the_step_and_object_of_a_thread_can_be_read_from_the_file(home: Path):
    progress.start("mirror", home)
    assert progress.track().take("Pod", pod(), "mirror", 45.0)
    shown = read_beat(beat_file(home, "mirror"))
    assert shown is not None
    assert shown.pid == os.getpid()
    (only,) = shown.signs
    assert (only.thread, only.doing, only.limit_s, only.held) == (
        "MainThread", "mirror", 45.0, held(),
    )  # fmt: skip
    progress.track().beat("idle work")
    (only,) = read_beat(beat_file(home, "mirror")).signs
    assert (only.doing, only.held) == ("idle work", None)


def test_each_thread_has_its_own_track_and_reuses_that_of_an_ended_thread(home: Path):
    progress.start("mirror", home)
    shown: list[list[str]] = []

    def work() -> None:
        progress.track().beat("x")
        shown.append([s.thread for s in read_beat(beat_file(home, "mirror")).signs])

    for name in ("one", "two"):
        thread = threading.Thread(target=work, name=name)
        thread.start()
        thread.join()
    assert shown == [["MainThread", "one"], ["MainThread", "two"]]


def test_an_ended_thread_is_not_late(home: Path):
    progress.start("mirror", home)
    thread = threading.Thread(target=lambda: progress.track().beat("x"), name="one")
    thread.start()
    thread.join()
    assert [s.limit_s for s in read_beat(beat_file(home, "mirror")).signs] == [
        progress.START_S,
        0.0,
    ]


def test_the_file_has_the_supervisors_name_and_mode_0600(home: Path, monkeypatch):
    monkeypatch.setenv(progress.PROCESS_VARIABLE, "scheduling-amber")
    progress.start("celery", home)
    file = beat_file(home, "scheduling-amber")
    assert file.stat().st_mode & 0o777 == 0o600
    assert not beat_file(home, "celery").exists()


def test_a_stopped_writer_leaves_no_beat_file(home: Path):
    progress.start("mirror", home)
    progress.track().beat("work")
    progress.stop()
    assert read_beat(beat_file(home, "mirror")).signs == ()


def test_a_process_that_cannot_create_the_file_still_works(home: Path):
    (home / progress.FOLDER).write_text("a file where the folder should be")
    progress.start("mirror", home)
    assert progress.track().take("Pod", pod(), "mirror")


def test_a_missing_or_foreign_file_reads_as_none(tmp_path: Path):
    assert read_beat(tmp_path / "none.beat") is None
    (tmp_path / "strange.beat").write_bytes(b"x" * 200)
    assert read_beat(tmp_path / "strange.beat") is None


def test_no_beat_within_the_limit_or_at_rest_is_no_standstill():
    assert standstill(beat(sign(70.0)), 100.0) is None
    assert standstill(beat(sign(0.0, limit_s=0.0)), 1000.0) is None


def test_no_beat_past_the_limit_is_a_standstill_and_names_the_object():
    still = standstill(beat(sign(60.0, held=held()), sign(99.0, held=held("b"))), 100.0)
    assert still is not None
    assert (still.since, still.held) == (60.0, held())
    assert still.text(100.0) == "no progress for 40 s (work: Pod team/a)"


def test_when_the_main_thread_is_silent_too_the_thread_that_wrote_last_holds_the_interpreter():
    waiting = sign(50.0, limit_s=90.0, held=held("innocent"))
    main = sign(59.0, thread="MainThread")
    culprit = sign(60.0, held=held("culprit"))
    still = standstill(beat(waiting, main, culprit), 100.0)
    assert still is not None
    assert still.held == held("culprit")


def test_time_in_which_the_reader_itself_was_paused_does_not_count():
    late = beat(sign(10.0))
    assert standstill(late, 1000.0, awake_since=999.0) is None
    assert standstill(late, 1030.0, awake_since=999.0) is not None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc")
def test_a_stopped_process_hangs_on_no_object():
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        child.send_signal(19)
        os.waitpid(child.pid, os.WUNTRACED)
        assert progress.is_stopped(child.pid)
        still = standstill(beat(sign(0.0, held=held()), pid=child.pid), 100.0)
        assert still is not None
        assert still.held is None
    finally:
        child.kill()
        child.wait()


def test_an_object_is_left_out_at_the_place_of_the_hang_until_it_changes(home: Path):
    add_entry(home, "mirror", held(), NOW, "no progress for 31 s")
    progress.start("mirror", home)
    track = progress.track()
    assert not track.take("Pod", pod(), "mirror")
    assert track.take("Pod", pod(), "store")
    assert track.take("Pod", pod(version="8"), "mirror")
    assert track.take("Pod", pod("b"), "mirror")
    assert not LeftOut.of(home, "binding")


def test_the_list_is_bounded_and_keeps_one_version_of_an_object(tmp_path: Path):
    add_entry(tmp_path, "mirror", held(version="1"), NOW, "first")
    add_entry(tmp_path, "mirror", held(version="2"), NOW, "second")
    assert [(e.held.version, e.reason, e.time) for e in read_entries(tmp_path)] == [
        ("2", "second", "2026-11-30T00:00:00Z")
    ]
    for number in range(MAX_ENTRIES):
        add_entry(tmp_path, "mirror", held(f"n{number}"), NOW, "more")
    names = [entry.held.name for entry in read_entries(tmp_path)]
    assert (len(names), names[0], names[-1]) == (MAX_ENTRIES, "n0", f"n{MAX_ENTRIES - 1}")


def test_a_damaged_list_reads_as_empty(tmp_path: Path):
    (tmp_path / "set-aside.json").write_text('[{"process": "mirror"}]')
    assert read_entries(tmp_path) == []

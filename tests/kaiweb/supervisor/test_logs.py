"""Logs stay within their bound and keep their end."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from kaiweb.supervisor import logs
from kaiweb.supervisor.logs import OLDER_FILES, ProcessLog
from kaiweb.supervisor.process import ProcessSpec
from kaiweb.supervisor.supervisor import Supervisor


def sizes(folder: Path) -> dict[str, int]:
    return {file.name: file.stat().st_size for file in folder.iterdir()}


def test_a_full_log_moves_on_and_its_process_goes_on_in_the_new_part(tmp_path: Path) -> None:
    log = ProcessLog(tmp_path, "web", most_bytes=10)
    for text in (b"first 11 b\n", b"second 11b\n", b"third\n"):
        os.write(log.descriptor(), text)
        log.trim()
    log.close()
    assert (tmp_path / "web.log").read_bytes() == b"third\n"
    assert (tmp_path / "web.log.1").read_bytes() == b"second 11b\n"
    assert (tmp_path / "web.log.2").read_bytes() == b"first 11 b\n"


def test_a_flood_leaves_bounded_files_and_its_last_lines(tmp_path: Path) -> None:
    log = ProcessLog(tmp_path, "web", most_bytes=1_000)
    for number in range(10):
        os.write(log.descriptor(), b"x" * 50_000 + b"\nlast line %d\n" % number)
        log.trim()
    log.close()
    assert set(sizes(tmp_path)) == {"web.log", *(f"web.log.{n + 1}" for n in range(OLDER_FILES))}
    assert sum(sizes(tmp_path).values()) < OLDER_FILES * 2_100
    assert (tmp_path / "web.log.1").read_bytes().endswith(b"\nlast line 9\n")
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}


def test_a_process_that_writes_faster_than_we_copy_does_not_hold_the_supervisor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "_CHUNK", 100)
    log = ProcessLog(tmp_path, "web", most_bytes=1_000)
    os.write(log.descriptor(), b"x" * 2_000)
    stop = threading.Event()

    def flood() -> None:
        while not stop.is_set():
            os.write(log.descriptor(), b"x" * 1_000_000)

    writer = threading.Thread(target=flood)
    writer.start()
    log.trim()
    stop.set()
    writer.join()
    log.close()
    assert (tmp_path / "web.log.1").stat().st_size <= 2_200


def test_a_disk_without_room_does_not_stop_the_supervisor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = ProcessLog(tmp_path, "web", most_bytes=10)
    os.write(log.descriptor(), b"more than ten bytes")

    def full(_log: ProcessLog) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ProcessLog, "_keep_end", full)
    log.trim()
    log.close()
    assert sizes(tmp_path) == {"web.log": 0}


def test_the_supervisor_bounds_the_log_of_a_child_and_keeps_the_last_words_of_a_crash(
    tmp_path: Path,
) -> None:
    flood = "import os; [os.write(1, b'x' * 999 + b'\\n') for _ in range(500)]; raise SystemExit('fatal')"
    spec = ProcessSpec(name="talker", command=(sys.executable, "-c", flood), wave=0)
    started = Supervisor([spec], home=tmp_path, say=lambda _line: None, log_bytes=20_000)
    started.start_wave(0)
    log = tmp_path / "logs" / "talker.log"
    started.wait_for(lambda: _last_words(log), what="the crash", timeout_s=10)
    started.stop()
    assert _last_words(log)
    assert sum(sizes(log.parent).values()) < OLDER_FILES * 40_100


def _last_words(log: Path) -> bool:
    parts = [log, log.with_name(f"{log.name}.1")]
    return any(part.exists() and part.read_bytes().endswith(b"fatal\n") for part in parts)

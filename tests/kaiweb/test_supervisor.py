"""The supervisor restarts what dies and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from kaiweb.supervisor import ports
from kaiweb.supervisor.process import Spec
from kaiweb.supervisor.supervisor import Supervisor

SLEEPER = (sys.executable, "-c", "import time; time.sleep(60)")


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def supervisor(tmp_path: Path):
    lines: list[str] = []
    made = Supervisor(
        [
            Spec(name="first", command=SLEEPER, wave=0),
            Spec(name="second", command=SLEEPER, wave=1),
        ],
        home=tmp_path,
        say=lines.append,
    )
    yield made, tmp_path, lines
    made.stop()


def _pids(home: Path) -> dict[str, int]:
    return json.loads((home / "processes.json").read_text())


def test_waves_start_in_order_and_stop_leaves_no_process(supervisor):
    made, home, _lines = supervisor
    made.start_wave(0)
    assert set(_pids(home)) == {"supervisor", "first"}
    made.start_wave(1)
    pids = _pids(home)
    assert set(pids) == {"supervisor", "first", "second"}
    made.stop()
    assert not _is_alive(pids["first"])
    assert not _is_alive(pids["second"])
    assert not (home / "processes.json").exists()


def test_a_killed_process_is_started_again(supervisor):
    made, home, lines = supervisor
    made.start_wave(0)
    before = _pids(home)["first"]
    os.kill(before, signal.SIGKILL)
    came_back = made.wait_for(
        lambda: _pids(home).get("first", before) != before, what="first", timeout_s=10
    )
    assert came_back
    assert any(line.startswith("first ended with code -9") for line in lines)


def test_waiting_for_something_that_never_comes_names_it(supervisor):
    made, _home, _lines = supervisor
    with pytest.raises(TimeoutError, match="the moon was not ready within 0 s"):
        made.wait_for(lambda: False, what="the moon", timeout_s=0.2)


def test_output_goes_to_the_process_own_log(tmp_path: Path):
    spec = Spec(name="talker", command=(sys.executable, "-c", "print('hello')"), wave=0)
    made = Supervisor([spec], home=tmp_path, say=lambda _line: None)
    made.start_wave(0)
    log = tmp_path / "logs" / "talker.log"
    deadline = time.monotonic() + 10
    while not log.read_text() and time.monotonic() < deadline:
        time.sleep(0.05)
    made.stop()
    assert log.read_text().startswith("hello\n")


def test_ports_are_kept_while_they_are_free(tmp_path: Path):
    first = ports.remembered(tmp_path, ("a", "b"))
    assert first["a"] != first["b"]
    assert ports.remembered(tmp_path, ("a", "b")) == first

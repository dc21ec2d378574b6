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
from kaiweb.supervisor.process import ProcessSpec
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
    started = Supervisor(
        [
            ProcessSpec(name="first", command=SLEEPER, wave=0),
            ProcessSpec(name="second", command=SLEEPER, wave=1),
        ],
        home=tmp_path,
        say=lines.append,
    )
    yield started, tmp_path, lines
    started.stop()


def _pids(home: Path) -> dict[str, int]:
    return json.loads((home / "processes.json").read_text())


def test_a_process_gives_way_to_others_as_its_specification_says(tmp_path: Path) -> None:
    nice = ProcessSpec(name="nice", command=SLEEPER, wave=0, niceness=3)
    started = Supervisor([nice], home=tmp_path, say=lambda _line: None)
    started.start_wave(0)
    try:
        priority = os.getpriority(os.PRIO_PROCESS, _pids(tmp_path)["nice"])
        assert priority == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 3)
    finally:
        started.stop()


def test_waves_start_in_order_and_stop_leaves_no_process(supervisor):
    started, home, _lines = supervisor
    started.start_wave(0)
    assert set(_pids(home)) == {"supervisor", "first"}
    started.start_wave(1)
    pids = _pids(home)
    assert set(pids) == {"supervisor", "first", "second"}
    started.stop()
    assert not _is_alive(pids["first"])
    assert not _is_alive(pids["second"])
    assert not (home / "processes.json").exists()


def test_a_killed_process_is_started_again(supervisor):
    started, home, lines = supervisor
    started.start_wave(0)
    before = _pids(home)["first"]
    os.kill(before, signal.SIGKILL)
    came_back = started.wait_for(
        lambda: _pids(home).get("first", before) != before, what="first", timeout_s=10
    )
    assert came_back
    assert any(line.startswith("first ended with code -9") for line in lines)


def test_another_list_ends_what_is_gone_and_starts_what_is_new(supervisor):
    started, home, lines = supervisor
    started.start_wave(0)
    started.start_wave(1)
    before = _pids(home)
    first = ProcessSpec(name="first", command=SLEEPER, wave=0)
    started.adopt([first, ProcessSpec(name="third", command=SLEEPER, wave=1)])
    came = started.wait_for(lambda: not _is_alive(before["second"]), what="its end", timeout_s=10)
    after = _pids(home)
    assert came
    assert set(after) == {"supervisor", "first", "third"}
    assert after["first"] == before["first"]
    assert lines == ["second is no longer wanted", f"third started as pid {after['third']}"]


def test_a_changed_process_starts_anew_when_its_former_self_has_ended(supervisor):
    started, home, lines = supervisor
    started.start_wave(0)
    before = _pids(home)["first"]
    # Takes its time to end, so that both would overlap if the new one did not wait.
    slow = "import signal,time; signal.signal(15, lambda *_: (time.sleep(0.5), exit())); time.sleep(60)"
    started.adopt([ProcessSpec(name="first", command=(sys.executable, "-c", slow), wave=0)])
    started.wait_for(lambda: _pids(home).get("first", before) != before, what="it", timeout_s=10)
    second = _pids(home)["first"]
    assert not _is_alive(before)
    started.adopt([ProcessSpec(name="first", command=SLEEPER, wave=0)])
    assert "first" not in _pids(home)
    started.wait_for(lambda: _pids(home).get("first", second) != second, what="it", timeout_s=10)
    assert not _is_alive(second)
    assert lines.count("first restarts with other settings") == 2


def test_a_process_of_a_wave_that_has_not_come_waits_for_it(supervisor):
    started, home, _lines = supervisor
    started.start_wave(0)
    started.adopt([ProcessSpec(name="late", command=SLEEPER, wave=1)])
    assert set(_pids(home)) == {"supervisor"}
    started.start_wave(1)
    assert set(_pids(home)) == {"supervisor", "late"}


def test_the_list_is_followed_until_a_signal_comes(supervisor):
    started, home, _lines = supervisor
    started.start_wave(0)
    started.start_wave(1)
    requests: list[set[str]] = []

    def follow() -> list[ProcessSpec] | None:
        requests.append(set(_pids(home)))
        if len(requests) == 3:
            signal.raise_signal(signal.SIGTERM)
        return [ProcessSpec(name="only", command=SLEEPER, wave=1)] if len(requests) == 2 else None

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    started.handle_signals()
    try:
        started.run(follow)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert requests == [
        {"supervisor", "first", "second"},
        {"supervisor", "first", "second"},
        {"supervisor", "only"},
    ]


def test_waiting_for_something_that_never_comes_names_it(supervisor):
    started, _home, _lines = supervisor
    with pytest.raises(TimeoutError, match="the moon was not ready within 0 s"):
        started.wait_for(lambda: False, what="the moon", timeout_s=0.2)


def test_output_goes_to_the_process_own_log(tmp_path: Path):
    spec = ProcessSpec(name="talker", command=(sys.executable, "-c", "print('hello')"), wave=0)
    started = Supervisor([spec], home=tmp_path, say=lambda _line: None)
    started.start_wave(0)
    log = tmp_path / "logs" / "talker.log"
    deadline = time.monotonic() + 10
    while not log.read_text() and time.monotonic() < deadline:
        time.sleep(0.05)
    started.stop()
    assert log.read_text().startswith("hello\n")


def test_ports_are_kept_while_they_are_free(tmp_path: Path):
    first = ports.remembered(tmp_path, ("a", "b"))
    assert first["a"] != first["b"]
    assert ports.remembered(tmp_path, ("a", "b")) == first


def test_a_new_name_never_gets_the_port_of_one_that_is_not_asked_for_now(tmp_path: Path):
    first = ports.remembered(tmp_path, ("a",))
    second = ports.remembered(tmp_path, ("b",))
    assert ports.remembered(tmp_path, ("a", "b")) == {**first, **second}


def test_a_disk_without_room_does_not_end_what_runs(supervisor, monkeypatch: pytest.MonkeyPatch):
    started, home, lines = supervisor
    started.start_wave(0)
    before = _pids(home)["first"]

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kaiweb.supervisor.supervisor.write_private", full)
    os.kill(before, signal.SIGKILL)
    started.wait_for(
        lambda: any("first started again" in line for line in lines), what="first", timeout_s=10
    )
    assert any("processes.json could not be written: [Errno 28] No space" in line for line in lines)

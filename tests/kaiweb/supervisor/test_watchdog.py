"""The watchdog ends what stands still, leaves out what it hung on, and says how every child is."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kaiweb.health.probe import judge
from kaiweb.supervisor.announcement import Announcement
from kaiweb.supervisor.process import ProcessSpec
from kaiweb.supervisor.supervisor import Supervisor
from kaiweb.supervisor.watchdog import Watchdog, broker_answers, read_children
from kube.process.left_out import HeldObject, read_entries
from kube.process.progress import MAIN, START_S, Beat, Sign

NOW = datetime(2026, 11, 30, tzinfo=UTC)
POD = HeldObject("mirror", "Pod", "team", "bad", "uid-1", "7")
PID = 2**22 + 7


@dataclass
class FakeChild:
    name: str = "mirror"
    broker_port: int = 0
    pid: int | None = PID
    is_running: bool = True
    is_steady: bool = True
    exit_code: int | None = None
    uptime_s: float = 1.0
    restarts: int = 0
    kills: int = 0

    def kill(self) -> None:
        self.kills += 1
        self.is_running, self.exit_code = False, -9


@dataclass
class World:
    home: Path
    now: float = 1000.0
    lines: list[str] = field(default_factory=list)
    signals: list[tuple[int, int]] = field(default_factory=list)
    beat: Beat | None = None
    answers: bool = True

    def __post_init__(self) -> None:
        self.child = FakeChild()
        self.dog = Watchdog(
            self.home,
            self.lines.append,
            clock=lambda: self.now,
            wall=lambda: NOW,
            read=lambda _file: self.beat,
            answers=lambda _port: self.answers,
            send=lambda pid, number: self.signals.append((pid, number)),
        )
        self.look()

    def look(self, after_s: float = 1.0) -> str:
        self.now += after_s
        self.dog.look([self.child])
        states = read_children(self.home)
        return states[self.child.name].fault

    def signs(self, moment: float, held: HeldObject | None = None, pid: int = PID) -> None:
        sign = Sign(thread=MAIN, doing="mirror", moment=moment, limit_s=30.0, held=held)
        self.beat = Beat(pid=pid, started_at=0.0, signs=(sign,))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def stand_still(world: World, held: HeldObject | None = POD) -> None:
    """Let time pass without a sign, with the looks that a supervisor takes."""
    world.signs(world.now, held)
    for _ in range(31):
        world.look()


def test_a_child_that_reports_progress_is_healthy(world: World):
    world.signs(world.now)
    assert world.look() == ""
    assert world.child.kills == 0


def test_a_late_child_leaves_its_traceback_first_and_is_ended_at_the_next_look(world: World):
    stand_still(world)
    assert (world.signals, world.child.kills) == ([(PID, signal.SIGUSR2)], 0)
    fault = world.look()
    assert fault == "it makes no progress (mirror) and is started again"
    assert read_children(world.home)["mirror"].held == "Pod team/bad"
    assert world.child.kills == 1
    assert world.lines == [
        "ending mirror, which will be started again: no progress for 32 s (mirror: Pod team/bad); "
        f"traceback in {world.home}/logs/mirror.log",
        "mirror leaves out Pod team/bad until it changes",
    ]
    (entry,) = read_entries(world.home)
    assert (entry.process, entry.held, entry.time) == ("mirror", POD, "2026-11-30T00:00:00Z")
    assert read_children(world.home)["mirror"].hangs == 1


def test_a_late_child_that_goes_on_is_spared(world: World):
    stand_still(world)
    world.signs(world.now)
    assert world.look() == ""
    stand_still(world)
    assert world.child.kills == 0


def test_without_an_object_in_hand_nothing_is_set_aside(world: World):
    stand_still(world, held=None)
    world.look()
    assert world.child.kills == 1
    assert read_entries(world.home) == []


def test_beats_of_an_earlier_process_are_ignored(world: World):
    world.signs(0.0, pid=PID - 1)
    assert world.look() == ""
    world.child.uptime_s = START_S + 1
    assert world.look().startswith("it has given no sign of life yet")
    assert world.child.kills == 0


def test_a_pause_of_the_whole_machine_ends_no_process(world: World):
    world.signs(world.now)
    assert world.look(after_s=600.0) == ""
    assert world.look() == ""
    assert world.child.kills == 0


def test_a_process_that_does_not_run_or_keeps_ending_is_reported(world: World):
    world.child.is_running, world.child.exit_code = False, 1
    assert world.look().startswith("it ended with code 1 and starts again soon")
    world.child.is_running, world.child.is_steady = True, False
    assert world.look().startswith("it ends again and again")
    world.child.broker_port = 1
    assert world.look().startswith("it ends again and again")


def test_a_broker_that_does_not_answer_is_ended(world: World):
    world.child.broker_port = 1
    assert world.look() == ""
    world.answers = False
    for _ in range(31):
        assert world.look() == "it does not answer"
    assert world.child.kills == 0
    world.look()
    assert world.child.kills == 1
    assert world.lines[0].startswith(
        "ending mirror, which will be started again: no progress for 31 s (ans"
    )


@pytest.mark.parametrize("reply", [b"+PONG\r\n", b"-NOAUTH\r\n"])
def test_any_reply_of_a_broker_is_an_answer(reply: bytes):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            link, _ = server.accept()
            with link:
                link.recv(100)
                link.sendall(reply)

        thread = threading.Thread(target=serve)
        thread.start()
        assert broker_answers(server.getsockname()[1])
        thread.join()
    assert not broker_answers(1)


# --------------------------------------------------------------------------------- real processes

HANGS_IN_NATIVE_CODE = """
import json, pathlib, sys, threading, time
from kube.process import progress
from kube.objects.meta import ObjectMeta
from kube.objects.pod import Pod
home = pathlib.Path(sys.argv[1])
progress.start("reader", home)

def work():
    for name in ("good", "bad", "last"):
        meta = ObjectMeta(name=name, namespace="team", uid="uid-" + name, resource_version="7")
        if not progress.track().take("Pod", Pod(metadata=meta), "reading"):
            continue
        if name == "bad":
            pow(7, 10**9)  # one C call that keeps the interpreter lock
        with (home / "done").open("a") as file:
            file.write(name + "\\n")
    progress.track().rest()

threading.Thread(target=work, daemon=True).start()
while True:
    progress.track().beat("waiting")
    time.sleep(0.05)
"""


@pytest.mark.timeout(60)
def test_a_hang_in_native_code_is_ended_and_its_object_left_out(tmp_path: Path):
    lines: list[str] = []
    command = (sys.executable, "-c", HANGS_IN_NATIVE_CODE, str(tmp_path))
    spec = ProcessSpec(name="reader", wave=0, command=command, env={"KAIWEB_HANG_S": "1"})
    supervisor = Supervisor([spec], home=tmp_path, say=lines.append)
    supervisor.start_wave(0)
    marker = tmp_path / "done"
    try:
        supervisor.wait_for(
            lambda: marker.exists() and marker.read_text().endswith("last\n"),
            what="it",
            timeout_s=40,
        )
    finally:
        supervisor.stop()
    assert marker.read_text() == "good\ngood\nlast\n"
    (entry,) = read_entries(tmp_path)
    assert (entry.process, entry.held) == (
        "reader", HeldObject("reading", "Pod", "team", "bad", "uid-bad", "7"),
    )  # fmt: skip
    assert "reader leaves out Pod team/bad until it changes" in lines
    # The handler of the C level wrote where it hung.
    assert "in work" in (tmp_path / "logs" / "reader.log").read_text()


@pytest.mark.timeout(60)
def test_a_stopped_process_is_started_again_and_blames_nobody(tmp_path: Path):
    lines: list[str] = []
    program = HANGS_IN_NATIVE_CODE.replace("pow(7, 10**9)", "pass")
    command = (sys.executable, "-c", program, str(tmp_path))
    spec = ProcessSpec(name="reader", wave=0, command=command, env={"KAIWEB_HANG_S": "1"})
    supervisor = Supervisor([spec], home=tmp_path, say=lines.append)
    supervisor.start_wave(0)
    marker = tmp_path / "done"
    try:
        supervisor.wait_for(marker.exists, what="its first work", timeout_s=20)
        pid = read_children(tmp_path)["reader"].pid
        os.kill(pid, signal.SIGSTOP)
        supervisor.wait_for(
            lambda: read_children(tmp_path)["reader"].pid not in (pid, None),
            what="another process",
            timeout_s=20,
        )
        assert read_children(tmp_path)["reader"].hangs == 1
    finally:
        supervisor.stop()
    assert read_entries(tmp_path) == []
    assert read_children(tmp_path) is None


def test_the_probe_of_one_process_says_how_it_is_and_sets_aside(tmp_path: Path):
    assert judge(tmp_path, "reader", 0.0, NOW)[0] == 1
    program = HANGS_IN_NATIVE_CODE.replace("pow(7, 10**9)", "pass")
    environment = {**os.environ, "KAIWEB_HANG_S": "1"}
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], env=environment, stderr=subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + 20
        while not (tmp_path / "done").exists() and time.monotonic() < until:
            time.sleep(0.05)
        code, line = judge(tmp_path, "reader", time.monotonic(), NOW)
        assert (code, line.startswith("reader: alive")) == (0, True)
        os.kill(child.pid, signal.SIGSTOP)
        code, line = judge(tmp_path, "reader", time.monotonic() + 5, NOW)
        assert code == 1
        assert line.startswith("reader: no progress for ")
    finally:
        child.kill()
        child.wait()
    assert judge(tmp_path, "reader", 0.0, NOW) == (1, f"reader: process {child.pid} has ended")


# -------------------------------------------------------------------------------- the announcement


def test_up_is_announced_when_ready_and_what_is_missing_after_a_time():
    now, lines, faults = [0.0], [], {"cycles": "none yet"}
    announcement = Announcement(
        lambda: faults, lambda: lines.append("welcome"), lines.append, clock=lambda: now[0]
    )
    for now[0] in (0.0, 1.0, 59.0):
        announcement.look()
    assert lines == []
    for now[0] in (60.0, 61.0, 89.0):
        announcement.look()
    assert lines == ["not ready after 60 s, still trying (Ctrl-C ends it):", "  cycles: none yet"]
    faults.clear()
    for now[0] in (90.0, 91.0):
        announcement.look()
    assert lines[2:] == ["welcome"]

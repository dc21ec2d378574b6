"""What counts as up, by files, pids and ports."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kaiweb.machine import is_alive
from kaiweb.operator.probe import MIN_UPTIME_S, ProcessProbe
from kaiweb.supervisor.desired import DESIRED_FILE, DesiredProcesses, write_desired
from kaiweb.supervisor.ports import pick
from kaiweb.supervisor.watchdog import children_file

PORTS = {"controller-metrics": 2, "scheduler-metrics": 3, "scheduler-metrics-amber": 4}


class Machine:
    """Which pids live and which ports answer."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.dead: set[int] = set()
        self.silent: set[int] = set()
        self.probe = ProcessProbe(
            home,
            1,
            is_alive=lambda pid: pid not in self.dead,
            accepts=lambda port: port not in self.silent,
        )

    def run(self, **pids: int) -> None:
        (self.home / "processes.json").write_text(json.dumps({"supervisor": 1, **pids}))

    def up(self, now: float) -> set[str]:
        return set(self.probe.look(("amber", "default"), now).up)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    (tmp_path / "ports.json").write_text(json.dumps(PORTS))
    return Machine(tmp_path)


def test_a_process_with_a_port_is_up_as_soon_as_it_answers(machine: Machine) -> None:
    machine.run(web=10, controllers=11, **{"scheduling-default": 12, "scheduling-amber": 13})
    assert machine.up(0) == {"web", "controllers", "scheduling-default", "scheduling-amber"}
    machine.silent = {1, 4}
    assert machine.up(60) == {"controllers", "scheduling-default"}


def test_a_process_without_a_port_is_up_after_a_minimum_time(machine: Machine) -> None:
    machine.run(binding=10)
    assert machine.up(0) == set()
    assert machine.up(MIN_UPTIME_S) == {"binding"}
    machine.run(binding=20)
    assert machine.up(MIN_UPTIME_S + 1) == set()
    assert machine.up(2 * MIN_UPTIME_S + 1) == {"binding"}


def test_a_restarted_process_is_reported_as_missing_once(machine: Machine) -> None:
    machine.run(web=10)
    assert machine.up(0) == {"web"}
    machine.run(web=20)
    assert machine.up(1) == set()
    assert machine.up(2) == {"web"}


def test_an_ended_process_is_not_up_even_if_the_supervisor_still_lists_it(machine: Machine) -> None:
    machine.run(web=10, beat=11)
    machine.up(0)
    machine.dead = {11}
    assert machine.up(60) == {"web"}


def test_without_a_supervisor_nothing_is_up_and_nothing_adopted(machine: Machine) -> None:
    write_desired(machine.home, DesiredProcesses())
    observation = machine.probe.look(("default",), 0.0)
    assert (observation.up, observation.is_applied) == (frozenset(), False)


def test_a_change_is_applied_when_the_supervisor_has_written_after_it(machine: Machine) -> None:
    write_desired(machine.home, DesiredProcesses())
    machine.run(web=10)
    os.utime(machine.home / DESIRED_FILE, ns=(5, 5))
    os.utime(machine.home / "processes.json", ns=(4, 4))
    assert not machine.probe.look(("default",), 0.0).is_applied
    os.utime(machine.home / "processes.json", ns=(5, 5))
    assert machine.probe.look(("default",), 0.0).is_applied


def test_pids_and_ports_are_really_looked_at(tmp_path: Path) -> None:
    (tmp_path / "processes.json").write_text(json.dumps({"web": os.getpid()}))
    assert ProcessProbe(tmp_path, pick()).look((), 0.0).up == frozenset()
    assert is_alive(os.getpid())
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    assert not is_alive(child)


def test_a_process_that_makes_no_progress_is_not_up_and_the_watchdog_says_why(
    machine: Machine,
) -> None:
    machine.run(web=10)
    state = {"pid": 10, "is_steady": True, "restarts": 0, "hangs": 0, "fault": "no progress"}
    children_file(machine.home).parent.mkdir()
    children_file(machine.home).write_text(json.dumps({"web": state}))
    observation = machine.probe.look((), 0.0)
    assert (observation.up, observation.faults) == (frozenset(), {"web": "no progress"})

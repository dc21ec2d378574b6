"""Kill one process after another with SIGKILL during a burst, on the embedded cluster."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.integration.process_kills import kill_during_a_burst
from tests.integration.stack import Stack, running_stack
from tests.integration.two_binders import interrupt_a_second_binder

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

VICTIMS = ("web", "mirror", "scheduling-default", "binding", "broker", "controllers", "cluster")


@pytest.fixture(scope="module")
def own_stack(tmp_path_factory: pytest.TempPathFactory):
    with running_stack(tmp_path_factory.mktemp("kills")) as running:
        running.kubectl("create", "namespace", "burst")
        yield running


@pytest.mark.parametrize("victim", VICTIMS)
def test_a_killed_process_loses_no_work(own_stack: Stack, victim: str):
    kill_during_a_burst(own_stack, victim)


@pytest.mark.timeout(480)
@pytest.mark.parametrize("sign", [signal.SIGSTOP, signal.SIGKILL])
def test_of_two_binders_one_stands_still_or_dies_and_every_pod_is_bound_once(
    own_stack: Stack, tmp_path: Path, sign: signal.Signals
):
    interrupt_a_second_binder(own_stack, tmp_path, sign)

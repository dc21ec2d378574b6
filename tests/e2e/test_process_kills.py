"""Kill the processes that decide and write, on a real kube-apiserver: their rights and their memory come back."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.integration.process_kills import kill_during_a_burst
from tests.integration.stack import Stack
from tests.integration.two_binders import interrupt_a_second_binder

pytestmark = [pytest.mark.e2e, pytest.mark.integration, pytest.mark.timeout(300)]

VICTIMS = ("scheduling-default", "binding", "controllers")


@pytest.fixture(scope="module")
def bursting(stack: Stack) -> Stack:
    stack.kubectl("create", "namespace", "burst")
    return stack


@pytest.mark.parametrize("victim", VICTIMS)
def test_a_killed_process_loses_no_work(bursting: Stack, victim: str):
    kill_during_a_burst(bursting, victim)


@pytest.mark.timeout(480)
@pytest.mark.parametrize("sign", [signal.SIGSTOP, signal.SIGKILL])
def test_of_two_binders_one_stands_still_or_dies_and_every_pod_is_bound_once(
    bursting: Stack, tmp_path: Path, sign: signal.Signals
):
    interrupt_a_second_binder(bursting, tmp_path, sign, stopped_for_s=60)

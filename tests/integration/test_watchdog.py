"""What stands still is noticed, named and started again, on a whole installation."""

from __future__ import annotations

import json
import os
import signal
import urllib.error
import urllib.request

import pytest

from tests.integration.stack import Stack, running_stack, wait_until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def own_stack(tmp_path_factory: pytest.TempPathFactory):
    with running_stack(tmp_path_factory.mktemp("watchdog"), {"KAIWEB_HANG_S": "8"}) as running:
        yield running


def unready(stack: Stack) -> dict[str, str]:
    """Return the faults by check."""
    try:
        with urllib.request.urlopen(f"{stack.url}/readyz", timeout=10):
            return {}
    except urllib.error.HTTPError as error:
        checks: dict[str, str] = json.loads(error.read())["checks"]
        return {name: text for name, text in checks.items() if text != "ok"}


def wait_until_ready(stack: Stack) -> None:
    wait_until(lambda: not unready(stack), what="readiness", timeout_s=90, stack=stack)


def test_a_stopped_mirror_is_named_and_started_again(own_stack: Stack):
    wait_until_ready(own_stack)
    before = own_stack.pids()["mirror"]
    os.kill(before, signal.SIGSTOP)
    fault = wait_until(
        lambda: unready(own_stack).get("processes"), what="an unready process", stack=own_stack
    )
    assert "mirror: " in fault
    wait_until(
        lambda: own_stack.pids().get("mirror") not in (None, before),
        what="another mirror",
        stack=own_stack,
    )
    wait_until_ready(own_stack)
    assert not (own_stack.home / "set-aside.json").exists()


def test_a_stopped_scheduler_is_started_again_and_work_goes_on(own_stack: Stack):
    wait_until_ready(own_stack)
    before = own_stack.pids()["scheduling-default"]
    os.kill(before, signal.SIGSTOP)
    wait_until(lambda: unready(own_stack), what="unreadiness", timeout_s=60, stack=own_stack)
    wait_until(
        lambda: own_stack.pids().get("scheduling-default") not in (None, before),
        what="another scheduler",
        timeout_s=60,
        stack=own_stack,
    )
    wait_until_ready(own_stack)
    verdict = own_stack.kaiweb("check_cluster")
    assert verdict.returncode == 0, verdict.stdout + verdict.stderr


def test_without_the_config_it_is_not_ready(own_stack: Stack):
    wait_until_ready(own_stack)
    own_stack.kubectl("delete", "configs.kai.scheduler", "kai-config")
    fault = wait_until(
        lambda: unready(own_stack).get("cluster"), what="the fault", timeout_s=5, stack=own_stack
    )
    assert fault == "Config kai-config does not exist; run: kaiweb bootstrap"
    restored = own_stack.kaiweb("bootstrap")
    assert restored.returncode == 0, restored.stdout + restored.stderr
    wait_until_ready(own_stack)

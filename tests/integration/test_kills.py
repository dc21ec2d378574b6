"""Kill one process after another with SIGKILL during a burst: nothing is lost, nothing is given twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.stack import Stack, running_stack, wait_until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

BURST = 40
VICTIMS = ("web", "mirror", "scheduling-default", "binding", "broker", "controllers", "cluster")


@pytest.fixture(scope="module")
def own_stack(tmp_path_factory: pytest.TempPathFactory):
    with running_stack(tmp_path_factory.mktemp("kills")) as running:
        running.kubectl("create", "namespace", "burst")
        yield running


def _burst(stack: Stack, name: str) -> None:
    manifest = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "burst"},
        "spec": {
            "parallelism": BURST,
            "completions": BURST,
            "template": {
                "metadata": {"annotations": {"sandbox.kaiweb/duration": "1h"}},
                "spec": {
                    "schedulerName": "kai-scheduler",
                    "restartPolicy": "Never",
                    "containers": [
                        {
                            "name": "main",
                            "image": "example.test/x:1",
                            "resources": {"limits": {"nvidia.com/gpu": "1"}},
                        }
                    ],
                },
            },
        },
    }
    stack.kubectl("apply", "-f", "-", stdin=json.dumps(manifest))


@pytest.mark.parametrize("victim", VICTIMS)
def test_a_killed_process_costs_nothing(own_stack: Stack, victim: str):
    name = f"burst-{victim}"
    before = own_stack.pids()[victim]
    _burst(own_stack, name)
    wait_until(
        lambda: own_stack.objects("pods", "-n", "burst", "-l", f"job-name={name}"),
        what="the first pods of the burst",
        stack=own_stack,
    )
    own_stack.kill(victim)

    def settled() -> bool:
        try:
            pods = own_stack.objects("pods", "-n", "burst", "-l", f"job-name={name}")
        except AssertionError:
            return False  # the cluster itself may be the one that was killed
        return len(pods) == BURST and all(
            pod["spec"].get("nodeName")
            or any(
                c["type"] == "PodScheduled" and c.get("message")
                for c in pod["status"].get("conditions", [])
            )
            for pod in pods
        )

    wait_until(
        settled, what="every pod bound or with a reason", timeout_s=60, every_s=0.5, stack=own_stack
    )
    assert own_stack.pids()[victim] != before
    verdict = own_stack.kaiweb("check_cluster")
    assert verdict.returncode == 0, verdict.stdout + verdict.stderr
    own_stack.kubectl("delete", "job", name, "-n", "burst", "--wait=false")
    wait_until(
        lambda: not own_stack.objects("pods", "-n", "burst", "-l", f"job-name={name}"),
        what="the end of the burst's pods",
        timeout_s=60,
        stack=own_stack,
    )
    assert Path(own_stack.home / "processes.json").exists()

"""Kill one process with SIGKILL during a burst: nothing may be lost, nothing given twice."""

from __future__ import annotations

import json
from pathlib import Path

from tests.integration.stack import Stack, wait_until

BURST = 120


def kill_during_a_burst(stack: Stack, victim: str) -> None:
    """Submit many one-GPU pods, kill, and check that each ends bound once or pending with a reason."""
    name = f"burst-{victim}"
    before = stack.pids()[victim]
    _burst(stack, name)
    wait_until(
        lambda: stack.objects("pods", "-n", "burst", "-l", f"job-name={name}"),
        what="the first pods of the burst",
        stack=stack,
    )
    stack.kill(victim)

    def settled() -> bool:
        try:
            pods = stack.objects("pods", "-n", "burst", "-l", f"job-name={name}")
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
        settled, what="every pod bound or with a reason", timeout_s=60, every_s=0.5, stack=stack
    )
    wait_until(
        lambda: stack.pids().get(victim) not in (None, before),
        what=f"another process {victim}",
        stack=stack,
    )
    verdict = stack.kaiweb("check_cluster")
    assert verdict.returncode == 0, verdict.stdout + verdict.stderr
    stack.kubectl("delete", "job", name, "-n", "burst", "--wait=false")
    # Not every cluster collects garbage: a real API server may be without its controller manager.
    stack.kubectl("delete", "pods", "-n", "burst", "-l", f"job-name={name}", "--wait=false")
    wait_until(
        lambda: not stack.objects("pods", "-n", "burst", "-l", f"job-name={name}"),
        what="the end of the burst's pods",
        timeout_s=60,
        stack=stack,
    )
    assert Path(stack.home / "processes.json").exists()


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

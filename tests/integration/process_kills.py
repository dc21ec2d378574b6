"""Kill one process with SIGKILL during a burst: nothing may be lost, nothing given twice."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tests.integration.stack import Stack, wait_until

BURST = 120


def kill_during_a_burst(stack: Stack, victim: str) -> None:
    """Submit many one-GPU pods, kill, and check that each ends bound once or pending with a reason."""
    name = f"burst-{victim}"
    before = stack.pids()[victim]
    burst(stack, name, BURST, limits={"nvidia.com/gpu": "1"})
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
    end_burst(stack, name)
    assert Path(stack.home / "processes.json").exists()


def end_burst(stack: Stack, name: str) -> None:
    """Delete a burst and wait until its pods are gone."""
    stack.kubectl("delete", "job", name, "-n", "burst", "--wait=false")
    # Not every cluster collects garbage: a real API server may be without its controller manager.
    stack.kubectl("delete", "pods", "-n", "burst", "-l", f"job-name={name}", "--wait=false")
    wait_until(
        lambda: not stack.objects("pods", "-n", "burst", "-l", f"job-name={name}"),
        what="the end of the burst's pods",
        timeout_s=60,
        stack=stack,
    )


def burst(
    stack: Stack,
    name: str,
    pods: int,
    *,
    annotations: Mapping[str, str] | None = None,
    limits: Mapping[str, str] | None = None,
) -> None:
    """Submit a Job of so many pods at once."""
    manifest = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "burst"},
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "template": {
                "metadata": {
                    "annotations": {"sandbox.kaiweb/duration": "1h", **(annotations or {})}
                },
                "spec": {
                    "schedulerName": "kai-scheduler",
                    "restartPolicy": "Never",
                    "containers": [
                        {
                            "name": "main",
                            "image": "example.test/x:1",
                            "resources": {"limits": dict(limits or {})},
                        }
                    ],
                },
            },
        },
    }
    stack.kubectl("apply", "-f", "-", stdin=json.dumps(manifest))

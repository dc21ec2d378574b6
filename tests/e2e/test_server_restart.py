"""The API server itself dies and comes back: first it is away, then it refuses, then it is busy, then it is there."""

from __future__ import annotations

import pytest

from tests.integration.manifests import pod_yaml
from tests.integration.stack import Stack, wait_until
from tests.real_cluster.cluster import RealCluster

pytestmark = [pytest.mark.e2e, pytest.mark.integration, pytest.mark.timeout(300)]

NAMESPACE = '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kai-test"}}'
FOUND_AGAIN_S = 60.0


def test_work_goes_on_after_the_api_server_was_killed(stack: Stack, cluster: RealCluster):
    stack.kubectl("apply", "-f", "-", stdin=NAMESPACE)
    before = stack.pids()
    cluster.restart()
    manifest = pod_yaml("survivor", queue="default-queue")
    wait_until(
        lambda: "pod/survivor" in stack.kubectl("apply", "-f", "-", stdin=manifest, check=False),
        what="a server that takes pods again",
        stack=stack,
    )
    wait_until(
        lambda: (
            stack.objects("pod", "survivor", "-n", "kai-test")[0]["status"].get("phase")
            == "Running"
        ),
        what="a running pod after the restart",
        timeout_s=FOUND_AGAIN_S,
        stack=stack,
    )
    assert stack.pids() == before, "a process ended instead of waiting for the server"
    checked = stack.kaiweb("check_cluster")
    assert checked.returncode == 0, checked.stdout + checked.stderr

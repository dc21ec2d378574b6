"""Workloads of real operators run from manifest to done on a real control plane with the chart installed.

`make test` runs those whose operator is built for it; `make operators` builds and runs all four.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import pytest

from tests.deploy.whole import WholeInstallation
from tests.real_cluster.build import ClusterUnavailableError, ensure_program
from tests.real_cluster.operators.run import running_operator
from tests.real_cluster.operators.workloads import Workload, workloads

pytestmark = [pytest.mark.e2e, pytest.mark.integration, pytest.mark.timeout(600)]

WITHIN_S = 180.0
RUN_ALL = "KAIWEB_OPERATORS"


@pytest.mark.parametrize("name", workloads())
def test_a_workload_of_a_real_operator_runs_from_manifest_to_done(
    whole: WholeInstallation, name: str
):
    workload = workloads()[name]
    operator = workload.operator
    if not (operator.is_quick or os.environ.get(RUN_ALL) == "all"):
        pytest.skip(f"{name} is run by make operators")
    try:
        ensure_program(operator.program)
    except ClusterUnavailableError as error:
        pytest.skip(f"no {name} here: {error}")
    namespace = f"operator-{name}"
    whole.kubectl("create", "namespace", namespace)
    try:
        with running_operator(whole.cluster, operator, namespace):
            submit(whole, workload, namespace)
            whole.installed.await_that(
                lambda: set(workload.conditions) <= conditions(whole, workload, namespace),
                f"{' and '.join(workload.conditions)} of {workload.name}",
                WITHIN_S,
            )
            expect_gangs(whole, workload, namespace)
            whole.kubectl("delete", workload.resource, workload.name, "-n", namespace)
            whole.installed.await_that(
                lambda: not whole.installed.objects("pods,podgroups", "-n", namespace),
                f"the end of what belongs to {workload.name}",
                WITHIN_S,
            )
    finally:
        whole.kubectl("delete", "namespace", namespace, "--wait=false")


def submit(whole: WholeInstallation, workload: Workload, namespace: str) -> None:
    """Create the workload with kubectl, as soon as the API server and the operator's webhooks take it."""
    file = whole.cluster.folder / f"{workload.name}.json"
    file.write_text(json.dumps(workload.manifest))
    refusals = []

    def is_taken() -> bool:
        try:
            whole.kubectl("apply", "-n", namespace, "-f", str(file))
        except AssertionError as error:
            refusals.append(str(error))
            return False
        return True

    try:
        whole.installed.await_that(is_taken, f"{workload.name} to be taken", 60.0)
    except AssertionError as error:
        raise AssertionError(refusals[-1]) from error


def conditions(whole: WholeInstallation, workload: Workload, namespace: str) -> set[str]:
    """Return the types of conditions that the operator has written; the last is True, an older one may be False."""
    (body,) = whole.installed.objects(workload.resource, workload.name, "-n", namespace)
    entries: Sequence[dict[str, Any]] = body.get("status", {}).get("conditions", ())
    is_done = any(
        entry["type"] == workload.conditions[-1] and entry["status"] == "True" for entry in entries
    )
    return {entry["type"] for entry in entries} if is_done else set()


def expect_gangs(whole: WholeInstallation, workload: Workload, namespace: str) -> None:
    """Check that the pods ran on nodes, in the gangs that the workload asks for."""
    groups = whole.installed.objects("podgroups", "-n", namespace)
    assert sorted(minimum(group["spec"]) for group in groups) == list(workload.gangs)
    pods = whole.installed.objects("pods", "-n", namespace)
    assert len(pods) == workload.pods
    of_groups = {pod["metadata"]["annotations"]["pod-group-name"] for pod in pods}
    assert of_groups == {group["metadata"]["name"] for group in groups}
    for pod in pods:
        assert pod["spec"]["nodeName"], pod["metadata"]["name"]
        states = [
            state
            for status in pod["status"]["containerStatuses"]
            for state in status["state"].values()
        ]
        assert all("startedAt" in state for state in states), states


def minimum(spec: dict[str, Any]) -> int:
    """Return how many pods of a group must run together: its own number, or that of its subgroups with pods."""
    parts = (part.get("minMember", 0) for part in spec.get("subGroups", ()))
    return int(spec.get("minMember") or sum(parts))

"""Workloads of real operators run from manifest to done on a real control plane with the chart installed.

`make test` runs those whose operator is built for it; `make operators` builds and runs all four.
"""

from __future__ import annotations

import os

import pytest

from tests.deploy.whole import WholeInstallation
from tests.real_cluster.build import ClusterUnavailableError, ensure_program
from tests.real_cluster.operators.checks import expect_done, expect_end
from tests.real_cluster.operators.run import running_operator
from tests.real_cluster.operators.workloads import workloads

pytestmark = [pytest.mark.e2e, pytest.mark.integration, pytest.mark.timeout(600)]

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
    await_that = whole.installed.await_that
    try:
        with running_operator(whole.cluster, operator, namespace):
            expect_done(whole.cluster, workload, namespace, await_that)
            expect_end(whole.cluster, workload, namespace, await_that)
    finally:
        whole.kubectl("delete", "namespace", namespace, "--wait=false")

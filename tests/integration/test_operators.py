"""Real operators, built with controller-runtime from their Go modules, work against the embedded API server.

Each runs as its own service account with its own roles, elects a leader and is asked by its webhooks. JobSet is built
for `make test`; the others are run where `make operators` has built them.
"""

from __future__ import annotations

import copy
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.integration.stack import Stack, wait_until
from tests.real_cluster.installation import run_kubectl
from tests.real_cluster.operators.checks import (
    AwaitThat,
    conditions,
    expect_done,
    expect_end,
    objects,
    submit,
)
from tests.real_cluster.operators.programs import JOBSET
from tests.real_cluster.operators.run import Running, running_operator, running_replica
from tests.real_cluster.operators.workloads import failing_jobset, workloads

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """The embedded cluster of an installation, as programs beside it see it."""

    kubeconfig: Path
    folder: Path
    await_that: AwaitThat


@pytest.fixture(scope="module")
def cluster(stack: Stack) -> Embedded:
    def await_that(holds: Callable[[], Any], what: str, timeout_s: float) -> Any:
        return wait_until(holds, what=what, timeout_s=timeout_s, stack=stack)

    folder = stack.home / "operators"
    folder.mkdir()
    return Embedded(kubeconfig=stack.kubeconfig, folder=folder, await_that=await_that)


@pytest.fixture(scope="module")
def jobset(cluster: Embedded) -> Iterator[Running]:
    """JobSet's operator at work in one namespace, or a skip."""
    with _operator_or_skip(cluster, "jobset") as running:
        yield running


@contextmanager
def _operator_or_skip(cluster: Embedded, name: str) -> Iterator[Running]:
    operator = workloads()[name].operator
    if operator.find() is None:
        pytest.skip(f"the operator {name} is not built (make operators builds it with Go)")
    run_kubectl(cluster, "create", "namespace", namespace_of(name))
    with running_operator(cluster, operator, namespace_of(name)) as running:
        yield running


def namespace_of(name: str) -> str:
    """Return the namespace in which the webhooks of an operator are asked."""
    return f"operator-{name}"


def test_a_jobset_runs_from_manifest_to_done_and_leaves_nothing(cluster: Embedded, jobset: Running):
    workload, namespace = workloads()["jobset"], namespace_of("jobset")
    expect_done(cluster, workload, namespace, cluster.await_that)
    events = objects(cluster, "events", "-n", namespace)
    assert "AllJobsCompleted" in {event["reason"] for event in events}
    expect_end(cluster, workload, namespace, cluster.await_that)


@pytest.mark.parametrize("name", sorted(workloads().keys() - {"jobset"}))
def test_workloads_of_other_operators_run_in_gangs_and_leave_nothing(cluster: Embedded, name: str):
    workload, namespace = workloads()[name], namespace_of(name)
    with _operator_or_skip(cluster, name):
        expect_done(cluster, workload, namespace, cluster.await_that)
        expect_end(cluster, workload, namespace, cluster.await_that)


def test_a_jobset_whose_pod_fails_starts_again_with_new_jobs_and_then_gives_up(
    cluster: Embedded, jobset: Running
):
    """The operator deletes the Jobs of an attempt in the foreground and creates those of the next."""
    workload = failing_jobset()
    namespace = namespace_of("jobset")
    submit(cluster, workload, namespace, cluster.await_that)
    cluster.await_that(
        lambda: conditions(cluster, workload, namespace), "the end of the failing JobSet", 90.0
    )
    (body,) = objects(cluster, workload.resource, workload.name, "-n", namespace)
    assert (body["status"]["restarts"], body["status"]["terminalState"]) == (1, "Failed")
    attempts = {
        job["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"]
        for job in objects(cluster, "jobs", "-n", namespace)
    }
    assert attempts == {"1"}
    expect_end(cluster, workload, namespace, cluster.await_that)


def test_the_webhook_of_the_operator_refuses_in_its_own_words(cluster: Embedded, jobset: Running):
    manifest = copy.deepcopy(workloads()["jobset"].manifest)
    manifest["spec"]["successPolicy"] = {"operator": "All", "targetReplicatedJobs": ["nobody"]}
    file = cluster.folder / "refused.json"
    file.write_text(json.dumps(manifest))
    with pytest.raises(AssertionError) as refusal:
        run_kubectl(cluster, "create", "-n", namespace_of("jobset"), "-f", str(file))
    assert 'admission webhook "vjobset.kb.io" denied the request' in str(refusal.value)


def test_the_metrics_of_the_operator_ask_the_cluster_who_may_read_them(
    cluster: Embedded, jobset: Running
):
    """It posts a TokenReview and a SubjectAccessReview: its own account may read, another may not."""
    assert "controller_runtime_reconcile_total" in _metrics(jobset, _token(cluster, JOBSET.account))
    # The status of the review of an unknown token has an error, for which controller-runtime answers 500, not 401.
    for token, code in ((_token(cluster, "default"), 403), ("no-token", 500)):
        with pytest.raises(urllib.error.HTTPError) as refusal:
            _metrics(jobset, token)
        assert refusal.value.code == code
        refusal.value.close()


def test_a_second_replica_leads_when_the_first_is_killed(cluster: Embedded, jobset: Running):
    """The last test of JobSet, for it ends the process: the second takes the lease that has run out."""
    before = _lease(cluster)
    with running_replica(cluster, jobset.second()):
        assert _lease(cluster)["holderIdentity"] == before["holderIdentity"]
        jobset.process.kill()
        cluster.await_that(
            lambda: _lease(cluster)["holderIdentity"] != before["holderIdentity"],
            "the lease of the second replica",
            60.0,
        )
    assert _lease(cluster)["leaseTransitions"] == before["leaseTransitions"] + 1


def _lease(cluster: Embedded) -> dict[str, Any]:
    (lease,) = objects(cluster, "leases", "-n", JOBSET.namespace)
    spec: dict[str, Any] = lease["spec"]
    return spec


def _token(cluster: Embedded, account: str) -> str:
    return run_kubectl(cluster, "create", "token", account, "-n", JOBSET.namespace).strip()


def _metrics(running: Running, token: str) -> str:
    context = ssl.create_default_context()
    # The operator makes itself a certificate for its metrics.
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    request = urllib.request.Request(
        f"https://127.0.0.1:{running.replica.ports.metrics}/metrics",
        headers={"Authorization": f"Bearer {token}"},
    )
    with urllib.request.urlopen(request, timeout=10, context=context) as answer:
        return str(answer.read().decode())

"""A bind request is carried out once, its result is reported, and it is retried up to its limit."""

from __future__ import annotations

from functools import partial

import pytest

from binder.errors import ConfigError
from binder.params import DEFAULT_STEPS, BinderParams, StepConfig
from binder.reconcile import retry_delay_s
from binder.steps.table import make_steps
from binder.worker import REPORTERS_IN_BURST
from kube.errors import ConflictError, ServerError, UnauthorizedError
from kube.resources import BINDREQUESTS, NODES
from tests.binder.objects import Harness, pod, request
from tests.fakes.gateway import FakeGateway


def test_plain_pod_is_bound_with_five_writes() -> None:
    harness = Harness().seed(pods=[pod()], requests=[request()]).run()
    assert [call[:2] for call in harness.gateway.calls] == [
        ("bind", "pods"),
        ("patch", "bindrequests"),
        ("patch", "pods"),
        ("create", "events"),
        ("create", "events"),
    ]
    assert harness.pod()["spec"]["nodeName"] == "n1"
    assert harness.pod()["metadata"]["annotations"] == {"received-resource-type": "Regular"}
    assert harness.status() == {"phase": "Succeeded"}
    assert harness.condition("PodBound") == {
        "type": "PodBound",
        "status": "True",
        "reason": "Bound",
        "message": "Pod bound successfully to node n1",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    assert harness.events() == [
        ("Normal", "Bound", "Pod bound successfully to node n1"),
        ("Normal", "Scheduled", "Successfully assigned pod ns/p to node n1 at node-pool default"),
    ]


def test_a_bound_pod_is_announced_with_its_node_pool() -> None:
    labels = {"selected-node": "n1", "kai.scheduler/node-pool": "a100"}
    harness = Harness().seed(pods=[pod()], requests=[request(labels=labels)]).run()
    text = "Successfully assigned pod ns/p to node n1 at node-pool a100"
    assert ("Normal", "Scheduled", text) in harness.events()


def test_binding_sets_the_numa_prediction_as_an_annotation() -> None:
    zones = [{"zone": "node-0", "amount": {"cpu": "8"}}]
    harness = Harness().seed(pods=[pod()], requests=[request(predictedNUMAZones=zones)]).run()
    annotations = harness.pod()["metadata"]["annotations"]
    assert annotations["kai.scheduler/numa-placement-predicted"] == (
        '[{"zone":"node-0","amount":{"cpu":"8"}}]'
    )


def test_request_of_a_bound_pod_succeeds_without_a_binding() -> None:
    harness = Harness().seed(pods=[pod(node="n7")], requests=[request()]).run()
    assert ("bind", "pods", "p") not in harness.gateway.calls
    assert harness.status() == {"phase": "Succeeded"}
    assert harness.condition("PodBound")["message"] == "Pod bound successfully to node n7"


def test_conflict_with_our_own_earlier_binding_is_success() -> None:
    harness = Harness().seed(pods=[pod()], requests=[request()])
    harness.watch()
    harness.gateway.bind(
        "ns", "p", pod_uid="uid-p", node="n1"
    )  # by a binder that died before its report
    harness.work()
    assert harness.status() == {"phase": "Succeeded"}
    assert harness.condition("PodBound")["status"] == "True"


def test_failure_without_backoff_limit_is_final_and_reported() -> None:
    harness = Harness().seed(pods=[pod()], requests=[request()])
    harness.gateway.fail_next("bind", "pods", ServerError("the API server is away"))
    harness.run()
    reason = "failed to bind pod <ns/p> to node <n1>: the API server is away"
    assert harness.status() == {"phase": "Failed", "reason": reason, "failedAttempts": 1}
    assert harness.events() == [
        ("Warning", "BindingError", f"Failed to bind pod ns/p to node n1: {reason}")
    ]
    assert harness.condition("PodBound")["reason"] == "BindingError"
    harness.now += 1000
    harness.worker.sweep()
    harness.run()
    assert harness.status()["failedAttempts"] == 1
    assert "nodeName" not in harness.pod()["spec"]


def test_retries_wait_longer_each_time_and_status_follows_each() -> None:
    harness = Harness().seed(pods=[pod()], requests=[request(backoffLimit=3)])
    harness.gateway.fail_next("bind", "pods", ServerError("first"))
    harness.gateway.fail_next("bind", "pods", ServerError("second"))
    harness.run()
    assert harness.status()["failedAttempts"] == 1
    harness.now = 1.9
    assert harness.worker.sweep() == 0
    harness.now = 2.0
    assert harness.worker.sweep() == 1
    harness.run()
    assert harness.status()["failedAttempts"] == 2
    assert harness.status()["reason"].endswith("second")
    harness.now = 6.0
    assert harness.worker.sweep() == 1
    harness.run()
    assert harness.status() == {"phase": "Succeeded", "failedAttempts": 2}


def test_pause_between_attempts_is_bounded_by_the_parameters() -> None:
    params = BinderParams(base_delay_s=1.0, max_delay_s=60.0)
    assert [retry_delay_s(attempts, params) for attempts in (1, 2, 5, 6, 1000)] == [
        2.0,
        4.0,
        32.0,
        60.0,
        60.0,
    ]


def test_request_for_a_missing_pod_or_node_fails_and_names_it() -> None:
    harness = (
        Harness().seed(pods=[pod("q")], requests=[request("gone"), request("q", node="n9")]).run()
    )
    assert harness.status("gone")["reason"].startswith("pod <ns/gone> was not found")
    assert harness.status("q")["reason"].startswith("node <n9> was not found")


def test_node_that_the_watch_has_not_shown_yet_is_read_from_the_server() -> None:
    harness = Harness().seed(pods=[pod()], requests=[request(node="n2")])
    harness.watch()
    harness.gateway.seed(NODES, {"metadata": {"name": "n2"}})
    harness.work()
    assert harness.pod()["spec"]["nodeName"] == "n2"


def test_request_of_an_earlier_pod_of_that_name_causes_no_write() -> None:
    harness = Harness().seed(pods=[pod()], requests=[request(owner="earlier")]).run()
    assert harness.gateway.calls == []


def test_request_from_a_worker_that_lost_its_shard_is_refused() -> None:
    harness = Harness().seed(pods=[pod("a"), pod("b"), pod("c")])
    fence = "kaiweb.dev/fence"
    harness.watch()
    for name, number in (("a", "7"), ("b", "8"), ("c", "7")):
        harness.gateway.seed(BINDREQUESTS, request(name, annotations={fence: number}))
    harness.run()
    assert [harness.status(name)["phase"] for name in "abc"] == ["Succeeded", "Succeeded", "Failed"]
    assert (
        harness.status("c")["reason"] == "made by a scheduling worker that no longer owns the shard"
    )
    assert "nodeName" not in harness.pod("c")["spec"]


def test_refused_credentials_end_the_process() -> None:
    harness = Harness().seed(pods=[pod()], requests=[request()])
    harness.gateway.fail_next("bind", "pods", UnauthorizedError("401"))
    harness.run()
    assert [str(error) for error in harness.fatal] == ["401"]


def test_defect_in_one_attempt_is_a_failure_of_that_request_only() -> None:
    harness = Harness().seed(pods=[pod("a"), pod("b")], requests=[request("a"), request("b")])
    harness.gateway.fail_next("bind", "pods", ZeroDivisionError("oops"))  # type: ignore[arg-type]
    harness.run()
    assert harness.status("a")["reason"] == "Internal Error: oops"
    assert harness.status("b") == {"phase": "Succeeded"}


def test_binds_go_before_reports_of_earlier_binds() -> None:
    harness = Harness().seed(pods=[pod("a"), pod("b")], requests=[request("a"), request("b")]).run()
    verbs = [(verb, name) for verb, _, name in harness.gateway.calls if verb in ("bind", "patch")]
    assert verbs[:2] == [("bind", "a"), ("bind", "b")]


def test_in_a_burst_two_reports_are_written_at_a_time_and_the_others_follow_them() -> None:
    worker, most = Harness().worker, 0
    written: list[int] = []

    def report(number: int) -> None:
        nonlocal most
        most = max(most, worker._reporters)
        if number == 0:  # those that come while reports are under way
            for other in range(1, 6):
                worker._report_in_turn(partial(report, other))
        written.append(number)

    worker._attempt_at = worker.clock()
    worker._report_in_turn(partial(report, 0))
    assert (written, most, len(worker._set_back)) == ([1, 2, 3, 4, 5, 0], 2, 0)
    worker._reporters = REPORTERS_IN_BURST
    worker._report_in_turn(partial(report, 6))
    assert (written[-1], len(worker._set_back)) == (0, 1)
    worker._reporters = 0
    worker._report_in_turn(partial(report, 7))
    waiting = worker.queue.get_nowait()[2]
    assert waiting is not None
    waiting()
    assert (written[-2:], len(worker._set_back)) == ([7, 6], 0)


def test_request_succeeds_although_its_pod_is_deleted_before_the_report() -> None:
    harness = Harness().seed(pods=[pod()], requests=[request()])
    harness.watch()
    harness.gateway.fail_next("patch", "pods", ConflictError("gone"))
    harness.run()
    assert harness.status() == {"phase": "Succeeded"}


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (StepConfig(name="nothing", priority=1), "failed to get binder plugin nothing"),
        (StepConfig(name="gpusharing", priority=1), 'missing argument "cdiEnabled"'),
        (
            StepConfig(name="gpusharing", priority=1, arguments={"cdiEnabled": "x"}),
            'invalid argument "cdiEnabled"="x"',
        ),
    ],
)
def test_invalid_step_configuration_is_refused_at_start(config: StepConfig, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        make_steps(FakeGateway(), [config])


def test_enabled_steps_run_in_order_of_priority() -> None:
    names = [name for name, _ in make_steps(FakeGateway(), DEFAULT_STEPS)]
    assert names == ["volumebinding", "dynamicresources", "gpusharing"]

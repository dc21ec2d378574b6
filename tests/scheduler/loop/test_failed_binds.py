"""A pod whose bind is refused waits longer each time, holds nobody back, and says why; also over restarts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from kube.errors import ForbiddenError, ServerError
from kube.keys import BIND_FAILURES, BINDS_RESET_AT
from kube.objects.bindrequest import SCALING_UP
from kube.resources import BINDREQUESTS, PODGROUPS, PODS
from queues.workloads.reasons import BIND_FAILING
from tests.binder.objects import Harness as Binder
from tests.fakes.gateway import FakeGateway
from tests.scheduler.load.objects import pod
from tests.scheduler.loop.harness import Harness
from tests.scheduler.loop.harness import harness as open_harness

REFUSAL = 'admission webhook "bindings.example.com" denied the request: not you'


@pytest.fixture
def harness() -> Iterator[Harness]:
    with open_harness() as harness:
        yield harness


def bind_all(gateway: FakeGateway) -> None:
    """Let a binder that was just started carry out every request."""
    Binder(gateway).run()


def memory(gateway: FakeGateway, name: str) -> dict[str, Any]:
    text = gateway.raw(PODS, name, "ns")["metadata"].get("annotations", {}).get(BIND_FAILURES)
    parsed: dict[str, Any] = json.loads(text) if text else {}
    return parsed


def bound(gateway: FakeGateway) -> set[str]:
    pods = {name: gateway.raw(PODS, name, "ns") for name in gateway.names(PODS, "ns")}
    return {name for name, body in pods.items() if body["spec"].get("nodeName")}


def refuse(harness: Harness, name: str) -> None:
    harness.gateway.refuse("bind", "pods", name, ForbiddenError(REFUSAL))


def fail_once(harness: Harness, name: str) -> None:
    harness.cycle()
    refuse(harness, name)
    bind_all(harness.gateway)


def test_everybody_else_is_placed_within_two_cycles_of_a_refused_bind(harness: Harness) -> None:
    harness.cluster(gpus=1).pending("bad")
    refuse(harness, "bad-0")
    harness.cycle()
    bind_all(harness.gateway)
    harness.pending("good")
    for _ in range(2):
        harness.cycle(seconds=1)
        bind_all(harness.gateway)
    assert bound(harness.gateway) == {"good-0"}


def test_a_refused_pod_is_held_back_over_a_restart_of_scheduler_and_binder(
    harness: Harness,
) -> None:
    harness.cluster(gpus=1).pending("bad")
    refuse(harness, "bad-0")
    for _ in range(3):
        harness.cycle(seconds=10)
        bind_all(harness.gateway)
    with open_harness(gateway=harness.gateway) as fresh:
        fresh.now = harness.now
        fresh.cycle(seconds=1)
        assert memory(fresh.gateway, "bad-0")["count"] == 2
        assert fresh.gateway.names(BINDREQUESTS) == []
        fresh.pending("good")
        fresh.cycle(seconds=1)
        bind_all(fresh.gateway)
        assert bound(fresh.gateway) == {"good-0"}


def test_the_pause_doubles_with_each_failure_up_to_five_minutes(harness: Harness) -> None:
    harness.cluster().pending("bad")
    refuse(harness, "bad-0")
    pauses = []
    for _ in range(10):
        harness.cycle(seconds=400)
        bind_all(harness.gateway)
        failed_at = harness.now
        harness.cycle()
        until = datetime.fromisoformat(memory(harness.gateway, "bad-0")["next"])
        pauses.append(round((until - failed_at).total_seconds()))
    assert pauses == [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


def test_a_refused_pod_says_how_often_where_why_and_when_it_is_tried_again(
    harness: Harness,
) -> None:
    harness.cluster().pending("bad")
    fail_once(harness, "bad-0")
    summary = harness.cycle(seconds=1)
    text = (
        "Binding failed once, last to node n0: failed to bind pod <ns/bad-0> to node <n0>: "
        f"{REFUSAL}. The next attempt is made after 2026-01-01T00:00:03Z"
    )
    condition = harness.condition("bad-0")
    assert (condition["status"], condition["reason"], condition["message"]) == (
        "False",
        "BindingError",
        text,
    )
    standing = summary.standings["ns/bad"]
    assert (standing.code, standing.text) == (BIND_FAILING, text)
    assert ("Warning", "BindingError", text) in harness.events("bad-0")
    assert harness.group_conditions("bad")[0]["reasons"] == [
        {"reason": BIND_FAILING, "message": text}
    ]
    assert not [event for event in harness.events("bad-0") if event[1] == "Scheduled"]


def test_each_failed_request_is_counted_once_though_its_removal_fails(harness: Harness) -> None:
    harness.cluster().pending("bad")
    fail_once(harness, "bad-0")
    for _ in range(3):
        harness.gateway.fail_next("delete", "bindrequests", ServerError("busy"))
        harness.cycle(seconds=1)
    assert memory(harness.gateway, "bad-0")["count"] == 1


def test_a_request_stays_until_its_failure_is_written(harness: Harness) -> None:
    harness.cluster().pending("bad")
    fail_once(harness, "bad-0")
    harness.gateway.fail_next("patch", "pods", ServerError("busy"))
    harness.cycle()
    assert harness.gateway.names(BINDREQUESTS) == ["bad-0"]
    harness.cycle(seconds=1)
    assert harness.gateway.names(BINDREQUESTS) == []
    assert memory(harness.gateway, "bad-0")["count"] == 1


def test_removing_the_annotation_lets_the_pod_be_tried_at_once(harness: Harness) -> None:
    harness.cluster().pending("bad")
    fail_once(harness, "bad-0")
    harness.cycle()
    patch = {"metadata": {"annotations": {BIND_FAILURES: None}}}
    harness.gateway.patch(PODS, "bad-0", patch, namespace="ns")
    harness.cycle()
    assert harness.gateway.names(BINDREQUESTS) == ["bad-0"]


def test_a_reset_on_the_pod_group_lets_its_pods_be_tried_at_once(harness: Harness) -> None:
    harness.cluster().pending("bad")
    fail_once(harness, "bad-0")
    harness.cycle(seconds=0.4)
    patch = {"metadata": {"annotations": {BINDS_RESET_AT: "2026-01-01T00:00:01Z"}}}
    harness.gateway.patch(PODGROUPS, "bad", patch, namespace="ns")
    harness.cycle(seconds=0.6)
    assert harness.gateway.names(BINDREQUESTS) == ["bad-0"]
    bind_all(harness.gateway)
    harness.cycle(seconds=1)
    assert memory(harness.gateway, "bad-0")["count"] == 1
    assert harness.gateway.names(BINDREQUESTS) == []


def test_the_command_lists_failed_binds_and_resets_them(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "scheduler.management.commands.failed_binds.gateway", lambda: harness.gateway
    )
    harness.cluster().pending("bad")
    fail_once(harness, "bad-0")
    harness.cycle()
    call_command("failed_binds")
    assert capsys.readouterr().out.startswith("ns/bad-0: Binding failed once, last to node n0: ")
    call_command("failed_binds", "ns/bad-0", "--reset")
    assert memory(harness.gateway, "bad-0") == {}
    with pytest.raises(CommandError, match="no failed bind of ns/bad-0"):
        call_command("failed_binds", "ns/bad-0", "--reset")
    with pytest.raises(CommandError, match="expected names of pods, --node, or --all"):
        call_command("failed_binds", "--reset")


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"count":1}',
        '{"count":0,"last":"2026-01-01T00:00:00Z","next":"2026-01-01T01:00:00Z"}',
        '{"count":1,"last":"2026-01-01T00:00:00Z","next":"2999-01-01T00:00:00Z"}',
    ],
)
def test_an_annotation_that_we_cannot_have_written_holds_nothing(
    harness: Harness, text: str
) -> None:
    harness.cluster().pending("pg", pod={"annotations": {BIND_FAILURES: text}})
    harness.cycle()
    assert harness.gateway.names(BINDREQUESTS) == ["pg-0"]


def test_a_gang_with_a_refused_pod_waits_as_a_whole_and_says_so(harness: Harness) -> None:
    harness.cluster().pending("gang", pods=2)
    for name in ("gang-0", "gang-1"):
        refuse(harness, name)
    harness.cycle()
    bind_all(harness.gateway)
    patch = {"metadata": {"annotations": {BIND_FAILURES: None}}}
    harness.cycle()
    harness.gateway.patch(PODS, "gang-1", patch, namespace="ns")
    summary = harness.cycle()
    assert harness.gateway.names(BINDREQUESTS) == []
    assert summary.standings["ns/gang"].code == BIND_FAILING
    assert "PodScheduled" not in harness.condition("gang-1")


# ------------------------------------------------------------------------------------------ nodes


def broken_node(harness: Harness, pods: int) -> None:
    """Let pods fail on n0, the node that is filled first."""
    harness.cluster(nodes=4, gpus=4)
    for index in range(pods):
        harness.pending(f"p{index}")
        refuse(harness, f"p{index}-0")
    harness.cycle()
    bind_all(harness.gateway)


def test_a_node_on_which_three_pods_failed_rests_for_a_minute(harness: Harness) -> None:
    broken_node(harness, 3)
    summary = harness.cycle()
    assert list(summary.snapshot.binds.resting) == ["n0"]
    by_name = {item.name: item.unschedulable for item in summary.snapshot.cluster.nodes}
    assert by_name == {"n0": True, "n1": False, "n2": False, "n3": False}
    assert harness.cycle(seconds=61).snapshot.binds.resting == {}


def test_the_command_lists_the_node_that_rests_and_lets_it_have_pods_again(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = "scheduler.management.commands.failed_binds"
    monkeypatch.setattr(f"{module}.gateway", lambda: harness.gateway)
    broken_node(harness, 3)
    now = harness.cycle().snapshot.now
    monkeypatch.setattr(f"{module}.time.time", lambda: now)
    call_command("failed_binds")
    assert capsys.readouterr().out.splitlines()[-1] == (
        "node n0: gets no new pods until 2026-01-01T00:01:00Z; failed on it: ns/p0-0, ns/p1-0, ns/p2-0"
    )
    call_command("failed_binds", "--node", "n0", "--reset")
    assert [memory(harness.gateway, f"p{index}-0") for index in range(3)] == [{}, {}, {}]
    summary = harness.cycle()
    assert (summary.snapshot.binds.resting, len(summary.commit.bound)) == ({}, 3)
    with pytest.raises(CommandError, match="no failed bind of pods on node n0"):
        call_command("failed_binds", "--node", "n0")


def test_two_failed_pods_do_not_close_a_node(harness: Harness) -> None:
    broken_node(harness, 2)
    assert harness.cycle().snapshot.binds.resting == {}


def test_a_pod_bound_later_clears_the_node(harness: Harness) -> None:
    broken_node(harness, 3)
    harness.cycle()
    fine = pod("fine", node="n0")
    fine["status"]["conditions"] = [
        {
            "type": "PodScheduled",
            "status": "True",
            "lastTransitionTime": "2026-01-01T00:00:05Z",
        }
    ]
    harness.seed(PODS, fine)
    assert harness.cycle(seconds=6).snapshot.binds.resting == {}


def test_pods_that_failed_on_several_nodes_blame_none(harness: Harness) -> None:
    harness.cluster(nodes=4, gpus=4)
    for index in range(3):
        failures = {
            "count": 2,
            "last": "2026-01-01T00:00:00Z",
            "next": "2026-01-01T00:00:04Z",
            "nodes": ["n1", "n0"],
        }
        harness.pending(f"p{index}", pod={"annotations": {BIND_FAILURES: json.dumps(failures)}})
    assert harness.cycle().snapshot.binds.resting == {}


def test_when_many_nodes_seem_broken_none_rests(harness: Harness) -> None:
    harness.cluster(nodes=4, gpus=4)
    for index in range(6):
        failures = {
            "count": 1,
            "last": "2026-01-01T00:00:00Z",
            "next": "2026-01-01T00:00:02Z",
            "nodes": [f"n{index % 2}"],
        }
        harness.pending(f"p{index}", pod={"annotations": {BIND_FAILURES: json.dumps(failures)}})
    assert harness.cycle().snapshot.binds.resting == {}


def test_the_only_node_never_rests(harness: Harness) -> None:
    harness.cluster(nodes=1)
    for index in range(3):
        harness.pending(f"p{index}")
        refuse(harness, f"p{index}-0")
    harness.cycle()
    bind_all(harness.gateway)
    assert harness.cycle().snapshot.binds.resting == {}


def test_a_bind_refused_while_the_cluster_scales_up_is_tried_again_in_the_next_cycle(
    harness: Harness,
) -> None:
    harness.cluster(gpus=1).pending("part")
    for _ in range(3):
        harness.cycle(seconds=1)
        (name,) = harness.gateway.names(BINDREQUESTS, "ns")
        status = {"phase": "Failed", "failedAttempts": 1, "reason": f"ns/part-0: {SCALING_UP}"}
        harness.gateway.patch(BINDREQUESTS, name, {"status": status}, namespace="ns", sub="status")
    harness.cycle(seconds=1)
    assert memory(harness.gateway, "part-0") == {}
    bind_all(harness.gateway)
    assert bound(harness.gateway) == {"part-0"}

"""The command: every check is made, each finding says what to do, a fault is exit code 1."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command

from kaiweb.doctor.examination import CHECKS, examine, has_fault
from kaiweb.doctor.finding import ClusterContext, Finding, fault, warning
from kaiweb.doctor.surroundings import check_clock, skew_s
from kaiweb.management.commands import doctor
from kaiweb.terminal.program import is_for_terminal
from kube.errors import ForbiddenError, ServerError
from tests.fakes.gateway import FakeGateway
from tests.kaiweb.doctor.cluster import NOW, ReviewingGateway, context, lines


def test_a_check_that_may_not_be_made_is_noted_and_the_next_is_made() -> None:
    def refused(_context: ClusterContext) -> Iterator[Finding]:
        raise ForbiddenError("may not list leases", status=403)
        yield

    def broken(_context: ClusterContext) -> Iterator[Finding]:
        yield warning("queue a", "first", "edit")
        raise ServerError("no answer", status=500)

    results = list(examine(context(FakeGateway()), {"a": refused, "b": broken}))
    texts = [[f"{f.severity} {f.text}" for f in result.findings] for result in results]
    assert texts == [
        ["note cannot be made: may not list leases"],
        ["warning first", "fault cannot be made: no answer"],
    ]
    assert has_fault(results)


def test_our_clock_is_compared_with_that_of_the_api_server() -> None:
    gateway = ReviewingGateway()
    assert lines(check_clock, gateway) == []
    gateway.clock = NOW - timedelta(seconds=30)
    (behind,) = lines(check_clock, gateway)
    assert behind == "warning: clock: ours and that of the API server are 29 s apart"
    gateway.clock = NOW + timedelta(minutes=10)
    (ahead,) = lines(check_clock, gateway)
    assert ahead == "fault: clock: ours and that of the API server are 600 s apart"


def test_a_slow_answer_is_no_skew() -> None:
    assert skew_s(NOW, NOW + timedelta(seconds=4), NOW + timedelta(seconds=9)) == 0.0


@pytest.fixture
def one_check(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(_context: ClusterContext) -> Iterator[Finding]:
        yield fault("queue lost", "is ignored", "kubectl edit queue lost")

    monkeypatch.setattr(doctor, "gateway", FakeGateway)
    monkeypatch.setattr(doctor, "CHECKS", {"queues": check})


@pytest.mark.usefixtures("one_check")
def test_a_fault_is_printed_with_its_remedy_and_ends_with_1() -> None:
    out = StringIO()
    with pytest.raises(SystemExit) as end:
        call_command("doctor", stdout=out)
    assert end.value.code == 1
    assert out.getvalue() == "fault    queue lost is ignored\n         -> kubectl edit queue lost\n"


@pytest.mark.usefixtures("one_check")
def test_findings_are_printed_as_json() -> None:
    out = StringIO()
    with pytest.raises(SystemExit):
        call_command("doctor", "--output", "json", stdout=out)
    assert json.loads(out.getvalue()) == [
        {
            "check": "queues",
            "findings": [
                {
                    "severity": "fault",
                    "subject": "queue lost",
                    "text": "is ignored",
                    "remedy": "kubectl edit queue lost",
                }
            ],
        }
    ]


def test_every_point_of_a_change_from_kai_has_a_check() -> None:
    assert list(CHECKS) == [
        "definitions", "versions", "config", "rights", "other schedulers", "leases", "writers",
        "shards", "clock", "webhooks", "webhook order", "queues", "pods", "bind requests",
        "reservations", "stores",
    ]  # fmt: skip


def test_the_flag_chooses_this_command_and_not_that_of_the_terminal() -> None:
    assert is_for_terminal(["doctor", "-o", "json"])
    assert not is_for_terminal(["doctor", "--cluster"])

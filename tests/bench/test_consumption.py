"""What a pod costs is counted by process and kind of request."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.bench.consumption import Consumption
from tests.bench.counting.sitecustomize import kind_of_request
from tests.bench.waits import percentile


@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [
        ("GET", "/api/v1/namespaces", "list namespaces"),
        ("GET", "/api/v1/namespaces/a", "get namespaces"),
        ("GET", "/apis/scheduling.run.ai", "list discovery"),
        ("POST", "/api/v1/namespaces/a/pods/p/binding", "create pods/binding"),
        ("PATCH", "/apis/scheduling.run.ai/v2/queues/q/status", "patch queues/status"),
        ("DELETE", "/api/v1/namespaces/a/pods/p?dryRun=All", "delete pods"),
    ],
)
def test_a_request_is_named_by_verb_and_resource(method: str, path: str, kind: str) -> None:
    assert kind_of_request(method, path) == kind


def test_only_what_was_used_since_the_earlier_moment_is_shown_for_each_pod() -> None:
    before = Consumption(Counter({("binding", "create pods/binding"): 5}), {"binding": 1.0})
    after = Consumption(
        Counter({("binding", "create pods/binding"): 15, ("client", "create pods"): 10}),
        {"binding": 1.02, "mirror": 0.03},
    )
    assert list(after.since(before).lines(10)) == [
        "  a pod costs 2.0 requests and 5.0 ms of processor time:",
        "    mirror                 3.00 ms   0.00 requests  ",
        "    binding                2.00 ms   1.00 requests  create pods/binding 1.00",
        "    client                 0.00 ms   1.00 requests  create pods 1.00",
    ]


def test_a_percentile_is_a_value_that_was_measured() -> None:
    values = [float(number) for number in range(1, 21)]
    assert (percentile(values, 0.5), percentile(values, 0.95), percentile(values, 1.0)) == (
        10.0,
        19.0,
        20.0,
    )

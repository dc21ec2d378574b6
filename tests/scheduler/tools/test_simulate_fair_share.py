"""The fair-share simulator speaks KAI's JSON and refuses what it cannot divide."""

from __future__ import annotations

import pytest

from scheduler.tools.simulate.fair_share import SimulationInputError, simulate_fair_share


def queue(uid: str, **gpu: float) -> dict:
    return {"uid": uid, "name": uid, "priority": 0, "resourceShare": {"gpu": gpu}}


def test_surplus_follows_weights() -> None:
    shares = simulate_fair_share(
        {
            "totalResource": {"GPU": 100, "CPU": 16000, "Memory": 100000},
            "queues": [
                queue("a", deserved=10, request=100, overQuotaWeight=3),
                queue("b", deserved=10, request=100, overQuotaWeight=1),
            ],
        }
    )
    assert shares == {
        "a": {"gpu": 70.0, "cpu": 16000.0, "memory": 100000.0},
        "b": {"gpu": 30.0, "cpu": 16000.0, "memory": 100000.0},
    }


def test_children_divide_what_their_parent_got_and_age_settles_a_remainder() -> None:
    young = queue("young", overQuotaWeight=1) | {"creationTimestamp": "2026-01-02T00:00:00Z"}
    old = queue("z-old", overQuotaWeight=1) | {"creationTimestamp": "2026-01-01T00:00:00Z"}
    for child in (young, old):
        child["parentQueue"] = "top"
    shares = simulate_fair_share(
        {"totalResource": {"GPU": 9}, "queues": [queue("top", deserved=5), young, old]}
    )
    assert {name: share["gpu"] for name, share in shares.items()} == {
        "top": 9.0,
        "young": 4.0,
        "z-old": 5.0,
    }


def test_past_usage_counts_with_k() -> None:
    queues = [
        queue("a", request=16, absoluteUsage=0.6),
        queue("b", request=16, absoluteUsage=0),
    ]
    shares = simulate_fair_share({"totalResource": {"GPU": 16}, "queues": queues, "kValue": 1})
    assert (shares["a"]["gpu"], shares["b"]["gpu"]) == (5.0, 11.0)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "expected an object, got list"),
        ({"queues": [{}]}, "expected a queue with a uid"),
        ({"queues": [queue("a"), queue("a")]}, "queue 'a' is there twice"),
        ({"queues": [queue("a") | {"parentQueue": "b"}]}, "its parent 'b' is not there"),
        ({"queues": [queue("a", deserved="lots")]}, "expected a number for deserved, got 'lots'"),
        ({"queues": [queue("a") | {"parentQueue": "a"}]}, "a parent cycle"),
        ({"queues": [queue("a") | {"creationTimestamp": "noon"}]}, "RFC 3339"),
    ],
)
def test_bad_input_is_refused_by_name(document, message) -> None:
    with pytest.raises(SimulationInputError, match=message):
        simulate_fair_share(document)


def test_no_queues_share_nothing() -> None:
    assert simulate_fair_share({"totalResource": {"GPU": 1}, "queues": []}) == {}

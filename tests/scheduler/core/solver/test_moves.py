"""Proofs that end a search before it tries what there is: sizes that cannot be moved, and places nobody can clear."""

from __future__ import annotations

import random

import pytest

from scheduler.core.cluster.constraints import (
    Expression,
    LabelSelector,
    Operator,
    PodTerm,
    TaskConstraints,
)
from scheduler.core.decisions import ActionName, Evict, Nominate
from scheduler.core.solver import search
from scheduler.core.solver.moves import MovingRoom
from tests.builders import ClusterBuilder, cluster, request

CONSOLIDATION, RECLAIM = ActionName.CONSOLIDATION, ActionName.RECLAIM


def simulated(result) -> int:
    return sum(report.search.simulated for report in result.reports)


def test_large_pods_that_cannot_share_a_node_are_not_moved() -> None:
    """Each node has one GPU free, eight in all, but no node can take a second pod of five."""
    built = cluster().nodes(8, 8).queue("a")
    for node in range(8):
        built.running(f"five{node}", [f"n{node}"], gpus=5)
        built.running(f"two{node}", [f"n{node}"], gpus=2)
    result = built.pending("want", gpus=8).cycle(CONSOLIDATION)
    assert result.decisions == []
    assert simulated(result) == 0


def test_pods_that_take_most_cores_of_a_node_are_not_moved() -> None:
    built = cluster().nodes(3, 8, cpu=10).queue("a")
    for node in range(3):
        built.running(f"r{node}", [f"n{node}"], request=request(4, cpu=6))
    result = built.pending("want", request=request(1, cpu=7)).cycle(CONSOLIDATION)
    assert result.decisions == []
    assert simulated(result) == 0


def test_a_pod_is_moved_where_sizes_fit_together() -> None:
    built = cluster().nodes(2, 8).queue("a")
    built.running("three", ["n0"], gpus=3).running("five", ["n1"], gpus=5)
    result = built.pending("want", gpus=8).cycle(CONSOLIDATION)
    assert len([one for one in result.decisions if isinstance(one, Evict)]) == 1


def test_a_pod_that_keeps_away_from_those_that_must_stay_is_refused_after_a_few_trials() -> None:
    selector = LabelSelector((Expression("app", Operator.IN, ("x",)),))
    apart = TaskConstraints(pod_anti_affinity=(PodTerm("rack", selector),))
    options = {"constraints": apart, "task": {"labels": {"app": "x"}}}
    built = cluster().queue("a", 0).queue("b", 40)
    for node in range(5):
        built.node(f"n{node}", 8, labels={"rack": f"r{node}"})
        built.running(f"stay{node}", [f"n{node}"], queue="a", gpus=0, preemptible=False, **options)
        for number in range(8):
            built.running(f"r{node}-{number}", [f"n{node}"], queue="a")
    result = built.pending("want", queue="b", gpus=2, **options).cycle(RECLAIM)
    assert result.decisions == []
    assert simulated(result) == search.PATIENCE + 1


@pytest.mark.parametrize("action", [CONSOLIDATION, RECLAIM])
@pytest.mark.parametrize("seed", range(12))
def test_the_proofs_change_no_decision(action, seed, monkeypatch) -> None:
    with_proofs = decided(crowded(seed).cycle(action))
    monkeypatch.setattr(MovingRoom, "may_hold", lambda *_: True)
    monkeypatch.setattr(search.Search, "_may_place_first", lambda *_: True)
    assert decided(crowded(seed).cycle(action)) == with_proofs


def crowded(seed: int) -> ClusterBuilder:
    """Return full nodes with pods of many sizes, some of which must stay, and askers of many sizes."""
    draw = random.Random(seed)
    built = cluster().queue("a", 8).queue("b", 24)
    for node in range(4):
        built.node(f"n{node}", 8, cpu=20)
        left = 8
        while left > 1:
            gpus = draw.randint(1, left)
            built.running(
                f"r{node}-{left}",
                [f"n{node}"],
                queue="a",
                request=request(gpus, cpu=draw.choice((0.5, 1, 2.5))),
                preemptible=draw.random() < 0.8,
            )
            left -= gpus
    for number in range(4):
        size = request(draw.randint(1, 8), cpu=draw.choice((1, 4, 11)))
        built.pending(f"want{number}", queue="b", request=size)
    return built


def decided(result) -> list[tuple[str, str]]:
    return [
        (decision.task.name, decision.node if isinstance(decision, Nominate) else "")
        for decision in result.decisions
        if isinstance(decision, Evict | Nominate)
    ]

"""The exchange of one task for one victim decides and reports what the search would."""

from __future__ import annotations

import random
from math import inf
from typing import Any

import pytest

from scheduler.core.cluster.constraints import TaskConstraints
from scheduler.core.cluster.disruption_limits import DisruptionLimit, LimitKind
from scheduler.core.config import SchedulerConfig
from scheduler.core.decisions import ActionName, Evict, Nominate
from scheduler.core.session.session import Session
from scheduler.core.solver.exchange import Exchange
from tests.builders import ClusterBuilder, cluster, request


class _Counter:
    """Counts how many searches the exchange has replaced."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        run = Exchange.run

        def counted(exchange: Exchange, *arguments: Any) -> Any:
            outcome = run(exchange, *arguments)
            self.count += outcome is not None
            return outcome

        monkeypatch.setattr(Exchange, "run", counted)


def _random_cluster(rng: random.Random) -> ClusterBuilder:
    """Build a full cluster of pods of a few sizes in nested queues, and pending pods, most of them alone."""
    built = cluster().queue("x", rng.randint(0, 8)).queue("y", 8)
    for leaf in ("x1", "x2"):
        built.queue(leaf, rng.randint(0, 6), parent="x", weight=rng.randint(0, 2))
    built.queue("y1", rng.choice([2, 6, inf]), parent="y", limit=rng.choice([4, inf, inf]))
    built.queue("z", rng.randint(2, 10), priority=rng.choice([100, 200]))
    sizes = rng.choice([(1,), (1, 2), (0, 0.5, 1, 2, 4)])
    mig = {"nvidia.com/mig-1g.5gb": 2.0} if rng.random() < 0.2 else None
    for number in range(3):
        free = 4.0
        built.node(f"n{number}", 4, cpu=rng.choice([6, 100]), labels={"half": str(number % 2)})
        while free and rng.random() < 0.97:
            gpus = min(rng.choice([size for size in sizes if size >= 1]), free)
            free -= gpus
            built.running(
                f"r{number}-{free}",
                [f"n{number}"],
                gpus=gpus,
                queue=rng.choice(["x1", "x2", "y1", "z"]),
                priority=rng.choice([50, 50, 60, 100]),
            )
    if mig:
        built.node("mig", 0, resources=mig)
    for number in range(rng.randint(1, 8)):
        selector = {"half": "1"} if rng.random() < 0.15 else {}
        built.pending(
            f"p{number}",
            rng.choice([1, 1, 1, 1, 2]),
            request=request(rng.choice(sizes), cpu=rng.choice([1, 1, 4])),
            queue=rng.choice(["x1", "x2", "y1", "z"]),
            priority=rng.choice([50, 60, 75, 100]),
            constraints=TaskConstraints(node_selector=tuple(selector.items())),
        )
    return built


def _decided(session: Session) -> tuple[list[object], list[object], object]:
    """Return decisions, reports without times, and why others wait."""
    reports: list[object] = [
        (
            report.action,
            report.attempted,
            report.succeeded,
            report.search.results,
            report.search.emitted,
            report.search.filtered,
            [trial[:2] for trial in report.search.trials],
        )
        for report in session.reports
    ]
    return list(session.decisions), reports, session.fit.pod_groups


def test_any_cluster_is_decided_as_by_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(11)
    clusters = [_random_cluster(rng) for _ in range(50)]
    configs = [SchedulerConfig(allow_consolidating_reclaim=rng.random() < 0.5) for _ in clusters]
    with monkeypatch.context() as patched:
        exchanges = _Counter(patched)
        fast = [
            _decided(built.cycle(config=config))
            for built, config in zip(clusters, configs, strict=True)
        ]
    assert exchanges.count > 40
    monkeypatch.setattr(Exchange, "run", lambda *_: None)
    for built, config, decided in zip(clusters, configs, fast, strict=True):
        assert decided == _decided(built.cycle(config=config))


def _full_cluster() -> ClusterBuilder:
    """Build two nodes of two GPUs, all held by a queue without a right to them; `late` should have them."""
    built = cluster().nodes(2, 2).queue("early", 0, weight=0).queue("late", 4)
    for number in range(4):
        built.running(f"r{number}", [f"n{number % 2}"], queue="early")
    return built


def test_each_task_takes_the_place_of_the_newest_victim(monkeypatch: pytest.MonkeyPatch) -> None:
    exchanges = _Counter(monkeypatch)
    built = _full_cluster().pending("p0", queue="late").pending("p1", queue="late")
    decisions = built.cycle(ActionName.RECLAIM).decisions
    assert [
        (type(decision), decision.task.name, decision.node)
        for decision in decisions
        if isinstance(decision, Evict | Nominate)
    ] == [
        (Evict, "r3-0", "n1"),
        (Nominate, "p0-0", "n1"),
        (Evict, "r2-0", "n0"),
        (Nominate, "p1-0", "n0"),
    ]
    assert exchanges.count == 2


def test_a_search_decides_where_disruptions_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    exchanges = _Counter(monkeypatch)
    limit = DisruptionLimit(
        kind=LimitKind.BUDGET, subject="pdb", allowed=0, pods=frozenset({"r3-0"})
    )
    built = _full_cluster().pending("p0", queue="late").having(disruption_limits=(limit,))
    decisions = built.cycle(ActionName.RECLAIM).decisions
    assert [decision.task.name for decision in decisions] == ["r2-0", "p0-0"]
    assert exchanges.count == 0

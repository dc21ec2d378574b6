"""The rest of a sequence of victims, sorted at once, is what finding them one by one gives."""

from __future__ import annotations

import random
from math import inf

import numpy as np
import pytest

from scheduler.core.arrays import NO_AMOUNTS
from scheduler.core.session.session import Session
from scheduler.core.solver import victims
from scheduler.core.solver.merge import merged
from scheduler.core.solver.victims import Batch, VictimPool, VictimSequence
from tests.builders import ClusterBuilder, cluster, request

WHOLE_PARTS = (1.0, 2.0)
PARTS = (0.3, 0.5, 1.0, 2.0)


def _random_cluster(rng: random.Random) -> ClusterBuilder:
    """Build queues in three levels with gangs on two nodes, of whole GPUs or of parts too."""
    built = cluster().nodes(2, 400, cpu=1000, pods=1000)
    leaves = ["z"]
    built.queue("z", rng.randint(0, 20), priority=rng.choice([100, 100, 200]))
    for top in "xy":
        built.queue(top, rng.randint(0, 30), limit=rng.choice([inf, 60]))
        for number in range(rng.randint(1, 3)):
            leaf = f"{top}{number}"
            leaves.append(leaf)
            built.queue(leaf, rng.choice([0, 5, 10]), parent=top, weight=rng.randint(0, 2))
    sizes = rng.choice([WHOLE_PARTS, PARTS])
    for number in range(rng.randint(0, 60)):
        gpus = rng.choice(sizes)
        nodes = [f"n{rng.randint(0, 1)}" for _ in range(rng.choice([1, 1, 2]))]
        built.running(
            f"r{number}",
            nodes,
            request=request(gpus, cpu=rng.choice([1, 20])),
            queue=rng.choice(leaves),
            priority=rng.choice([50, 60]),
            gpu_groups=[(f"g{number}-{n}",) if gpus < 1 else () for n in range(len(nodes))],
        )
    return built


def _sequence(session: Session, *, most_groups: float = inf) -> VictimSequence:
    pool = VictimPool(session)
    return VictimSequence(
        session, pool, pool.leaves, lambda view: view.pod_group % 7 != 3, most_groups=most_groups
    )


def _walked(session: Session, *, most_groups: float = inf) -> list[Batch]:
    """Return all batches, found one by one."""
    sequence = _sequence(session, most_groups=most_groups)
    sequence._walked = -1
    return sequence.all()


@pytest.fixture(autouse=True)
def _sorts_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(victims, "FEW", 3)


def test_the_order_is_that_of_finding_them_one_by_one() -> None:
    rng = random.Random(3)
    sorted_at_once = 0
    for _ in range(60):
        session = _random_cluster(rng).session()
        sequence = _sequence(session)
        assert sequence.all() == _walked(session)
        sorted_at_once += not sequence._leaves
    assert sorted_at_once > 50


def test_a_bound_on_pod_groups_is_kept() -> None:
    rng = random.Random(4)
    for most in (2, 4, 9, 30):
        session = _random_cluster(rng).session()
        batches = _sequence(session, most_groups=most).all()
        assert batches == _walked(session, most_groups=most)


def test_a_pod_group_that_keeps_a_rest_competes_with_the_others_for_it() -> None:
    built = cluster().nodes(1, 100).queue("a", 0).queue("b", 0)
    for number in range(8):
        built.running(f"a{number}", ["n0"] * 3, queue="a", minimum=1)
        built.running(f"b{number}", ["n0"] * 2, queue="b")
    session = built.session()
    batches = _sequence(session).all()
    assert batches == _walked(session)
    assert [batch.is_rest for batch in batches].count(False) == 14


def test_siblings_that_cannot_be_sorted_are_left_alone() -> None:
    session = cluster().nodes(1, 8).queue("a").queue("b").running("r", ["n0"], queue="a").session()

    class Circle:
        """Comes before everything."""

        def __lt__(self, other: object) -> bool:
            return True

    keys = session.policy.loss_keys(0, np.zeros((1, 3)))
    circling = type(keys)(keys.first, keys.shares, Circle())

    class Policy:
        """Every queue has the same key."""

        def loss_keys(self, queue: int, lost: object) -> object:
            return circling

    losses = victims.Losses(np.zeros(1, dtype=int), np.zeros((1, 3)))
    leaves = {0: losses, 1: losses}
    assert merged(Policy(), {-1: [0, 1]}, leaves, {0: NO_AMOUNTS}, -1) is None

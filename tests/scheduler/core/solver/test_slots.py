"""Counting the slots of many victims at once gives what counting them one by one gives."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from scheduler.core.arrays import Floats
from scheduler.core.session.session import Session
from scheduler.core.solver import generators
from scheduler.core.solver.demand import ProbeDemand
from scheduler.core.solver.generators import GENERATORS, Probe
from scheduler.core.solver.slots import LocalGpuBound, UniformGpusFilter
from scheduler.core.solver.victims import Batch, VictimPool, VictimSequence
from tests.builders import cluster

NODES = 5


def _batches(rng: random.Random, sizes: list[float]) -> list[Batch]:
    batches = []
    for group in range(rng.randint(1, 40)):
        count = rng.choice([1, 1, 1, 2])
        batches.append(
            Batch(
                group,
                tuple(range(group * 2, group * 2 + count)),
                tuple(rng.randint(-1, NODES - 1) for _ in range(count)),
                tuple(rng.choice(sizes) for _ in range(count)),
                True,
            )
        )
    return batches


def _demand(tasks: int, gpus: int) -> ProbeDemand:
    session = cluster().nodes(NODES, 8).pending("want", tasks, gpus=gpus).session()
    view = session.view(0)
    return ProbeDemand(session, view, view.next_chunk(include_evicted=True))


def _room(rng: random.Random) -> Floats:
    return np.array([rng.choice([0.0, 0.0, 0.5, 1.0, 3.25]) for _ in range(NODES)])


@pytest.mark.parametrize("sizes", [[0.0, 1.0, 2.0], [0.5, 1.0, 0.3]])
def test_the_first_passing_set_is_found_in_one_step(sizes: list[float]) -> None:
    rng = random.Random(7)
    for _ in range(60):
        demand, room, batches = (
            _demand(rng.randint(1, 6), rng.randint(1, 4)),
            _room(rng),
            _batches(rng, sizes),
        )
        slowly, quickly = UniformGpusFilter(demand, room), UniformGpusFilter(demand, room)
        if slowly.passes():
            continue
        added = 0
        for batch in batches:
            slowly.add(batch.nodes, batch.gpus)
            added += 1
            if slowly.passes():
                break
        middle = rng.randint(0, len(batches))
        count = quickly.add_until_passing(batches[:middle]) if middle else 0
        if not quickly.passes() and batches[middle:]:
            count += quickly.add_until_passing(batches[middle:])
        assert (count, quickly.passes()) == (added, slowly.passes())


def test_the_bound_rules_out_the_same_nodes() -> None:
    rng = random.Random(8)
    session = cluster().nodes(NODES, 8).session()
    for _ in range(60):
        demand, room = _demand(rng.randint(1, 3), rng.randint(1, 4)), _room(rng)
        batches = [
            replace(batch, tasks=batch.tasks[:1], nodes=batch.nodes[:1], gpus=batch.gpus[:1])
            for batch in _batches(rng, [1.0, 2.0])
            if batch.nodes[0] >= 0
        ]
        slowly = LocalGpuBound(session, demand, room)
        quickly = LocalGpuBound(session, demand, room)
        if not batches or not quickly.can_look_ahead(batches):
            continue
        fitting = []
        for number, batch in enumerate(batches):
            slowly.add(batch)
            if slowly.may_fit(batch.nodes[0]):
                fitting.append(number)
        assert quickly.add_all(batches) == fitting
        assert [quickly.may_fit(node) for node in range(NODES)] == [
            slowly.may_fit(node) for node in range(NODES)
        ]


def _proposals(session: Session, name: str, size: int) -> tuple[list[tuple[int, ...]], int]:
    """Return all sets that a generator proposes for the first tasks of `want`, and how many were rejected."""
    groups = session.state.pod_groups
    want = next(index for index, group in enumerate(groups.inputs) if group.name == "want")
    view = session.view(want)
    chunk = view.next_chunk(include_evicted=True)
    pool = VictimPool(session)
    sequence = VictimSequence(session, pool, pool.leaves, lambda each: each.pod_group != want)
    room = np.array(session.state.nodes.idle_rows[2])
    probe = Probe(session, ProbeDemand(session, view, chunk[:size]), (), room, sequence)
    return list(GENERATORS[name][1](probe)), probe.filters.rejected


@pytest.mark.parametrize("name", list(GENERATORS))
def test_generators_propose_the_same_sets_when_they_look_ahead(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(9)
    proposed = 0
    for _ in range(25):
        built = cluster().nodes(4, 8).queue("a", 4).queue("b", 8)
        for number in range(24):
            count = rng.choice([1, 1, 1, 1, 2])
            nodes = [f"n{rng.randint(0, 3)}" for _ in range(count)]
            built.running(
                f"r{number}", nodes, queue=rng.choice("ab"), minimum=rng.randint(1, count)
            )
        session = built.pending("want", 3, gpus=rng.choice([2, 4]), queue="b").session()
        size = rng.randint(1, 3)
        answers = []
        for few in (1, 1000):
            monkeypatch.setattr(generators, "FEW", few)
            answers.append(_proposals(session, name, size))
        assert answers[0] == answers[1]
        proposed += len(answers[0][0])
    assert proposed > 25

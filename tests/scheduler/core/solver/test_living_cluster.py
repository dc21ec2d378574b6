"""A thousand cycles of a busy cluster whose victims come back: nothing is evicted in circles."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest

from scheduler.core.cluster.inputs import PodGroupInput, PodSetInput, SubGroupInput, TaskInput
from scheduler.core.config import SchedulerConfig
from scheduler.core.decisions import ActionName, Evict
from scheduler.tools.simulate.living import LivingCluster
from tests.builders import cluster, request


def living(*, nodes: int, gpus: int) -> LivingCluster:
    half = nodes * gpus / 2
    built = (
        cluster()
        .nodes(nodes, gpus)
        .queue("east", half)
        .queue("west", half)
        .queue("e1", half / 2, parent="east", weight=2)
        .queue("e2", half / 2, parent="east")
        .queue("w1", half / 2, parent="west")
        .queue("w2", 0, parent="west")
        .build()
    )
    config = SchedulerConfig(use_scheduling_signatures=True)
    return LivingCluster(built.nodes, built.queues, config)


def make_group(rng: random.Random, name: str, now_s: float) -> PodGroupInput:
    tasks = rng.choice([1, 1, 1, 2, 3])
    minimum = tasks if rng.random() < 0.7 else rng.randint(0, tasks)
    priority = rng.choice([50, 50, 75, 100])
    requests = request(rng.choice([0.5, 1, 1, 2]))
    return PodGroupInput(
        name=name,
        uid=name,
        queue=rng.choice(["e1", "e2", "w1", "w2"]),
        priority=priority,
        preemptible=priority < 100,
        created=now_s,
        root=SubGroupInput(pod_sets=(PodSetInput(min_available=minimum),)),
        tasks=tuple(
            TaskInput(name=f"{name}-{n}", uid=f"{name}-{n}", request=requests, created=now_s)
            for n in range(tasks)
        ),
    )


def run(
    seed: int,
    cycles: int,
    watch: Callable[[LivingCluster, list[Evict], bool], None],
) -> list[object]:
    """Live for some cycles; `watch` sees who was evicted, and whether anyone came or went before."""
    rng = random.Random(seed)
    here = living(nodes=2, gpus=4)
    story: list[object] = []
    for cycle in range(cycles):
        is_disturbed = False
        if rng.random() < 0.15 and len(here.groups) < 20:
            here.submit(make_group(rng, f"g{cycle}", here.now_s))
            is_disturbed = True
        running = [name for name in here.groups if here.is_running(name)]
        if running and rng.random() < 0.1:
            here.finish(rng.choice(running))
            is_disturbed = True
        result = here.step()
        result.state.validate()
        story.extend(result.decisions)
        watch(
            here,
            [decision for decision in result.decisions if isinstance(decision, Evict)],
            is_disturbed,
        )
    return story


@pytest.mark.parametrize(("seed", "cycles"), [(1, 1000), (2, 1000)])
def test_no_pod_is_evicted_twice_for_one_reclaimer(seed, cycles) -> None:
    """Victims restart at once and compete again, yet no victim is evicted twice for the same pod group.

    A pod group that has run since may need room again, and newcomers may take what was freed (nothing
    is reserved between cycles), so both end what is counted.
    """
    taken: Counter[tuple[str, str]] = Counter()
    repeated: list[tuple[str, str]] = []
    evictions = 0

    def watch(here: LivingCluster, evicted: list[Evict], is_disturbed: bool) -> None:
        nonlocal evictions
        if is_disturbed:
            taken.clear()
        for evict in evicted:
            if (
                evict.reason.action in (ActionName.RECLAIM, ActionName.PREEMPT)
                and not evict.moved_to
            ):
                pair = (evict.task.uid, evict.reason.evictor)
                taken[pair] += 1
                evictions += 1
                if taken[pair] > 1:
                    repeated.append(pair)
        for pair in list(taken):
            if here.is_running(pair[1]):
                del taken[pair]

    run(seed, cycles, watch)
    assert evictions > 20, "the simulation is too quiet to show anything"
    assert repeated == []


def test_a_cluster_without_new_work_stops_evicting() -> None:
    rng = random.Random(11)
    here = living(nodes=2, gpus=4)
    for number in range(16):
        here.submit(make_group(rng, f"g{number}", float(number)))
    quiet = [len(here.step().decisions) for _ in range(40)]
    assert sum(quiet) > 0
    assert quiet[-20:] == [quiet[-1]] * 20
    assert not any(isinstance(decision, Evict) for decision in here.step().decisions)


def test_equal_seeds_give_equal_decisions() -> None:
    def nothing(*_: object) -> None:
        return None

    assert run(7, 100, nothing) == run(7, 100, nothing)

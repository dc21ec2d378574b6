"""Reclaim within quota by queue priority: who lost does not take back, so evictions end."""

from __future__ import annotations

import os
import random

import pytest

from scheduler.core.config import SchedulerConfig
from scheduler.tools.simulate.living import LivingCluster
from tests.builders import cluster
from tests.scheduler.stability.cases import Grace, at_once, live, one_by_one
from tests.scheduler.stability.test_stability import watched
from tests.scheduler.stability.watch import running_tasks

BY_PRIORITY = SchedulerConfig(reclaim_in_quota_by_priority=True)
#: After the first half of them nothing may be evicted any more; `make stability` lives through 1,000.
CYCLES = int(os.environ.get("KAIWEB_STABILITY_CYCLES", "30"))
#: How many random clusters; only a few in the unit suite.
CLUSTERS = 4 if CYCLES < 100 else 40


def three_queues_that_share_one_room(grace: Grace) -> LivingCluster:
    """Each queue has the whole cluster as quota, and the lowest one holds it."""
    built = cluster().nodes(2, 4)
    for name, priority in (("low", 1), ("middle", 2), ("high", 3)):
        built.queue(name, 8, priority=priority)
    for number in range(8):
        built.running(f"low-{number}", [f"n{number // 4}"], queue="low")
    built.pending("middle-gang", 4, queue="middle")
    for number in range(2):
        built.pending(f"middle-{number}", queue="middle")
        built.pending(f"high-{number}", queue="high", gpus=2)
    return live(built, grace, BY_PRIORITY)


@pytest.mark.parametrize("grace", [at_once, one_by_one], ids=lambda grace: grace.__name__)
def test_room_goes_up_the_priorities_once(grace: Grace) -> None:
    here = three_queues_that_share_one_room(grace)
    watch = watched(here, CYCLES)
    assert watch.broken == []
    assert running_tasks(here) == {
        "high-0-0",
        "high-1-0",
        *(f"middle-gang-{number}" for number in range(4)),
    }
    assert sum(watch.evictions[CYCLES // 2 :]) == 0
    assert max(watch.evicted.values()) == 1


def random_tree(seed: int) -> LivingCluster:
    """Two departments over-committed by 50 %, projects with quotas of their own, more work than room."""
    drawn = random.Random(seed)
    built = cluster().nodes(2, 4)
    leaves = []
    for department in ("d0", "d1"):
        built.queue(department, 6, priority=drawn.choice((1, 2)))
        for number in range(2):
            name = f"{department}-{number}"
            built.queue(
                name, drawn.choice((2, 3, 4)), parent=department, priority=drawn.randint(1, 3)
            )
            leaves.append(name)
    free = {"n0": 4, "n1": 4}
    for number in range(8):
        node = max(free, key=lambda name: free[name])
        if free[node]:
            free[node] -= 1
            built.running(f"run-{number}", [node], queue=drawn.choice(leaves))
    for number in range(8):
        tasks = drawn.choice((1, 1, 2, 3))
        built.pending(f"wait-{number}", tasks, queue=drawn.choice(leaves))
    return live(built, one_by_one, BY_PRIORITY)


@pytest.mark.parametrize("seed", range(CLUSTERS))
def test_evictions_end_in_random_trees(seed: int) -> None:
    watch = watched(random_tree(seed), CYCLES)
    assert watch.broken == []
    assert sum(watch.evictions[CYCLES // 2 :]) == 0

"""No eviction loops: every case lives on undisturbed, with victims that leave at once and one after the other.

60 cycles here; `make stability` lives through 1,000.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from scheduler.core.cluster.status import TaskStatus
from scheduler.core.config import SchedulerConfig
from scheduler.core.decisions import Evict
from scheduler.tools.simulate.living import LivingCluster
from tests.builders import cluster
from tests.scheduler.stability.cases import UNDISTURBED, Grace, at_once, live, one_by_one
from tests.scheduler.stability.watch import Watch, running_tasks

CYCLES = int(os.environ.get("KAIWEB_STABILITY_CYCLES", "60"))
#: No case evicts after this cycle; the minimum runtime of one ends in the thirtieth second.
SETTLED_AFTER = 30


def watched(here: LivingCluster, cycles: int = CYCLES) -> Watch:
    watch = Watch()
    for _ in range(cycles):
        watch.look(here, here.step())
    return watch


@pytest.mark.parametrize("grace", [at_once, one_by_one], ids=lambda grace: grace.__name__)
@pytest.mark.parametrize("case", UNDISTURBED, ids=lambda case: case.__name__)
def test_evictions_end_and_promised_room_is_kept(
    case: Callable[[Grace], LivingCluster], grace: Grace
) -> None:
    here = case(grace)
    watch = watched(here)
    assert watch.broken == []
    assert sum(watch.evictions) > 0, "nothing is evicted, so nothing is shown"
    assert sum(watch.evictions[SETTLED_AFTER:]) == 0
    assert max(watch.evicted.values()) == 1
    evictors = {name for name in here.groups if name in ("gang", "large", "high", "claim", "whole")}
    assert all(here.is_running(name) for name in evictors)


def test_two_gangs_that_claim_at_once_keep_apart_what_each_was_promised() -> None:
    """Without promises the second gang evicts again in the cycles 1, 3 and 7, the same pods among them."""
    case = next(case_ for case_ in UNDISTURBED if case_.__name__ == "two_that_claim_at_once")
    here = case(one_by_one)
    watch = watched(here, 20)
    assert [cycle for cycle, count in enumerate(watch.evictions) if count] == [0]
    assert sum(watch.evictions) == 11
    assert here.is_running("b-gang")
    assert here.is_running("c-gang")


def test_an_older_pod_group_does_not_take_the_room_made_for_another() -> None:
    """Reclaim and preempt each free one device for the asker; the older one needs both, and no action frees two."""
    built = (
        cluster()
        .node("n0", 2)
        .queue("a", 2)
        .queue("b", 0)
        .running("low", ["n0"], queue="a", priority=50)
        .running("borrower", ["n0"], queue="b", priority=50)
        .pending("older", queue="a", priority=75, gpus=2, created=-5.0)
        .pending("asker", 2, queue="a", priority=75, minimum=1)
    )
    here = live(built, at_once)
    watch = watched(here, 12)
    assert watch.broken == []
    assert running_tasks(here) == {"asker-0", "asker-1"}
    assert watch.evicted == {"low-0": 1, "borrower-0": 1}


def test_a_pod_group_of_higher_priority_goes_before_a_promise_of_its_queue() -> None:
    built = (
        cluster()
        .node("n0", 1)
        .queue("q", 1)
        .running("low", ["n0"], queue="q", priority=40)
        .pending("asker", queue="q", priority=50)
    )
    here = live(built, lambda task: 2)
    here.step()
    urgent = cluster().queue("q", 1).pending("urgent", queue="q", priority=90).build()
    here.submit(urgent.pod_groups[0])
    for _ in range(4):
        here.step()
    assert running_tasks(here) == {"urgent-0"}


# ------------------------------------------------------------ 12: gangs that finish, gangs that broke


def test_a_gang_that_finishes_pod_by_pod_is_left_alone() -> None:
    """KAI #1968: finished pods count for the gang, so its last pods are not the rest of a broken one."""
    built = (
        cluster()
        .node("n0", 4)
        .queue("q", 4)
        .running("done", ["n0"] * 4, queue="q")
        .pending("next", 4, queue="q")
    )
    here = live(built, one_by_one)
    watch = Watch()
    for cycle in range(CYCLES):
        ends = cycle % 12 == 6 and cycle // 12 < 4
        if ends:
            here.succeed(f"done-{cycle // 12}")
        watch.look(here, here.step(), is_disturbed=ends)
    assert sum(watch.evictions) == 0
    assert here.is_running("next")


def test_a_broken_gang_is_completed_before_an_older_pod_of_the_same_priority() -> None:
    """VOL #5805: a filler that waits longer took the slot of the lost pod, and the gang was never completed."""
    built = (
        cluster()
        .node("n0", 4)
        .queue("q", 4)
        .pending("filler", queue="q")
        .running("gang", ["n0"] * 4, queue="q")
    )
    here = live(built, at_once, SchedulerConfig(broken_gangs_first=True))
    for _ in range(CYCLES):
        here.lose("gang-2")
        session = here.step()
        assert not [decision for decision in session.decisions if isinstance(decision, Evict)]
        assert here.is_running("gang")
    assert here.places["filler-0"].status is TaskStatus.PENDING


def test_a_gang_that_cannot_be_completed_is_evicted_once_after_its_grace() -> None:
    """What is left of it goes, others use the room, and it starts again as a whole when there is room."""
    built = (
        cluster()
        .node("n0", 2)
        .node("n1", 2)
        .queue("q", 4)
        .running("gang", ["n0", "n0", "n1", "n1"], queue="q")
        .pending("filler", 2, queue="q")
    )
    here = live(built, at_once)
    broken_node = here.nodes[1]
    here.nodes = (here.nodes[0],)
    here.lose("gang-2")
    here.lose("gang-3")
    watch = Watch()
    for cycle in range(120):
        if cycle == 100:
            here.nodes = (here.nodes[0], broken_node)
        watch.look(here, here.step(), is_disturbed=cycle == 100)
    assert watch.evicted == {"gang-0": 1, "gang-1": 1}
    assert here.is_running("filler")
    assert watch.broken == []

"""The clusters of the reports; every pod that is evicted comes back at once and competes again.

Each function returns a cluster that nobody disturbs. `grace` says for how many cycles evicted pods stay: with a different
number for each pod, the victims of one evictor leave one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf
from zlib import crc32

from scheduler.core.cluster.inputs import QueueAmounts
from scheduler.core.config import SchedulerConfig
from scheduler.tools.simulate.living import LivingCluster
from tests.builders import ClusterBuilder, cluster, request

Grace = Callable[[str], int]


def at_once(task: str) -> int:
    """Return 0: evicted pods are gone in the next cycle."""
    return 0


def one_by_one(task: str) -> int:
    """Return from 0 to 8, spread over the pods."""
    return crc32(task.encode()) % 9


def live(
    built: ClusterBuilder, grace: Grace, config: SchedulerConfig | None = None
) -> LivingCluster:
    """Return a living cluster in the state of a snapshot."""
    snapshot = built.build()
    here = LivingCluster(
        snapshot.nodes,
        snapshot.queues,
        config or SchedulerConfig(use_scheduling_signatures=True),
        grace_cycles=grace,
    )
    for group in snapshot.pod_groups:
        here.submit(replace(group, created=group.created - 1000.0))
    return here


# ------------------------------------------------------------------ 8: evict, restart, evict for ever


def gang_drops_its_queue_below_its_share(grace: Grace) -> LivingCluster:
    """VOL #4947: a gang of six goes for two devices, and its queue, now empty, is first again."""
    built = (
        cluster()
        .node("n0", 8)
        .queue("left", 4)
        .queue("right", 4)
        .running("wide", ["n0"] * 6, queue="left")
        .running("b0", ["n0"], queue="right", gpus=2)
        .pending("b1", queue="right", gpus=2)
    )
    return live(built, grace)


def both_queues_want_more(grace: Grace) -> LivingCluster:
    """VOL #4949: elastic work on both sides of the shares, each with more demand than room."""
    built = (
        cluster()
        .nodes(2, 4)
        .queue("left", 3)
        .queue("right", 3)
        .running("a", ["n0"] * 4 + ["n1"] * 3, queue="left", minimum=1)
        .running("b", ["n1"], queue="right", minimum=1)
        .pending("b-more", 6, queue="right", minimum=1)
        .pending("a-more", 6, queue="left", minimum=1)
    )
    return live(built, grace)


def shares_that_are_no_whole_devices(grace: Grace) -> LivingCluster:
    """Three queues share four devices: a third of a device too much or too little on every side."""
    built = cluster().node("n0", 4)
    for name in ("a", "b", "c"):
        built.queue(name, 1)
    built.running("a-0", ["n0"] * 4, queue="a", minimum=1)
    for name in ("b", "c"):
        for number in range(3):
            built.pending(f"{name}-{number}", queue=name)
    return live(built, grace)


def quota_only_high_in_the_tree(grace: Grace) -> LivingCluster:
    """YK #457: quota is set at two departments only, and their projects have none."""
    built = (
        cluster()
        .nodes(2, 4)
        .queue("d1", 4)
        .queue("d2", 4)
        .queue("p1", 0, parent="d1")
        .queue("p2", 0, parent="d1")
        .queue("p3", 0, parent="d2")
    )
    for number in range(8):
        built.running(f"p1-{number}", [f"n{number // 4}"], queue="p1")
    for number in range(4):
        built.pending(f"p2-{number}", queue="p2").pending(f"p3-{number}", 2, queue="p3")
    return live(built, grace)


def over_in_one_resource_under_in_the_other(grace: Grace) -> LivingCluster:
    """VOL #4808: one queue is over its CPU, one over its GPUs, and a third claims both."""
    third = QueueAmounts(quota=11_000.0, limit=inf, over_quota_weight=1)
    built = (
        cluster()
        .node("n0", 9, cpu=33)
        .queue("cpus", 3, cpu=third)
        .queue("gpus", 3, cpu=third)
        .queue("both", 3, cpu=third)
    )
    for number in range(6):
        built.running(f"c-{number}", ["n0"], queue="cpus", request=request(0, cpu=4))
    for number in range(9):
        built.running(f"g-{number}", ["n0"], queue="gpus", request=request(1, cpu=1))
    for number in range(3):
        built.pending(f"both-{number}", queue="both", request=request(1, cpu=3))
    return live(built, grace)


def shared_devices_between_two_queues(grace: Grace) -> LivingCluster:
    """Halves and thirds of devices, claimed back by a queue within its quota."""
    built = cluster().node("n0", 2).queue("a", 1).queue("b", 1)
    built.running("a-0", ["n0"], queue="a", gpus=0.5, gpu_groups=[("d0",)])
    built.running("a-1", ["n0"], queue="a", gpus=0.5, gpu_groups=[("d0",)])
    built.running("a-2", ["n0"], queue="a", gpus=0.5, gpu_groups=[("d1",)])
    built.running("a-3", ["n0"], queue="a", gpus=0.3, gpu_groups=[("d1",)])
    built.pending("b-0", queue="b", gpus=0.7).pending("b-1", queue="b", gpus=0.3)
    built.pending("a-4", queue="a", gpus=0.2)
    return live(built, grace)


# ---------------------------------------------------------- 9: victims that end at different times


def reclaim_from_two_queues(grace: Grace) -> LivingCluster:
    """KUE #13662: the victims of one gang come from two queues and end at different times."""
    built = cluster().nodes(2, 4).queue("a", 2).queue("b", 2).queue("c", 4)
    for number in range(4):
        built.running(f"a-{number}", [f"n{number % 2}"], queue="a")
        built.running(f"b-{number}", [f"n{number % 2}"], queue="b")
    built.pending("gang", 4, queue="c")
    return live(built, grace)


def reclaim_of_a_whole_node(grace: Grace) -> LivingCluster:
    """A pod of four devices waits while the small victims of its node come back one by one."""
    built = cluster().nodes(2, 4).queue("small", 4).queue("large", 4)
    for number in range(8):
        built.running(f"s-{number}", [f"n{number // 4}"], queue="small")
    built.pending("large", queue="large", gpus=4)
    return live(built, grace)


def preempt_in_one_queue(grace: Grace) -> LivingCluster:
    """KUE #3779: the same inside one queue, by priority, with a filler of low priority that fits earlier."""
    built = cluster().nodes(2, 4).queue("q", 8)
    for number in range(8):
        built.running(f"low-{number}", [f"n{number // 4}"], queue="q", priority=50)
    built.pending("filler", queue="q", priority=40)
    built.pending("high", 2, queue="q", priority=75, gpus=2)
    return live(built, grace)


def fillers_of_a_third_queue(grace: Grace) -> LivingCluster:
    """The room that a gang waits for becomes free in parts, each of which a borrower could use."""
    built = cluster().nodes(2, 4).queue("a", 0).queue("b", 0).queue("c", 8)
    for number in range(8):
        built.running(f"a-{number}", [f"n{number // 4}"], queue="a")
    for number in range(6):
        built.pending(f"b-{number}", queue="b")
    built.pending("gang", 3, queue="c", gpus=2)
    return live(built, grace)


def two_that_claim_at_once(grace: Grace) -> LivingCluster:
    """Two gangs of two queues claim room from a third one in the same cycle."""
    built = cluster().nodes(3, 4).queue("over", 0).queue("b", 6).queue("c", 6)
    for number in range(12):
        built.running(f"over-{number}", [f"n{number // 4}"], queue="over")
    built.pending("b-gang", 3, queue="b", gpus=2).pending("c-gang", 5, queue="c")
    return live(built, grace)


def consolidation_onto_other_nodes(grace: Grace) -> LivingCluster:
    """Movable pods make room for a pod of a whole node, and leave at different times."""
    built = cluster().nodes(3, 4).queue("q", 12)
    for number in range(6):
        built.running(f"p-{number}", [f"n{number % 3}"], queue="q")
    built.pending("whole", queue="q", gpus=4)
    return live(built, grace)


# --------------------------------------------------------------------- 10: a protected queue in the way


def protected_queue_first(grace: Grace) -> LivingCluster:
    """KAI #1750: the most over-served queue is protected by its minimum runtime, another one gives."""
    built = (
        cluster()
        .node("n0", 6)
        .queue("protected", 0, weight=0, reclaim_min_runtime_s=100_000.0)
        .queue("open", 0, weight=0)
        .queue("claims", 2, weight=0)
    )
    for number in range(4):
        built.running(f"p-{number}", ["n0"], queue="protected", last_start=-1060.0)
    for number in range(2):
        built.running(f"o-{number}", ["n0"], queue="open", last_start=-1060.0)
    built.pending("claim", 2, queue="claims")
    return live(built, grace)


def protection_that_ends(grace: Grace) -> LivingCluster:
    """A minimum runtime of 30 s ends during the run: each pod that comes back is protected anew."""
    built = (
        cluster()
        .node("n0", 4)
        .queue("a", 1, reclaim_min_runtime_s=30.0)
        .queue("b", 1, reclaim_min_runtime_s=30.0)
    )
    for number in range(4):
        built.running(f"a-{number}", ["n0"], queue="a", last_start=-5.0)
        built.pending(f"b-{number}", queue="b")
    return live(built, grace)


UNDISTURBED: tuple[Callable[[Grace], LivingCluster], ...] = (
    gang_drops_its_queue_below_its_share,
    both_queues_want_more,
    shares_that_are_no_whole_devices,
    quota_only_high_in_the_tree,
    over_in_one_resource_under_in_the_other,
    shared_devices_between_two_queues,
    reclaim_from_two_queues,
    reclaim_of_a_whole_node,
    preempt_in_one_queue,
    fillers_of_a_third_queue,
    two_that_claim_at_once,
    consolidation_onto_other_nodes,
    protected_queue_first,
    protection_that_ends,
)

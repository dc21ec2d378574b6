"""Whole cycles on arbitrary clusters: they never fail, keep their promises, and arrays decide as single questions do.

Clusters mix what other tests look at one by one: selectors, taints, ports, inter-pod terms in all directions, parts of
devices, device memory, slices, topology, subgroups, elastic and leaving work, quotas and limits.
"""

from __future__ import annotations

import random
from collections import Counter
from math import inf

import pytest

from scheduler.core.cluster.constraints import (
    Expression,
    HostPort,
    LabelSelector,
    NodeTerm,
    Operator,
    PodTerm,
    Taint,
    TaskConstraints,
    Toleration,
)
from scheduler.core.cluster.inputs import (
    ClusterInput,
    PodGroupInput,
    PodSetInput,
    SubGroupInput,
    TaskInput,
    TaskRequest,
    TopologyConstraint,
    TopologyInput,
)
from scheduler.core.cluster.status import TaskStatus
from scheduler.core.config import SchedulerConfig
from scheduler.core.cycle import open_session, run_cycle
from scheduler.core.decisions import ActionName, Bind, Evict
from scheduler.core.session.session import Session
from tests.builders import ClusterBuilder, cluster, request

SLICE = "nvidia.com/mig-1g.10gb"
APPS = ("web", "db", "log")
LEAVES = ("a1", "a2", "b1")
CONFIG = SchedulerConfig()
SEEDS = 30


def a_cluster(rng: random.Random) -> ClusterInput:
    built = cluster().having(topologies=(TopologyInput(name="map", levels=("row", "rack")),))
    count = rng.randint(14, 20)
    for number in range(count):
        add_node(rng, built, number)
    for name, parent in (("a", ""), ("a1", "a"), ("a2", "a"), ("b", ""), ("b1", "b")):
        quota = rng.choice([0, 2, 4, 8])
        limit = rng.choice([inf, inf, inf, quota + 4])
        built.queue(name, quota, limit=limit, weight=rng.choice([0, 1, 3]), parent=parent)
    for number in range(rng.randint(8, 26)):
        built.group(a_group(rng, f"g{number:02}", count))
    return built.build()


def add_node(rng: random.Random, built: ClusterBuilder, number: int) -> None:
    labels = {"host": f"n{number:02}"}
    if rng.random() < 0.9:
        labels |= {"row": f"w{number // 6}", "rack": f"w{number // 6}-{number // 2}"}
    if rng.random() < 0.3:
        labels["disk"] = "fast"
    is_sliced = rng.random() < 0.15
    built.node(
        f"n{number:02}",
        0 if is_sliced else rng.choice([0, 1, 2, 4]),
        cpu=rng.choice([4, 16, 64]),
        pods=rng.choice([3, 8, 110]),
        labels=labels,
        taints=(Taint("gpu", "only"),) if rng.random() < 0.2 else (),
        unschedulable=rng.random() < 0.05,
        ready=rng.random() > 0.05,
        gpu_memory_mib=rng.choice([10_000, 40_000]),
        resources={SLICE: 4.0} if is_sliced else None,
        mig_enabled=is_sliced,
        mig_strategy="mixed" if is_sliced else "none",
    )


def a_group(rng: random.Random, name: str, nodes: int) -> PodGroupInput:
    count, priority = rng.choice([1, 1, 1, 2, 3, 5]), rng.choice([50, 50, 75, 100])
    has_halves = count > 1 and rng.random() < 0.3
    is_placed = rng.random() < 0.35
    requests = rng.choice([request(0), request(1)]) if is_placed else a_request(rng)
    constraints, labels = some_constraints(rng), {"app": rng.choice(APPS)}
    namespace = rng.choice(["x", "y"])
    tasks = tuple(
        TaskInput(
            name=f"{name}-{index}",
            uid=f"{name}-{index}",
            namespace=namespace,
            status=rng.choice([TaskStatus.RUNNING] * 3 + [TaskStatus.RELEASING])
            if is_placed
            else TaskStatus.PENDING,
            node=f"n{rng.randrange(nodes):02}" if is_placed else "",
            request=requests,
            constraints=constraints,
            labels=labels,
            **({"subgroup": "left" if index % 2 else "right"} if has_halves else {}),
        )
        for index in range(count)
    )
    minimum = count if rng.random() < 0.6 else rng.randint(0, count)
    return PodGroupInput(
        name=name,
        uid=name,
        namespace=namespace,
        queue=rng.choice([*LEAVES * 4, "nowhere"]),
        priority=priority,
        preemptible=priority < 100,
        root=halves(rng, count) if has_halves else whole(rng, minimum),
        tasks=tasks,
        last_start=-100.0 if is_placed else None,
    )


def a_request(rng: random.Random) -> TaskRequest:
    return rng.choice(
        [
            request(0),
            request(1),
            request(1),
            request(2),
            request(0.5),
            request(0.25, gpu_devices=2),
            request(0, gpu_memory_mib=6_000),
            request(0, mig=((SLICE, 1.0),)),
        ]
    )


def whole(rng: random.Random, minimum: int) -> SubGroupInput:
    return SubGroupInput(topology=a_wish(rng), pod_sets=(PodSetInput(min_available=minimum),))


def halves(rng: random.Random, count: int) -> SubGroupInput:
    placed_count = count // 2
    return SubGroupInput(
        topology=a_wish(rng),
        min_subgroups=rng.choice([None, 1]),
        pod_sets=(
            PodSetInput(name="right", min_available=count - placed_count, topology=a_wish(rng)),
            PodSetInput(name="left", min_available=placed_count),
        ),
    )


def a_wish(rng: random.Random) -> TopologyConstraint | None:
    if rng.random() < 0.7:
        return None
    required, preferred = rng.choice([("row", ""), ("row", "rack"), ("", "rack"), ("", "row")])
    return TopologyConstraint(topology="map", required_level=required, preferred_level=preferred)


def some_constraints(rng: random.Random) -> TaskConstraints:
    def term(weight: int = 0) -> PodTerm:
        selector = LabelSelector((Expression("app", Operator.IN, (rng.choice(APPS),)),))
        namespaces = rng.choice([(), (), ("x", "y")])
        key = rng.choice(["host", "rack", "row"])
        return PodTerm(topology_key=key, selector=selector, namespaces=namespaces, weight=weight)

    def sometimes(chance: float, *values: PodTerm) -> tuple[PodTerm, ...]:
        return values if rng.random() < chance else ()

    affinity = (
        NodeTerm((Expression("disk", rng.choice([Operator.EXISTS, Operator.DOES_NOT_EXIST])),)),
    )
    return TaskConstraints(
        node_selector=(("disk", "fast"),) if rng.random() < 0.1 else (),
        node_affinity=affinity if rng.random() < 0.15 else None,
        tolerations=(Toleration("gpu", Operator.EXISTS),) if rng.random() < 0.4 else (),
        host_ports=(HostPort(80),) if rng.random() < 0.15 else (),
        pod_affinity=sometimes(0.12, term()),
        pod_anti_affinity=sometimes(0.15, term()),
        preferred_pod_affinity=sometimes(0.1, term(10)),
        preferred_pod_anti_affinity=sometimes(0.1, term(10), term(5)),
    )


def run(cluster_input: ClusterInput, small: int) -> Session:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("scheduler.core.placement.candidates.SMALL", small)
        result = run_cycle(cluster_input, CONFIG)
    result.state.validate()
    return result


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_cycle_keeps_its_promises_and_arrays_decide_as_single_questions_do(seed: int) -> None:
    cluster_input = a_cluster(random.Random(seed))
    result = run(cluster_input, small=12)
    assert result.decisions == run(cluster_input, small=0).decisions
    assert result.decisions == run(cluster_input, small=10_000).decisions
    groups = {group.name: group for group in cluster_input.pod_groups}
    gangs_are_whole(result, groups)
    nothing_is_given_twice(result)
    limits_hold(cluster_input, result)
    for decision in result.decisions:
        assert groups[decision.pod_group].queue in LEAVES
        if (
            isinstance(decision, Evict)
            and decision.reason.action is not ActionName.STALE_GANG_EVICTION
        ):
            assert groups[decision.pod_group].preemptible, f"{decision} is not preemptible"


def gangs_are_whole(result: Session, groups: dict[str, PodGroupInput]) -> None:
    """A group of which nothing runs gets its minimum bound, or nothing."""
    bound = Counter(
        decision.pod_group for decision in result.decisions if isinstance(decision, Bind)
    )
    for name, count in bound.items():
        root = groups[name].root
        is_new = all(task.status == TaskStatus.PENDING for task in groups[name].tasks)
        if is_new and len(root.pod_sets) == 1:
            assert count >= root.pod_sets[0].min_available, f"{name} got {count}"


def nothing_is_given_twice(result: Session) -> None:
    """Where something is bound nothing is overdrawn."""
    nodes = result.state.nodes
    for name in {decision.node for decision in result.decisions if isinstance(decision, Bind)}:
        idle = nodes.idle[:, nodes.index_of[name]]
        assert idle.min() >= -1e-6, f"{name}: {idle.tolist()}"


def limits_hold(cluster_input: ClusterInput, result: Session) -> None:
    """No queue passes its limit, except by what it held before."""
    before = open_session(cluster_input, CONFIG).policy.ledger
    after = result.policy.ledger
    for queue, name in enumerate(result.state.queues.names):
        for allocated, limit, held_before in zip(
            after.allocated[queue], after.limits[queue], before.allocated[queue], strict=True
        ):
            assert allocated <= max(limit, held_before) + 1e-6, f"{name}: {allocated} of {limit}"


def test_the_clusters_bring_about_what_they_are_meant_to() -> None:
    """The promises above are about something: every kind of decision occurs, by every action that makes room."""
    kinds: Counter[str] = Counter()
    for seed in range(SEEDS):
        for decision in run(a_cluster(random.Random(seed)), small=12).decisions:
            kinds[type(decision).__name__] += 1
            if isinstance(decision, Evict):
                kinds[decision.reason.action] += 1
    assert all(kinds[kind] >= 10 for kind in ("Bind", "Evict", "Nominate"))
    assert all(kinds[action] for action in (ActionName.RECLAIM, ActionName.PREEMPT))

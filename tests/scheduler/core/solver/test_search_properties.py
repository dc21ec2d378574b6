"""On any cluster: the search keeps the rules of gangs and priorities, and its short-cuts change nothing."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.core.config import SchedulerConfig
from scheduler.core.decisions import Decision, Evict
from scheduler.core.solver import search
from tests.builders import cluster, placements, request

sizes = st.sampled_from([0, 0.5, 1, 1, 2, 4])
cores = st.sampled_from([1, 1, 2, 4])
priorities = st.sampled_from([50, 60, 75, 100])
running = st.tuples(
    st.lists(st.integers(0, 2), min_size=1, max_size=3),
    sizes,
    st.sampled_from("ab"),
    priorities,
    st.integers(0, 3),
    cores,
)
waiting = st.tuples(
    st.integers(1, 3), sizes, st.sampled_from("ab"), priorities, st.integers(0, 3), cores
)


@st.composite
def clusters(draw):
    """Three nodes of four GPUs with gangs, elastic pod groups and halves of devices on them."""
    built = cluster().nodes(3, 4, cpu=8)
    built.queue("a", draw(st.integers(0, 8)), weight=draw(st.integers(0, 2))).queue("b", 6)
    free = [[4.0, 8.0] for _ in range(3)]
    for number, (nodes, gpus, queue, priority, minimum, cpu) in enumerate(
        draw(st.lists(running, max_size=9))
    ):
        amounts = (max(gpus, 1) if gpus else 0, cpu)
        if any(
            free[node][kind] < nodes.count(node) * amounts[kind]
            for node in nodes
            for kind in (0, 1)
        ):
            continue
        for node in nodes:
            free[node] = [free[node][kind] - amounts[kind] for kind in (0, 1)]
        shared = [(f"dev-{number}-{n}",) for n in range(len(nodes))]
        built.running(
            f"r{number}",
            [f"n{node}" for node in nodes],
            request=request(gpus, cpu=cpu),
            queue=queue,
            priority=priority,
            minimum=min(minimum, len(nodes)),
            **({"gpu_groups": shared} if 0 < gpus < 1 else {}),
        )
    for number, (tasks, gpus, queue, priority, minimum, cpu) in enumerate(
        draw(st.lists(waiting, min_size=1, max_size=4))
    ):
        built.pending(
            f"p{number}",
            tasks,
            request=request(gpus, cpu=cpu),
            queue=queue,
            priority=priority,
            minimum=min(minimum, tasks),
        )
    return built


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(clusters())
def test_bounds_never_change_what_is_decided(built) -> None:
    config = SchedulerConfig(max_consolidation_victims=inf)
    with_bounds = built.cycle(config=config)
    keep = (search.may_fit, search.is_hopeless, search.is_shut_in)
    search.may_fit, search.is_hopeless = lambda *_: True, lambda *_: False
    search.is_shut_in = lambda *_: False
    try:
        without = built.cycle(config=config)
    finally:
        search.may_fit, search.is_hopeless, search.is_shut_in = keep
    assert _renamed(with_bounds.decisions) == _renamed(without.decisions)
    assert placements(with_bounds) == placements(without)


def _renamed(decisions: list[Decision]) -> list[Decision]:
    """Number newly shared devices in order of appearance: trials that were spared draw no names."""
    new_names: dict[str, str] = {}

    def name(gpu_group: str) -> str:
        return new_names.setdefault(gpu_group, f"g{len(new_names)}")

    return [
        decision
        if isinstance(decision, Evict)
        else replace(decision, gpu_groups=tuple(map(name, decision.gpu_groups)))
        for decision in decisions
    ]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(clusters())
def test_any_cycle_keeps_the_rules(built) -> None:
    result = built.cycle(config=SchedulerConfig(max_consolidation_victims=inf))
    state = result.state
    free = state.nodes.idle + state.nodes.releasing
    assert (free >= -1e-9).all(), "a node promised more than it has"
    evicted = {decision.task.name for decision in result.decisions if isinstance(decision, Evict)}
    for group, given_group in enumerate(state.pod_groups.inputs):
        names = {task.name for task in given_group.tasks}
        if not given_group.preemptible:
            assert not names & evicted
        active = state.pod_groups.active_allocated[group]
        minimum = sum(pod_set.min_available for pod_set in given_group.root.pod_sets)
        assert active == 0 or active >= minimum, "a gang is whole or not there"


def test_a_share_that_is_taken_back_beside_promised_gpus_costs_no_device() -> None:
    built = cluster().nodes(3, 4, cpu=8).queue("a", 0, weight=0).queue("b", 6)
    half = request(0.5, cpu=1)
    for name, nodes in (("r0", "02"), ("r1", "12"), ("r2", "2"), ("r3", "001")):
        devices = [(f"{name}-{number}",) for number in range(len(nodes))]
        places = [f"n{node}" for node in nodes]
        built.running(name, places, request=half, queue="a", minimum=0, gpu_groups=devices)
    for name in ("p0", "p1", "p2"):
        built.pending(name, 1, request=request(0, cpu=1), queue="a", minimum=0)
    built.pending("gang", 2, request=request(2, cpu=1), queue="a", minimum=2)
    result = built.cycle(config=SchedulerConfig(max_consolidation_victims=inf))
    assert len([entry for entry in result.decisions if isinstance(entry, Evict)]) == 1
    nodes = result.state.nodes
    assert (nodes.idle[2] + nodes.releasing[2]).tolist() == [0.0, 0.0, 1.0]

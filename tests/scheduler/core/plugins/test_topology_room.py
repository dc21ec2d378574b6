"""How many tasks a domain has room for: arrays over nodes against a plain look at each."""

from __future__ import annotations

from math import floor, inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.cluster.status import TaskStatus
from scheduler.core.plugins.topology.accounting import (
    HOPELESS,
    Need,
    capacity_of_nodes,
    tightness,
)
from scheduler.core.session.session import Session
from tests.builders import cluster, request

MIB = 10_000


def session_of(
    gpus: list[int], used: list[tuple[int, float]], requested_gpus: list[float]
) -> Session:
    """Nodes with so many devices, running pods (node, devices) and one pending gang."""
    built = cluster()
    for number, count in enumerate(gpus):
        built.node(f"n{number}", count, gpu_memory_mib=MIB)
    for number, (node, size) in enumerate(used):
        groups = {"gpu_groups": [(f"g{number}",)]} if 0 < size < 1 else {}
        built.running(f"r{number}", [f"n{node}"], request=request(size), **groups)
    for number, size in enumerate(requested_gpus):
        built.pending(f"p{number}", request=request(size))
    return built.session()


def need_of(session: Session) -> Need:
    status = session.state.tasks.status
    pending = [task for task, place in enumerate(status) if place == TaskStatus.PENDING]
    return Need(session.state, pending, frozenset())


@settings(max_examples=100, deadline=None)
@given(
    gpus=st.lists(st.integers(0, 8), min_size=1, max_size=5),
    used=st.lists(st.tuples(st.integers(0, 4), st.sampled_from((0.0, 1.0, 2.0))), max_size=6),
    size=st.sampled_from((0.0, 1.0, 2.0, 3.0)),
    count=st.integers(1, 3),
)
def test_whole_devices_are_counted_node_by_node(
    gpus: list[int], used: list[tuple[int, float]], size: float, count: int
) -> None:
    free_gpus = [float(number) for number in gpus]
    chosen = []
    for node, amount in used:
        if node < len(gpus) and free_gpus[node] >= amount:
            free_gpus[node] -= amount
            chosen.append((node, amount))
    session = session_of(gpus, chosen, [size] * count)
    capacities = capacity_of_nodes(session.state.nodes, need_of(session)).tolist()
    cores = [1000 - sum(node == number for node, _ in chosen) for number in range(len(gpus))]
    slots = [110 - sum(node == number for node, _ in chosen) for number in range(len(gpus))]
    fits = [floor(free / size) if size else inf for free in free_gpus]
    assert capacities == [min(parts) for parts in zip(fits, cores, slots, strict=True)]


@pytest.mark.parametrize(
    ("used", "size", "capacity"),
    [
        ([], 0.5, 4),
        ([(0, 0.5)], 0.5, 3),
        ([(0, 0.75)], 0.5, 2),
        ([(0, 0.25), (0, 0.25)], 0.25, 6),
        ([(0, 0.3)], 0.3, 5),
        ([(0, 1.0)], 0.5, 2),
    ],
)
def test_what_is_left_of_shared_devices_counts_for_those_who_share(
    used: list[tuple[int, float]], size: float, capacity: int
) -> None:
    session = session_of([2], used, [size])
    assert capacity_of_nodes(session.state.nodes, need_of(session)).tolist() == [capacity]


def test_tasks_that_ask_for_other_things_than_each_other_are_not_uniform() -> None:
    assert need_of(session_of([8], [], [1.0, 2.0])).is_uniform
    assert not need_of(session_of([8], [], [1.0, 0.0])).is_uniform


def test_tightness_is_the_scarcest_of_what_is_asked_for() -> None:
    session = session_of([4, 8], [(1, 2.0)], [2.0, 2.0])
    need = need_of(session)
    by_node = tightness(session.state.nodes, need, lambda free: free)
    assert by_node.tolist() == [1.0, pytest.approx(4 / 6)]
    bare = session_of([0], [], [1.0])
    assert tightness(bare.state.nodes, need_of(bare), lambda free: free).tolist() == [HOPELESS]

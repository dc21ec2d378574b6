"""Binding a lone task at once changes exactly the cells that a kept statement changes."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.cluster.inputs import QueueAmounts
from scheduler.core.decisions import ActionName
from scheduler.core.session.direct import bind_directly, can_bind_directly
from scheduler.core.session.session import Session
from scheduler.core.session.statement import Statement
from tests.builders import cluster, fingerprint, request


def _session(tasks: list[tuple[float, bool]]) -> Session:
    built = cluster().nodes(2, resources={"example.com/nic": 4000.0})
    built.node("cpu", gpus=0).queue("top", 9).queue("leaf", 7, parent="top")
    built.queue("bounded", 7, parent="top", cpu=QueueAmounts(quota=1e6, limit=1e6))
    for number, (gpus, preemptible) in enumerate(tasks):
        built.pending(
            f"p{number}",
            queue=("leaf", "bounded")[number % 2],
            priority=50 if preemptible else 100,
            request=request(gpus, cpu=0.1, other=(("example.com/nic", 500.0),)),
        )
    return built.session()


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    tasks=st.lists(st.tuples(st.sampled_from([0, 1, 3]), st.booleans()), min_size=1, max_size=6),
    nodes=st.lists(st.integers(0, 2), min_size=6, max_size=6),
)
def test_the_same_cells_change(tasks: list[tuple[float, bool]], nodes: list[int]) -> None:
    directly, tried = _session(tasks), _session(tasks)
    for task, node in zip(range(len(tasks)), nodes, strict=False):
        assert can_bind_directly(directly, task)
        decision = bind_directly(directly, ActionName.ALLOCATE, task, node)
        statement = Statement(tried, ActionName.ALLOCATE)
        statement.allocate(task, node)
        assert [decision] == statement.keep()
    assert fingerprint(directly) == fingerprint(tried)
    assert directly.decisions == tried.decisions
    assert directly.policy.touched == tried.policy.touched
    assert directly.state.nodes.touched == tried.state.nodes.touched
    directly.state.validate()


def test_the_same_cells_change_where_tasks_share_devices() -> None:
    places = [(0, ("g1",)), (0, ("g1",)), (1, ("g2",)), (0, ("g3", "g4"))]
    sessions = []
    for _ in range(2):
        built = cluster().nodes(2, 4).queue("leaf", 7)
        for number, (_, gpu_groups) in enumerate(places):
            share = replace(request(0.4), gpu_devices=len(gpu_groups))
            built.pending(f"p{number}", request=share)
        sessions.append(built.session())
    directly, tried = sessions
    for task, (node, gpu_groups) in enumerate(places):
        bind_directly(directly, ActionName.ALLOCATE, task, node, gpu_groups)
        statement = Statement(tried, ActionName.ALLOCATE)
        statement.allocate(task, node, gpu_groups)
        statement.keep()
    assert fingerprint(directly) == fingerprint(tried)
    assert directly.decisions == tried.decisions
    assert directly.policy.touched == tried.policy.touched
    assert directly.state.nodes.touched == tried.state.nodes.touched
    assert not directly.state.journal.entries
    directly.state.validate()


def test_tasks_that_a_plugin_follows_are_not_bound_directly() -> None:
    built = cluster().node("n").queue("plain").queue("fair", user_fairness=True)
    session = built.pending("p", queue="plain").pending("q", queue="fair", gpus=2).session()
    assert [can_bind_directly(session, task) for task in range(2)] == [True, False]

"""The strategy `fragmentation`: what it prefers, and that kept scores equal those computed anew."""

from __future__ import annotations

import pytest

from scheduler.core.config import DEFAULT_PLUGINS, PluginConfig, SchedulerConfig
from scheduler.core.cycle import open_session, run_action
from scheduler.core.decisions import ActionName, Bind
from scheduler.core.placement.place import Placer
from scheduler.core.plugins.fragmentation import DEVICE_SCORE, FragmentationScore
from scheduler.core.plugins.placement_strategy import FRAGMENTATION, NodePlacementArguments
from scheduler.core.session.session import Session
from scheduler.tools.traces.generated import generate
from scheduler.tools.traces.one_session import strategy_config
from scheduler.tools.traces.trace import PodShape, Trace, TraceNode, snapshot_of

HALF = PodShape(cpu_milli=1000, memory_mib=1024, devices=1, device_milli=500)
MOST = PodShape(cpu_milli=1000, memory_mib=1024, devices=1, device_milli=800)
PAIR = PodShape(cpu_milli=1000, memory_mib=1024, devices=2, device_milli=1000)
PLAIN = PodShape(cpu_milli=4000, memory_mib=1024)


def session_of(nodes: dict[str, int], *pods: PodShape, cpu_milli: int = 8000) -> Session:
    trace = Trace(
        name="small",
        nodes=tuple(
            TraceNode(name=name, cpu_milli=cpu_milli, memory_mib=65_536, devices=devices)
            for name, devices in nodes.items()
        ),
        pods=pods,
    )
    return open_session(snapshot_of(trace), strategy_config(FRAGMENTATION))


def score_of(session: Session) -> FragmentationScore:
    return next(score for score in session.hooks.scores if isinstance(score, FragmentationScore))


def allocate(session: Session) -> list[str]:
    run_action(session, Placer(session), ActionName.ALLOCATE)
    return [decision.node for decision in session.decisions if isinstance(decision, Bind)]


def test_the_score_is_what_the_placement_takes_away_from_fragmentation() -> None:
    # Half of the mix wants 0.8 of a device, half wants two whole ones; per device 100.
    session = session_of({"a": 1, "b": 2}, MOST, PAIR)
    score, tasks = score_of(session), session.state.tasks
    most = next(t for t in range(2) if tasks.task_class[t].is_shared)
    # a: 1 idle, useless to the pair: 0.5 fragmented; then 0.2 idle, useless to both.
    assert score.score(most, tasks.task_class[most], 0) == pytest.approx(DEVICE_SCORE * 0.3)
    # b: nothing fragmented; then 1.2 idle, of which 0.8-pods can use 1: 0.5 * 0.2 + 0.5 * 1.2.
    assert score.score(most, tasks.task_class[most], 1) == pytest.approx(-DEVICE_SCORE * 0.7)


def test_a_part_goes_where_it_leaves_whole_pairs_alone() -> None:
    assert sorted(allocate(session_of({"a": 2, "b": 1}, HALF, PAIR))) == ["a", "b"]
    assert allocate(session_of({"a": 2, "b": 1}, HALF, PAIR))[0] == "b"


def test_a_pod_without_gpu_leaves_the_cpus_beside_idle_devices_alone() -> None:
    # The pair fills "a"; what its CPUs can still serve harms no device. Beside "b" devices are idle.
    session = session_of({"a": 2, "b": 2}, PAIR, PLAIN, PLAIN)
    assert allocate(session) == ["a", "a", "b"]


def test_kept_scores_equal_those_computed_anew_when_nodes_fill() -> None:
    session = open_session(snapshot_of(generate(12, seed=1)), strategy_config(FRAGMENTATION))
    kept = score_of(session)
    classes = {task_class.index: task_class for task_class in session.state.tasks.task_class}
    for task_class in classes.values():
        kept.scores(0, task_class, session.all_nodes)
    allocate(session)
    anew = FragmentationScore(session.state, cpu=True, gpu=True)
    for task_class in classes.values():
        before = kept.scores(0, task_class, session.all_nodes).tolist()
        assert before == anew.scores(0, task_class, session.all_nodes).tolist()


def test_tasks_without_gpu_keep_their_own_strategy() -> None:
    arguments = NodePlacementArguments(cpu="spread", gpu=FRAGMENTATION)
    config = SchedulerConfig(
        plugins=tuple(
            PluginConfig("nodeplacement", arguments) if plugin.name == "nodeplacement" else plugin
            for plugin in DEFAULT_PLUGINS
        )
    )
    session = open_session(
        snapshot_of(Trace(name="t", nodes=generate(1).nodes, pods=(HALF, PLAIN))), config
    )
    concerned = [score_of(session).concerns(c) for c in session.state.tasks.task_class]
    assert sorted(concerned) == [False, True]
    assert session.hooks.placement is not None
    assert not session.hooks.placement.cpu_binpack

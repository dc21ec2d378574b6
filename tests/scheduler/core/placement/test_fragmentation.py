"""The strategy `fragmentation`: what it prefers, and that kept scores equal those computed anew."""

from __future__ import annotations

from dataclasses import replace

from scheduler.core.cluster.inputs import PlainRequest
from scheduler.core.config import DEFAULT_PLUGINS, PluginConfig, SchedulerConfig
from scheduler.core.cycle import open_session, run_action
from scheduler.core.decisions import ActionName, Bind
from scheduler.core.placement.place import Placer
from scheduler.core.plugins.fragmentation.score import FragmentationScore
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


def test_the_score_is_how_much_less_the_mix_can_use_in_steps_of_a_twentieth_of_a_device() -> None:
    # Half of the mix wants 0.8 of a device. The other half wants two whole ones, which only two of three
    # devices can serve: so it counts for sqrt(3 / 2) times as much.
    session = session_of({"a": 1, "b": 2}, MOST, PAIR)
    score, tasks = score_of(session), session.state.tasks
    most = next(t for t in range(2) if tasks.task_class[t].is_shared)
    # a: 1 device is of use to half of the mix, then the rest of it to nobody: 0.5, which is 10 steps.
    # Half a step more because enough CPUs stay beside the devices, and 1/256 less for each device.
    assert score.score(most, tasks.task_class[most], 0) == -10 + 0.5 - 1 / 256
    # b: 2 devices were of use to all, then 1 to half of the mix: 1 + 1.225 - 0.5, 34 steps and a half.
    assert score.score(most, tasks.task_class[most], 1) == -34 + 0.5 - 2 / 256


def test_a_mix_of_the_past_keeps_the_device_that_it_will_need() -> None:
    """A half of a device waits, for which all nodes are as good; pairs came yesterday, and one node can serve them."""
    session = session_of({"a": 2, "b": 1}, HALF)
    score, tasks = score_of(session), session.state.tasks
    alone = [score.score(0, tasks.task_class[0], node) for node in range(2)]
    assert alone[1] - alone[0] == 1 / 256  # only the number of devices differs
    past = {PlainRequest(1000.0, 1.0, 2): 9.0}
    cluster = replace(session.state.cluster_input, past_requests=past)
    session = open_session(cluster, strategy_config(FRAGMENTATION))
    score = score_of(session)
    after = [score.score(0, tasks.task_class[0], node) for node in range(2)]
    assert after[1] - after[0] > 10


def test_losses_that_differ_by_less_than_a_step_are_equal_and_the_first_node_by_name_is_filled() -> (
    None
):
    # A mix of many sizes: each node would be the best for another one if tiny losses counted.
    pods = [
        PodShape(cpu_milli=1000 + 10 * number, memory_mib=1024, devices=1, device_milli=1000)
        for number in range(4)
    ]
    assert allocate(session_of({"a": 4, "b": 4}, *pods)) == ["a"] * 4


def test_a_gpu_task_goes_where_cpus_stay_in_proportion_to_devices() -> None:
    large = PodShape(cpu_milli=6000, memory_mib=1024, devices=1, device_milli=1000)
    small = PodShape(cpu_milli=1000, memory_mib=1024, devices=1, device_milli=1000)
    # After the large one "a" has a quarter of its CPUs beside half of its devices.
    assert allocate(session_of({"a": 2, "b": 2}, large, small, large)) == ["a", "a", "b"]
    assert allocate(session_of({"a": 1, "b": 2}, small)) == ["a"]
    assert allocate(session_of({"a": 2, "b": 1}, small)) == ["b"]


def test_a_part_goes_where_it_leaves_whole_pairs_alone() -> None:
    assert sorted(allocate(session_of({"a": 2, "b": 1}, HALF, PAIR))) == ["a", "b"]
    assert allocate(session_of({"a": 2, "b": 1}, HALF, PAIR))[0] == "b"


def test_a_pod_without_gpu_leaves_the_cpus_beside_idle_devices_alone() -> None:
    # The pair fills "a"; what its CPUs can still serve harms no device. Beside "b" devices are idle.
    session = session_of({"a": 2, "b": 2}, PAIR, PLAIN, PLAIN)
    assert allocate(session) == ["a", "a", "b"]


def test_kept_scores_equal_those_computed_anew_when_nodes_fill() -> None:
    session = open_session(snapshot_of(generate(12, seed=1)), strategy_config(FRAGMENTATION))
    incremental = score_of(session)
    classes = {task_class.index: task_class for task_class in session.state.tasks.task_class}
    for task_class in classes.values():
        incremental.scores(0, task_class, session.all_nodes)
    allocate(session)
    anew = FragmentationScore(session.state, for_cpu_tasks=True, for_gpu_tasks=True)
    for task_class in classes.values():
        before = incremental.scores(0, task_class, session.all_nodes).tolist()
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

"""Shared devices: none above its capacity, and the whole-device ledger follows its groups."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.cluster.axis import GPU_ROW, PODS_ROW
from scheduler.core.cluster.gpus import leftovers
from scheduler.core.cluster.inputs import OtherPod, TaskInput
from scheduler.core.cluster.status import TaskStatus
from scheduler.core.config import DEFAULT_PLUGINS, PluginConfig, SchedulerConfig
from scheduler.core.cycle import run_action
from scheduler.core.decisions import ActionName, Bind, EvictReason, Nominate, ReceivedType
from scheduler.core.placement.place import Placer
from scheduler.core.session.session import Session
from scheduler.core.session.statement import Statement
from tests.builders import cluster, placements, request

ALLOCATE = ActionName.ALLOCATE
REASON = EvictReason(ActionName.RECLAIM)
SPREAD = SchedulerConfig(
    plugins=tuple(
        PluginConfig("gpuspread") if plugin.name == "gpupack" else plugin
        for plugin in DEFAULT_PLUGINS
        if plugin.name != "gpusharingorder"
    )
)


def _memory_held(session: Session) -> dict[tuple[int, str], float]:
    """Add up, from the tasks alone, what is held of each device by tasks that stay."""
    tasks, nodes = session.state.tasks, session.state.nodes
    memory_by_device: dict[tuple[int, str], float] = {}
    for task, node in enumerate(tasks.node):
        if node < 0 or tasks.status[task] in (TaskStatus.RELEASING, TaskStatus.NOMINATED):
            continue
        memory = tasks.task_class[task].memory_on(nodes.gpu_memory[node])
        for group in tasks.gpu_groups[task]:
            memory_by_device[node, group] = memory_by_device.get((node, group), 0.0) + memory
    return memory_by_device


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    asks=st.lists(
        st.one_of(
            st.sampled_from([0.1, 0.25, 0.33, 0.5, 0.6, 0.9, 1, 2]),
            st.tuples(st.sampled_from([0.3, 0.5]), st.integers(2, 3)),
            st.sampled_from([100, 350, 700]),
        ),
        max_size=25,
    ),
    spread=st.booleans(),
)
def test_no_device_above_its_capacity_under_any_order(asks: list[object], spread: bool) -> None:
    built = cluster().nodes(2, gpus=3, gpu_memory_mib=1000)
    for number, ask in enumerate(asks):
        if isinstance(ask, tuple):
            requests = request(ask[0], gpu_devices=ask[1])
        elif isinstance(ask, int) and ask >= 100:
            requests = request(0, gpu_memory_mib=ask)
        else:
            requests = request(float(ask))  # type: ignore[arg-type]
        built.pending(f"p{number}", request=requests)
    result = built.cycle(ALLOCATE, config=SPREAD if spread else None)
    memory = _memory_held(result)
    assert all(amount <= 1000 for amount in memory.values())
    nodes = result.state.nodes
    for node in range(2):
        shared = len({group for at, group in memory if at == node})
        assert nodes.idle[GPU_ROW, node] == 3 - shared - nodes.whole_gpus_used[node]


def test_two_halves_share_a_device_and_leave_the_others_whole() -> None:
    result = (
        cluster().node("n", gpus=2).pending("a", gpus=0.5).pending("b", gpus=0.5).cycle(ALLOCATE)
    )
    first, second = result.decisions
    assert isinstance(first, Bind)
    assert isinstance(second, Bind)
    assert first.gpu_groups == second.gpu_groups
    assert (first.received_type, first.gpu_count, first.gpu_portion) == (
        ReceivedType.FRACTION,
        1,
        0.5,
    )
    assert result.state.nodes.idle[GPU_ROW].tolist() == [1.0]


def test_spread_opens_whole_devices_first() -> None:
    built = cluster().node("n", gpus=2).pending("a", gpus=0.5).pending("b", gpus=0.5)
    first, second = built.cycle(ALLOCATE, config=SPREAD).decisions
    assert first.gpu_groups != second.gpu_groups  # type: ignore[union-attr]


def test_several_parts_are_on_distinct_devices_of_one_node() -> None:
    built = cluster().node("a", gpus=1).node("b", gpus=2)
    result = built.pending("p", request=request(0.5, gpu_devices=2)).cycle(ALLOCATE)
    [bind] = result.decisions
    assert isinstance(bind, Bind)
    assert bind.node == "b"
    assert len(set(bind.gpu_groups)) == 2
    assert result.policy.ledger.allocated[0][2] == 1.0


def test_gpu_memory_counts_rounded_up_on_its_node() -> None:
    built = cluster().node("n", gpus=1, gpu_memory_mib=16000)
    result = built.pending("p", request=request(0, gpu_memory_mib=9000)).cycle(ALLOCATE)
    [bind] = result.decisions
    assert isinstance(bind, Bind)
    assert bind.gpu_portion == 0.57
    assert result.policy.ledger.allocated[0][2] == 0.57


def test_gpu_memory_larger_than_the_device_fits_nowhere() -> None:
    built = cluster().node("n", gpus=4, gpu_memory_mib=1000)
    result = built.pending("p", request=request(0, gpu_memory_mib=1200)).cycle(ALLOCATE)
    assert result.decisions == []
    kinds = [reason.kind.value for reason in result.fit.tasks[0].reasons()]
    assert kinds == ["insufficient-gpu-memory"]


def test_a_device_to_join_is_preferred_to_a_fuller_node() -> None:
    built = cluster().nodes(2, gpus=4).running("r", ["n1", "n1"], gpus=1)
    built.running("s", ["n0"], gpus=0.5, gpu_groups=[("g",)])
    assert placements(built.pending("p", gpus=0.5).cycle(ALLOCATE))["p-0"] == "n0"


@pytest.mark.parametrize("nodes", [2, 20])
def test_a_task_without_gpu_goes_beside_a_shared_device_also_a_full_one(nodes: int) -> None:
    """It keeps the CPUs beside whole devices for tasks that need these; few and many nodes take two ways."""
    built = cluster().nodes(nodes, gpus=1, cpu=4).running("r", ["n1"], request=request(0, cpu=1))
    built.running("s", ["n0"], gpu_groups=[("g",)], request=request(0.5, cpu=0.5))
    built.running("t", ["n0"], gpu_groups=[("g",)], request=request(0.5, cpu=0.5))
    built.pending("first", request=request(0, cpu=1)).pending("next", request=request(0, cpu=1))
    placed = placements(built.cycle(ALLOCATE))
    assert (placed["first-0"], placed["next-0"]) == ("n0", "n0")


@pytest.mark.parametrize("nodes", [2, 20])
def test_a_task_without_gpu_goes_to_a_node_without_gpus_before_one_with_a_shared_device(
    nodes: int,
) -> None:
    """KAI sends it beside the shared device, where tasks with GPUs will miss the CPU (defect G)."""
    built = cluster().nodes(nodes, gpus=1, cpu=4).node("plain", gpus=0, cpu=2)
    built.running("s", ["n0"], gpu_groups=[("g",)], request=request(0.5, cpu=0.5))
    for name in ("first", "second", "third"):
        built.pending(name, request=request(0, cpu=1))
    placed = placements(built.cycle(ALLOCATE))
    assert [placed[f"{name}-0"] for name in ("first", "second", "third")] == [
        "plain",
        "plain",
        "n0",
    ]


def test_a_device_that_all_leave_draws_no_task_without_gpu() -> None:
    built = cluster().nodes(2, gpus=1, cpu=4).running("r", ["n1"], request=request(0, cpu=1))
    built.running("s", ["n0"], gpu_groups=[("g",)], request=request(0.5, cpu=0.5))
    session = built.pending("p", request=request(0, cpu=1)).session()
    statement = Statement(session, ActionName.RECLAIM)
    statement.evict(1, REASON)
    statement.keep()
    run_action(session, Placer(session), ALLOCATE)
    assert placements(session)["p-0"] == "n1"


def test_only_a_newly_shared_device_needs_a_slot_for_its_reservation() -> None:
    """KAI asks two slots also of a task that joins a device (defect H)."""
    built = cluster().node("n", gpus=2, pods=3).running("s", ["n"], gpus=0.5, gpu_groups=[("g",)])
    result = built.pending("joins", gpus=0.5).cycle(ALLOCATE)
    assert placements(result)["joins-0"] == "n"
    crowded = cluster().node("n", gpus=2, pods=1).pending("opens", gpus=0.5).cycle(ALLOCATE)
    assert crowded.decisions == []


def test_each_shared_device_takes_the_pod_slot_of_its_reservation_pod() -> None:
    built = cluster().node("n", gpus=4, pods=4)
    for name in "abc":
        built.pending(name, gpus=0.6)
    result = built.cycle(ALLOCATE)
    assert placements(result) == {"a-0": "n", "b-0": "n"}
    assert result.state.nodes.idle[PODS_ROW].tolist() == [0.0]


def test_a_task_joins_a_device_where_no_slot_is_left_to_share_another() -> None:
    built = cluster().node("n", gpus=2, pods=3).running("s", ["n"], gpus=0.5, gpu_groups=[("g",)])
    [bind] = built.pending("p", gpus=0.5).cycle(ALLOCATE, config=SPREAD).decisions
    assert isinstance(bind, Bind)
    assert bind.gpu_groups == ("g",)


def test_a_reservation_pod_and_its_device_take_one_slot_together() -> None:
    reservation = TaskInput(
        name="r",
        namespace="x",
        uid="r",
        status=TaskStatus.RUNNING,
        node="n",
        request=request(1),
        gpu_groups=("g",),
    )
    built = cluster().node("n", gpus=2, pods=10).running("s", ["n"], gpus=0.5, gpu_groups=[("g",)])
    built.other(OtherPod(task=reservation, is_reservation=True))
    assert built.session().state.nodes.idle[:, 0].tolist()[GPU_ROW : PODS_ROW + 1] == [1.0, 8.0]


def test_the_slot_of_a_reservation_pod_is_freed_with_its_device() -> None:
    built = cluster().node("n", gpus=2, pods=5)
    built.running("s", ["n", "n"], gpus=0.5, gpu_groups=[("g",), ("g",)], minimum=1)
    session = built.pending("p", gpus=0.5).session()
    nodes = session.state.nodes

    def slots() -> tuple[float, float]:
        return float(nodes.idle[PODS_ROW, 0]), float(nodes.releasing[PODS_ROW, 0])

    statement = Statement(session, ActionName.RECLAIM)
    assert slots() == (2.0, 0.0)
    statement.evict(0, REASON)
    assert slots() == (2.0, 1.0)
    statement.evict(1, REASON)
    assert slots() == (2.0, 3.0)
    statement.nominate(2, 0, ("new",))
    assert slots() == (2.0, 1.0)
    statement.discard()
    assert slots() == (2.0, 0.0)


def test_a_group_whose_tasks_all_leave_is_a_device_to_wait_for() -> None:
    built = cluster().node("n", gpus=1).running("s", ["n"], gpus=0.5, gpu_groups=[("g",)])
    session = built.pending("p", gpus=1).session()
    statement = Statement(session, ActionName.RECLAIM)
    statement.evict(0, REASON)
    nodes = session.state.nodes
    assert (nodes.idle[GPU_ROW, 0], nodes.releasing[GPU_ROW, 0]) == (0.0, 1.0)
    statement.unevict(0)
    assert (nodes.idle[GPU_ROW, 0], nodes.releasing[GPU_ROW, 0]) == (0.0, 0.0)
    statement.discard()


def test_a_group_partly_leaving_can_be_joined_but_not_at_once() -> None:
    built = cluster().node("n", gpus=1)
    built.running("s", ["n", "n"], gpus=0.5, gpu_groups=[("g",), ("g",)], minimum=1)
    session = built.pending("p", gpus=0.5).session()
    statement = Statement(session, ActionName.RECLAIM)
    statement.evict(1, REASON)
    statement.keep()
    run_action(session, Placer(session), ALLOCATE)
    nominated = session.decisions[-1]
    assert isinstance(nominated, Nominate)
    assert nominated.gpu_groups == ("g",)


def test_leftovers_count_parts_of_shared_devices() -> None:
    built = cluster().node("n", gpus=3, gpu_memory_mib=1000)
    built.running("s", ["n"], gpus=0.3, gpu_groups=[("g",)])
    session = built.session()
    idle, releasing = leftovers(session.state.nodes, 0)
    assert (round(idle, 9), releasing) == (2.7, 0.0)


def test_a_device_count_label_below_allocatable_does_not_free_a_device_twice() -> None:
    built = cluster().node("n", gpus=2, gpu_count_label=2)
    built.running("s", ["n"], gpus=0.5, gpu_groups=[("g",)])
    session = built.session()
    statement = Statement(session, ActionName.RECLAIM)
    statement.evict(0, REASON)
    statement.nominate(0, 0, ("other",), may_unevict=False)
    assert session.state.nodes.idle[GPU_ROW, 0] == 1.0
    statement.discard()
    session.state.validate()

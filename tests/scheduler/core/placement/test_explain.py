"""The counted reasons equal what asking every node alone gives, and are counted once per state."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.cluster.constraints import Taint
from scheduler.core.decisions import ActionName
from scheduler.core.placement.explain import count_rejections
from scheduler.core.placement.place import Placer
from scheduler.core.placement.room import NONE, room_on
from scheduler.core.session.fit import NodeReason, NodeReasonKind
from scheduler.core.session.nodeset import NodeSet
from tests.builders import cluster, request


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    sizes=st.lists(
        st.tuples(st.sampled_from([0, 1, 4]), st.sampled_from([1, 3]), st.booleans()),
        min_size=1,
        max_size=12,
    ),
    gpus=st.sampled_from([0, 0.5, 2]),
    cpu=st.sampled_from([0, 2, 4]),
)
def test_counts_equal_a_plain_loop(
    sizes: list[tuple[int, int, bool]], gpus: float, cpu: float
) -> None:
    built = cluster()
    for number, (node_gpus, node_cpu, tainted) in enumerate(sizes):
        taints = (Taint("t"),) if tainted else ()
        built.node(f"n{number}", gpus=node_gpus, cpu=node_cpu, taints=taints)
    session = built.pending("p", request=request(gpus, cpu=cpu)).session()
    task_class = session.state.tasks.task_class[0]
    rules = Placer(session).rules(task_class, 0)
    rejections = count_rejections(session, task_class, rules, session.all_nodes, 0, session.view(0))
    expected: Counter[NodeReason] = Counter()
    names = session.state.axis.names
    for node in range(len(sizes)):
        idle = session.state.nodes.idle[:, node]
        if room_on(session.state.nodes, task_class, task_class.must_be_free, node) == NONE:
            for row, amount in task_class.must_be_free:
                if idle[row] < amount:
                    expected[NodeReason(NodeReasonKind.INSUFFICIENT, names[row])] += 1
            if task_class.is_shared and idle[2] < task_class.devices:
                expected[NodeReason(NodeReasonKind.INSUFFICIENT, "gpu")] += 1
        elif session.state.nodes.inputs[node].taints:
            expected[NodeReason(NodeReasonKind.TAINT)] += 1
        elif task_class.is_shared:
            expected[NodeReason(NodeReasonKind.POD_SLOTS)] += 1
    assert rejections == expected


def test_tasks_turned_away_by_the_same_state_share_one_count() -> None:
    built = cluster().nodes(3, gpus=1)
    for number in range(3):
        built.running(f"r{number}", [f"n{number}"])
    for number in range(4):
        built.pending(f"p{number}")
    fit = built.cycle(ActionName.ALLOCATE).fit
    counts = [fit.tasks[task].counts[0] for task in range(3, 7)]
    assert all(count is counts[0] for count in counts)
    assert counts[0] == {NodeReason(NodeReasonKind.INSUFFICIENT, "gpu"): 3}


def test_a_smaller_request_with_the_same_constraints_is_refused_for_the_same_lasting_reasons() -> (
    None
):
    built = cluster().node("n0", 1, taints=(Taint("t"),)).node("n1", 4, taints=(Taint("t"),))
    session = built.node("n2", 1).pending("p", gpus=4).pending("q", gpus=2).session()
    placer, tasks = Placer(session), session.state.tasks
    large, small = (
        count_rejections(
            session,
            tasks.task_class[task],
            placer.rules(tasks.task_class[task], task),
            session.all_nodes,
            task,
            session.view(tasks.pod_group[task]),
        )
        for task in (0, 1)
    )
    lacks_gpus = NodeReason(NodeReasonKind.INSUFFICIENT, "gpu")
    assert large == small == {NodeReason(NodeReasonKind.TAINT): 1, lacks_gpus: 2}


def test_attempts_of_one_task_add_up() -> None:
    session = cluster().nodes(2, gpus=1).pending("p", gpus=2).session()
    task_class = session.state.tasks.task_class[0]
    rules = Placer(session).rules(task_class, 0)
    for nodes in ([0], [0, 1]):
        counts = count_rejections(session, task_class, rules, NodeSet.of(nodes), 0, session.view(0))
        session.fit.add_counts(0, counts)
    assert session.fit.tasks[0].reasons() == {NodeReason(NodeReasonKind.INSUFFICIENT, "gpu"): 3}

"""What a probe asks for: a part of a chunk must be exactly the next chunk of its partial view."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.cluster.inputs import PodGroupInput, PodSetInput, SubGroupInput, TaskInput
from scheduler.core.cluster.status import TaskStatus
from scheduler.core.solver.demand import partial_view
from tests.builders import cluster, request

#: minimum, running and pending tasks of one pod set
POD_SET = st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 3))
POD_SETS = st.lists(POD_SET, min_size=1, max_size=3)
#: Pod sets at the root and in inner subgroups, and how many members each subgroup may do without.
TREE = st.tuples(POD_SETS, st.lists(st.tuples(POD_SETS, st.integers(0, 3)), max_size=2))


def members_of(name: str, pod_sets) -> tuple[tuple[PodSetInput, ...], list[TaskInput]]:
    leaves, tasks = [], []
    for number, (minimum, running, pending) in enumerate(pod_sets):
        leaf = f"{name}{number}"
        leaves.append(PodSetInput(name=leaf, min_available=minimum))
        for index in range(running + pending):
            is_running = index < running
            tasks.append(
                TaskInput(
                    name=f"{leaf}-{index}",
                    uid=f"{leaf}-{index}",
                    subgroup=leaf,
                    request=request(1),
                    node="n0" if is_running else "",
                    status=TaskStatus.RUNNING if is_running else TaskStatus.PENDING,
                )
            )
    return tuple(leaves), tasks


@settings(max_examples=300, deadline=None)
@given(TREE, st.integers(0, 3))
def test_every_part_of_a_chunk_is_the_next_chunk_of_its_view(tree, spared) -> None:
    leaves, tasks = members_of("leaf", tree[0])
    inner = []
    for number, (pod_sets, inner_spared) in enumerate(tree[1]):
        inner_leaves, inner_tasks = members_of(f"g{number}-", pod_sets)
        required = max(0, len(inner_leaves) - inner_spared)
        inner.append(
            SubGroupInput(name=f"g{number}", min_subgroups=required, pod_sets=inner_leaves)
        )
        tasks += inner_tasks
    root = SubGroupInput(
        min_subgroups=max(0, len(leaves) + len(inner) - spared),
        pod_sets=leaves,
        subgroups=tuple(inner),
    )
    group = PodGroupInput(name="g", uid="g", queue="a", root=root, tasks=tuple(tasks))
    session = cluster().node("n0", 64).queue("a").group(group).session()
    view = session.view(0)
    if not view.is_ready_to_run():
        return
    chunk = view.next_chunk(include_evicted=True)
    for size in range(1, len(chunk) + 1):
        part = partial_view(session, view, chunk[:size])
        assert sorted(part.next_chunk(include_evicted=True)) == sorted(chunk[:size])

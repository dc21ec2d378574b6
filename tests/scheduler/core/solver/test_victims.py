"""The order in which running pod groups lose their place, and the batches they lose it in."""

from __future__ import annotations

from math import inf

from scheduler.core.cluster.status import TaskStatus
from scheduler.core.session.session import Session
from scheduler.core.solver.victims import VictimPool, VictimSequence
from tests.builders import ClusterBuilder, cluster


def sequence(session: Session, **options) -> VictimSequence:
    pool = VictimPool(session)
    keeps = options.pop("keeps", lambda _: True)
    return VictimSequence(session, pool, options.pop("leaves", pool.leaves), keeps, **options)


def names(victim_sequence: VictimSequence) -> list[str]:
    session = victim_sequence._session
    return [
        "+".join(session.state.tasks.inputs[t].name for t in batch.tasks)
        for batch in victim_sequence.all()
    ]


def one_queue() -> ClusterBuilder:
    return cluster().node("n0", 8).node("n1", 8).queue("a", 4)


def test_least_important_then_elastic_then_newest() -> None:
    session = (
        one_queue()
        .running("old", ["n0"], priority=50)
        .running("new", ["n0"], priority=50)
        .running("elastic", ["n0", "n1"], priority=50, minimum=1)
        .running("mid", ["n0"], priority=60)
        .running("protected", ["n0"], priority=100)
        .session()
    )
    assert names(sequence(session)) == ["elastic-1", "elastic-0", "new-0", "old-0", "mid-0"]


def test_what_is_left_of_a_pod_group_competes_again() -> None:
    session = (
        one_queue().running("elastic", ["n0"] * 3, minimum=1).running("newer", ["n0"]).session()
    )
    victim_sequence = sequence(session)
    assert names(victim_sequence) == ["elastic-2", "elastic-1", "newer-0", "elastic-0"]
    assert [batch.is_rest for batch in victim_sequence.batches] == [False, False, True, True]


def test_a_gang_is_one_batch_with_its_nodes_and_gpus() -> None:
    session = one_queue().running("gang", ["n0", "n1"], gpus=2).session()
    batch = sequence(session).get(0)
    assert (len(batch.tasks), batch.nodes, batch.gpus) == (2, (0, 1), (2.0, 2.0))
    assert sequence(session).get(1) is None


def test_the_most_over_served_queue_loses_until_they_are_even() -> None:
    built = cluster().node("n0", 16).queue("a", 2).queue("b", 2)
    for number in range(5):
        built.running(f"a{number}", ["n0"], queue="a")
    for number in range(3):
        built.running(f"b{number}", ["n0"], queue="b")
    order = names(sequence(built.session()))
    # What would be left of each share: a 4/5, then b 2/3, a 3/5, a 2/5, b 1/3, a 1/5.
    assert order[:6] == ["a4-0", "b2-0", "a3-0", "a2-0", "b1-0", "a1-0"]


def test_queues_compete_as_subtrees() -> None:
    built = (
        cluster()
        .node("n0", 16)
        .queue("x", 2)
        .queue("y", 6)
        .queue("x1", 1, parent="x")
        .queue("x2", 1, parent="x")
        .queue("y1", 6, parent="y")
    )
    for queue, count in (("x1", 2), ("x2", 3), ("y1", 4)):
        for number in range(count):
            built.running(f"{queue}-{number}", ["n0"], queue=queue)
    order = names(sequence(built.session()))
    assert order[:5] == ["x2-2-0", "x1-1-0", "x2-1-0", "x2-0-0", "x1-0-0"]
    assert sorted(order[-4:]) == sorted(f"y1-{n}-0" for n in range(4))


def test_only_so_many_pod_groups_are_taken_the_first_in_order() -> None:
    session = (
        one_queue()
        .running("a", ["n0"])
        .running("b", ["n0", "n0"], minimum=1)
        .running("c", ["n0"])
        .session()
    )
    assert names(sequence(session, most_groups=2)) == ["b-1", "c-0", "b-0"]
    assert names(sequence(session, most_groups=0)) == []


def test_pod_groups_a_rule_keeps_back_are_passed_over() -> None:
    session = one_queue().running("a", ["n0"]).running("b", ["n0"]).session()
    first = session.state.pod_groups.inputs[0].name
    kept_back = next(i for i, g in enumerate(session.state.pod_groups.inputs) if g.name == "b")
    assert first == "a"
    assert names(sequence(session, keeps=lambda view: view.pod_group != kept_back)) == ["a-0"]


def test_settled_elastic_tasks_are_passed_over_and_the_rest_competes() -> None:
    session = one_queue().running("elastic", ["n0"] * 3, minimum=1).session()
    settled = frozenset(sequence(session).get(0).tasks)
    assert names(sequence(session, passed_over=settled)) == ["elastic-1", "elastic-0"]


def test_a_pool_follows_changes() -> None:
    session = (
        one_queue().running("a", ["n0"], priority=50).running("b", ["n0"], priority=60).session()
    )
    pool = VictimPool(session)
    queue = session.state.queues.index_of["a"]
    assert pool.lowest_priority(queue) == 50
    groups = session.state.pod_groups
    a = next(i for i, pod_group in enumerate(groups.inputs) if pod_group.name == "a")
    groups.active_allocated[a] = 0
    pool.refresh([a])
    assert [group for _, group in pool.entries(queue)] == [1 - a]
    assert pool.lowest_priority(queue) == 60
    groups.active_allocated[a] = 1
    pool.refresh([a])
    assert pool.lowest_priority(queue) == 50
    groups.active_allocated[a] = groups.active_allocated[1 - a] = 0
    pool.refresh([a, 1 - a])
    assert pool.leaves == []
    assert pool.lowest_priority(queue) == inf
    assert pool.entries(queue) == ()


def test_a_session_keeps_its_pool_and_catches_up() -> None:
    session = one_queue().running("a", ["n0"]).running("b", ["n0"]).session()
    pool = VictimPool.of(session)
    queue = session.state.queues.index_of["a"]
    assert len(pool.entries(queue)) == 2
    session.state.set_status(0, TaskStatus.RELEASING)
    assert VictimPool.of(session) is pool
    assert [group for _, group in pool.entries(queue)] == [1]
    session.state.set_status(0, TaskStatus.RUNNING)
    assert [group for _, group in VictimPool.of(session).entries(queue)] == [0, 1]


def test_a_surplus_task_is_one_that_this_cycle_has_not_bound() -> None:
    session = one_queue().running("elastic", ["n0", "n0"], minimum=1).session()
    session.state.tasks.bound_now.add(1)
    assert names(sequence(session)) == ["elastic-0"]


def test_a_queue_competes_with_its_next_pod_group_after_one_bound_in_this_cycle() -> None:
    built = cluster().node("n0", 16).queue("a", 8).queue("b", 8)
    built.running("large", ["n0"], queue="a", gpus=4).running("bound", ["n0"], queue="a")
    for number in range(3):
        built.running(f"b{number}", ["n0"], queue="b")
    session = built.session()
    [bound] = [t for t, task in enumerate(session.state.tasks.inputs) if task.name == "bound-0"]
    assert names(sequence(session))[0] == "bound-0"
    session.state.tasks.bound_now.add(bound)
    # What would be left of each share: a 1/8 without the large one, b 2/8.
    assert names(sequence(session))[0] == "b2-0"


def test_what_a_cycle_binds_is_not_evicted_in_it() -> None:
    built = cluster().node("n0", 3).queue("a", 0).running("old", ["n0"]).pending("new")
    decisions = built.queue("b", 3).pending("wide", gpus=3).cycle().decisions
    assert [type(decision).__name__ for decision in decisions] == ["Bind"]

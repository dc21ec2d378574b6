"""Semi-preemptible pod groups: what is charged as non-preemptible, and what may be evicted."""

from __future__ import annotations

import random

import pytest

from scheduler.core.arrays import GPU_INDEX
from scheduler.core.cluster.inputs import PodGroupInput, PodSetInput, SubGroupInput, TaskInput
from scheduler.core.cluster.status import TaskStatus
from scheduler.core.decisions import ActionName, EvictReason
from scheduler.core.session.minimums import protected_tasks
from scheduler.core.session.session import Session
from scheduler.core.session.statement import Statement
from scheduler.tools.simulate.living import LivingCluster
from tests.builders import cluster, fingerprint, request
from tests.scheduler.stability.cases import live, one_by_one
from tests.scheduler.stability.watch import Watch, running_count

WHY = EvictReason(action=ActionName.RECLAIM)


def firm_gpus(session: Session) -> float:
    return session.policy.ledger.allocated_non_preemptible[0][GPU_INDEX]


def semi(running: int, minimum: int) -> Session:
    built = cluster().node("n0", 8).queue("q", 8)
    built.running("semi", ["n0"] * running, minimum=minimum, protects_minimum=True)
    return built.session()


@pytest.mark.parametrize(
    ("running", "minimum", "firm"), [(4, 2, 2), (2, 2, 2), (1, 2, 1), (3, 0, 0)]
)
def test_only_the_minimum_counts_as_non_preemptible(running: int, minimum: int, firm: int) -> None:
    assert firm_gpus(semi(running, minimum)) == firm


@pytest.mark.parametrize(
    ("running", "minimum", "surplus"), [(4, 2, 1), (2, 2, 0), (1, 2, 0), (3, 0, 1)]
)
def test_a_batch_is_one_surplus_task_or_none(running: int, minimum: int, surplus: int) -> None:
    assert len(semi(running, minimum).view(0).surplus_batch()) == surplus


def test_the_charge_follows_evictions_and_is_undone_with_them() -> None:
    session = semi(3, 2)
    before = fingerprint(session)
    statement = Statement(session, ActionName.RECLAIM)
    statement.evict(2, WHY)
    assert firm_gpus(session) == 2
    statement.evict(1, WHY)
    assert firm_gpus(session) == 1
    statement.unevict(1)
    assert firm_gpus(session) == 2
    statement.discard()
    assert fingerprint(session) == before


def test_a_nominated_task_does_not_make_a_running_one_surplus() -> None:
    session = semi(2, 2)
    session.state.set_status(0, TaskStatus.NOMINATED)
    session.state.journal.forget()
    assert session.view(0).surplus_batch() == []


def test_the_required_subgroups_are_protected_and_the_others_are_not() -> None:
    root = SubGroupInput(
        min_subgroups=1,
        pod_sets=(PodSetInput(name="x", min_available=2), PodSetInput(name="y", min_available=2)),
    )
    tasks = tuple(
        TaskInput(
            name=f"{name}{number}",
            uid=f"{name}{number}",
            subgroup=name,
            status=TaskStatus.RUNNING,
            node="n0",
            request=request(1),
        )
        for name in ("x", "y")
        for number in range(2)
    )
    group = PodGroupInput(
        name="g", uid="g", queue="q", root=root, tasks=tasks, protects_minimum=True
    )
    session = cluster().node("n0", 8).queue("q", 8).group(group).session()
    assert firm_gpus(session) == 2
    assert protected_tasks(session.view(0)) == [0, 1]
    assert session.view(0).surplus_batch() == [2, 3]


def contest(seed: int) -> LivingCluster:
    """Semi-preemptible, firm and preemptible work of three queues, more than there is room for."""
    drawn = random.Random(seed)
    built = cluster().nodes(2, 6)
    for name in ("a", "b", "c"):
        built.queue(name, drawn.choice((2, 4, 6)))
    for number in range(9):
        tasks = drawn.randint(1, 5)
        built.pending(
            f"w{number}",
            tasks,
            queue=drawn.choice("abc"),
            minimum=drawn.randint(0, tasks),
            priority=drawn.choice((50, 75, 125)),
            preemptible=(kind := drawn.choice(("semi", "firm", "preemptible"))) != "firm",
            protects_minimum=kind == "semi",
        )
    return live(built, one_by_one)


def firm_of_queues(session: Session) -> dict[int, float]:
    """Return what the ledger should say, counted anew."""
    groups = session.state.pod_groups
    totals = dict.fromkeys(range(len(session.state.queues)), 0.0)
    for index, queue in enumerate(groups.queue):
        view = session.view(index)
        if index in groups.semi_preemptible:
            totals[queue] += session.held_by(protected_tasks(view))[GPU_INDEX]
        elif not groups.preemptible[index]:
            totals[queue] += session.held_by(view.all_active_tasks())[GPU_INDEX]
    return totals


@pytest.mark.parametrize("seed", range(6))
def test_no_minimum_is_broken_and_all_of_them_are_within_quota(seed: int) -> None:
    here, watch = contest(seed), Watch()
    least = {
        name: group.root.pod_sets[0].min_available
        for name, group in here.groups.items()
        if group.protects_minimum
    }
    started: set[str] = set()
    for _ in range(25):
        session = here.step()
        watch.look(here, session)
        ledger = session.policy.ledger
        firm = firm_of_queues(session)
        for queue, row in enumerate(ledger.allocated_non_preemptible):
            assert row[GPU_INDEX] == firm[queue]
            assert row[GPU_INDEX] <= ledger.quotas[queue][GPU_INDEX]
        started |= {name for name in least if running_count(here, name) >= least[name]}
        assert all(running_count(here, name) >= least[name] for name in started)
    assert watch.broken == []

"""Stale gangs: when the clock starts, when it stops, and what the eviction leaves behind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.core.cluster.inputs import PodGroupInput, PodSetInput, SubGroupInput, TaskInput
from scheduler.core.cluster.status import TaskStatus
from scheduler.core.config import SchedulerConfig
from scheduler.core.decisions import ActionName, Evict
from tests.builders import cluster, request

STALE = ActionName.STALE_GANG_EVICTION
RUNNING, PENDING = TaskStatus.RUNNING, TaskStatus.PENDING


def gang(
    *tasks: tuple[TaskStatus, str], root: SubGroupInput | None = None, **options
) -> PodGroupInput:
    members = tuple(
        TaskInput(
            name=f"g-{n}",
            uid=f"g-{n}",
            status=status,
            node="n0" if status is not PENDING else "",
            subgroup=subgroup,
            request=request(1),
        )
        for n, (status, subgroup) in enumerate(tasks)
    )
    root = root or SubGroupInput(pod_sets=(PodSetInput(min_available=2),))
    return PodGroupInput(name="g", uid="g", queue="a", root=root, tasks=members, **options)


def run(pod_group: PodGroupInput, grace_s: float = 60.0):
    built = cluster().node("n0", 4).queue("a").group(pod_group)
    return built.cycle(STALE, config=SchedulerConfig(staleness_grace_s=grace_s))


def evicted(result) -> list[str]:
    return [decision.task.name for decision in result.decisions if isinstance(decision, Evict)]


def test_the_first_cycle_notes_the_time_and_waits() -> None:
    result = run(gang((RUNNING, "default"), (PENDING, "default")))
    assert evicted(result) == []
    assert result.state.pod_groups.stale_since == [0.0]


def test_after_the_grace_everything_goes_with_its_reason_and_time() -> None:
    result = run(gang((RUNNING, "default"), (PENDING, "default"), stale_since=-60.0))
    [decision] = result.decisions
    assert (decision.reason.action, decision.reason.gang_size) == (STALE, 1)
    assert (decision.reason.stale_subgroup, decision.reason.stale_minimum) == ("", 2)
    assert result.state.pod_groups.last_eviction == [0.0]


def test_no_grace_evicts_at_once() -> None:
    assert evicted(run(gang((RUNNING, "default"), (PENDING, "default")), 0.0)) == ["g-0"]


@pytest.mark.parametrize(("own", "shard"), [(-1.0, 0.0), (None, -1.0), (100.0, 0.0)])
def test_a_grace_that_is_not_over_keeps_the_gang(own, shard) -> None:
    pod_group = gang(
        (RUNNING, "default"), (PENDING, "default"), stale_since=-99.0, staleness_grace_s=own
    )
    assert evicted(run(pod_group, shard)) == []


def test_a_gang_that_is_whole_again_is_forgotten() -> None:
    result = run(gang((RUNNING, "default"), (RUNNING, "default"), stale_since=-999.0))
    assert evicted(result) == []
    assert result.state.pod_groups.stale_since == [None]


def test_a_gang_with_nothing_on_nodes_is_forgotten() -> None:
    result = run(gang((PENDING, "default"), (PENDING, "default"), stale_since=-999.0))
    assert result.state.pod_groups.stale_since == [None]


def test_a_finishing_gang_is_left_alone() -> None:
    result = run(gang((TaskStatus.SUCCEEDED, "default"), (RUNNING, "default"), stale_since=-999.0))
    assert evicted(result) == []


def test_pods_that_are_leaving_still_count_but_need_no_eviction() -> None:
    leaving = (TaskStatus.RELEASING, "default")
    assert evicted(run(gang(leaving, (RUNNING, "default"), stale_since=-999.0))) == []
    assert evicted(run(gang(leaving, (PENDING, "default"), stale_since=-999.0))) == []


def test_an_optional_subgroup_may_be_empty() -> None:
    sets = tuple(PodSetInput(name=name, min_available=1) for name in ("x", "y", "z"))
    tasks = ((RUNNING, "x"), (RUNNING, "y"), (PENDING, "z"))
    optional = SubGroupInput(min_subgroups=2, pod_sets=sets)
    assert evicted(run(gang(*tasks, root=optional, stale_since=-999.0))) == []
    needed = run(gang(*tasks, root=SubGroupInput(pod_sets=sets), stale_since=-999.0))
    assert evicted(needed) == ["g-0", "g-1"]
    [first, _] = needed.decisions
    assert (first.reason.stale_subgroup, first.reason.stale_minimum) == ("z", 1)


#: A core of one pod, and three optional workers.
OPTIONAL_WORKERS = SubGroupInput(
    min_subgroups=1,
    pod_sets=(
        PodSetInput(name="core", min_available=1),
        PodSetInput(name="workers", min_available=3),
        PodSetInput(name="more", min_available=2),
    ),
)
CORE, WORKER, MORE = (RUNNING, "core"), (RUNNING, "workers"), (RUNNING, "more")


def test_only_what_is_left_of_an_optional_subgroup_goes() -> None:
    waiting = (PENDING, "workers")
    pod_group = gang(
        CORE, WORKER, WORKER, waiting, MORE, MORE, root=OPTIONAL_WORKERS, stale_since=-999.0
    )
    result = run(pod_group)
    assert evicted(result) == ["g-1", "g-2"]
    reason = result.decisions[0].reason
    assert (reason.stale_subgroup, reason.stale_minimum, reason.gang_size) == ("workers", 3, 2)


def test_every_broken_optional_subgroup_goes_after_the_grace_only() -> None:
    broken = gang(CORE, WORKER, MORE, root=OPTIONAL_WORKERS)
    first = run(broken)
    assert evicted(first) == []
    assert first.state.pod_groups.stale_since == [0.0]
    assert evicted(run(replace(broken, stale_since=-60.0))) == ["g-1", "g-2"]


def test_optional_subgroups_that_are_whole_or_empty_stay() -> None:
    whole = gang(CORE, WORKER, WORKER, WORKER, root=OPTIONAL_WORKERS, stale_since=-999.0)
    result = run(whole)
    assert evicted(result) == []
    assert result.state.pod_groups.stale_since == [None]


def test_a_broken_subgroup_inside_a_whole_one_goes_alone() -> None:
    inner = SubGroupInput(
        name="inner",
        min_subgroups=1,
        pod_sets=(
            PodSetInput(name="x", min_available=1),
            PodSetInput(name="y", min_available=2),
        ),
    )
    root = SubGroupInput(subgroups=(inner,), pod_sets=(PodSetInput(name="core", min_available=1),))
    tasks = (CORE, (RUNNING, "x"), (RUNNING, "y"))
    assert evicted(run(gang(*tasks, root=root, stale_since=-999.0))) == ["g-2"]


def test_an_optional_group_that_lacks_a_member_goes_with_all_its_pods() -> None:
    inner = SubGroupInput(
        name="inner",
        pod_sets=(
            PodSetInput(name="x", min_available=1),
            PodSetInput(name="y", min_available=1),
        ),
    )
    core = PodSetInput(name="core", min_available=1)
    root = SubGroupInput(min_subgroups=1, subgroups=(inner,), pod_sets=(core,))
    pod_group = gang(CORE, (RUNNING, "x"), root=root, stale_since=-999.0)
    result = run(pod_group)
    assert evicted(result) == ["g-1"]
    assert result.decisions[0].reason.stale_subgroup == "y"


def test_a_gang_without_its_core_goes_with_its_whole_optional_subgroups() -> None:
    root = replace(OPTIONAL_WORKERS, min_subgroups=None)
    result = run(gang(CORE, MORE, MORE, root=root, stale_since=-999.0))
    assert evicted(result) == ["g-0", "g-1", "g-2"]

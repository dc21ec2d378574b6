"""Which pod groups are alike, and which of them are easier than one that failed."""

from __future__ import annotations

from scheduler.core.cluster.constraints import TaskConstraints, Toleration
from scheduler.core.cluster.inputs import (
    PodGroupInput,
    PodSetInput,
    SubGroupInput,
    TaskInput,
    TopologyConstraint,
)
from scheduler.core.config import SchedulerConfig
from scheduler.core.session.session import Session
from scheduler.core.solver.signatures import FailedSearches
from tests.builders import cluster, request

GPU_TAINT = TaskConstraints(tolerations=(Toleration(key="gpu"),))


def session(*groups: tuple[str, dict], config: SchedulerConfig | None = None) -> Session:
    built = cluster().node("n0").queue("a")
    for name, options in groups:
        tasks = options.pop("tasks", 1)
        built.pending(name, tasks, **options)
    return built.session(config)


def after_failure(here: Session, failed: str, later: str, scope: int = 0) -> bool:
    store = FailedSearches(here)
    index = {
        pod_group.name: number for number, pod_group in enumerate(here.state.pod_groups.inputs)
    }
    store.note_failure(0, here.view(index[failed]))
    return store.is_worth_a_search(scope, here.view(index[later]))


def test_the_same_demand_is_not_worth_a_second_search() -> None:
    here = session(("one", {"tasks": 2}), ("two", {"tasks": 2}))
    assert not after_failure(here, "one", "two")
    assert after_failure(here, "one", "two", scope=1)


def test_fewer_or_smaller_tasks_are_easier() -> None:
    """How many pods wait is part of the signature, so another number is another matter."""
    here = session(
        ("failed", {"tasks": 3, "gpus": 2}),
        ("fewer", {"tasks": 2, "gpus": 4}),
        ("smaller", {"tasks": 3, "gpus": 1}),
        ("more", {"tasks": 4, "gpus": 2}),
        ("larger", {"tasks": 3, "gpus": 4}),
        ("more cpu", {"tasks": 3, "request": request(2, cpu=8)}),
    )
    worth = {
        name: after_failure(here, "failed", name)
        for name in ("fewer", "smaller", "more", "larger", "more cpu")
    }
    assert worth == {
        "fewer": True,
        "smaller": True,
        "more": True,
        "larger": False,
        "more cpu": False,
    }


def test_other_constraints_are_searched_again() -> None:
    here = session(("plain", {}), ("tolerant", {"constraints": GPU_TAINT}))
    assert after_failure(here, "plain", "tolerant")


def test_claims_count_only_where_storage_is_scheduled() -> None:
    claims = [{"constraints": TaskConstraints(volume_claims=(name,))} for name in ("x", "y")]
    plain = session(("one", dict(claims[0])), ("two", dict(claims[1])))
    assert not after_failure(plain, "one", "two")
    storage = session(
        ("one", dict(claims[0])),
        ("two", dict(claims[1])),
        config=SchedulerConfig(schedule_csi_storage=True),
    )
    assert after_failure(storage, "one", "two")


def test_only_an_easier_failure_replaces_the_one_known() -> None:
    here = session(
        ("hard", {"tasks": 3, "gpus": 4}),
        ("easy", {"tasks": 2, "gpus": 1}),
        ("mid", {"tasks": 2, "gpus": 2}),
    )
    store = FailedSearches(here)
    hard, easy, mid = (here.view(n) for n in range(3))
    store.note_failure(0, easy)
    store.note_failure(0, hard)
    assert not store.is_worth_a_search(0, mid)
    store = FailedSearches(here)
    store.note_failure(0, hard)
    store.note_failure(0, easy)
    assert not store.is_worth_a_search(0, mid)


def test_topology_wishes_of_every_level_are_part_of_it() -> None:
    def nested(name: str, level: str) -> PodGroupInput:
        constraint = TopologyConstraint(topology="t", required_level=level)
        inner = SubGroupInput(
            name="g", topology=constraint, pod_sets=(PodSetInput(name="s", min_available=1),)
        )
        task = TaskInput(name=name, uid=name, subgroup="s", request=request(1))
        return PodGroupInput(
            name=name, uid=name, queue="a", root=SubGroupInput(subgroups=(inner,)), tasks=(task,)
        )

    built = cluster().node("n0").queue("a")
    for name, level in (("rack-1", "rack"), ("rack-2", "rack"), ("zone", "zone")):
        built.group(nested(name, level))
    here = built.session()
    assert not after_failure(here, "rack-1", "rack-2")
    assert after_failure(here, "rack-1", "zone")

"""The search as a whole: what is found and what is left alone."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, repeat
from math import inf

import pytest

from scheduler.core.cluster.constraints import (
    NO_CONSTRAINTS,
    Taint,
    TaskConstraints,
    Toleration,
)
from scheduler.core.cluster.device_inputs import DeviceClass, DeviceInputs
from scheduler.core.cluster.inputs import (
    PodGroupInput,
    PodSetInput,
    SubGroupInput,
    TaskInput,
    TaskRequest,
    TopologyConstraint,
    TopologyInput,
)
from scheduler.core.cluster.status import TaskStatus
from scheduler.core.config import DEFAULT_PLUGINS, SchedulerConfig
from scheduler.core.cycle import run_action
from scheduler.core.decisions import ActionName, Evict, Nominate
from scheduler.core.options import SearchBudgets
from scheduler.core.placement.place import Placer
from scheduler.core.session.fit import DelayRefusal, GroupFit, GroupReason
from scheduler.core.solver import search
from tests.builders import ClusterBuilder, cluster, fingerprint, request, status_of

CONSOLIDATION, RECLAIM, PREEMPT = ActionName.CONSOLIDATION, ActionName.RECLAIM, ActionName.PREEMPT


def victims(result) -> list[str]:
    return [decision.task.name for decision in result.decisions if isinstance(decision, Evict)]


def nominated(result) -> dict[str, str]:
    return {
        decision.task.name: decision.node
        for decision in result.decisions
        if isinstance(decision, Nominate)
    }


def two_queues(nodes: int = 2, gpus: int = 4) -> ClusterBuilder:
    half = nodes * gpus / 2
    return cluster().nodes(nodes, gpus).queue("a", half).queue("b", half)


def filled(nodes: int = 2, gpus: int = 4) -> ClusterBuilder:
    built = two_queues(nodes, gpus)
    for number in range(nodes * gpus):
        built.running(f"a{number}", [f"n{number % nodes}"], queue="a")
    return built


def test_a_gang_takes_whole_nodes_and_no_more() -> None:
    result = filled().pending("gang", 1, queue="b", gpus=4).cycle(RECLAIM)
    assert victims(result) == ["a7-0", "a5-0", "a3-0", "a1-0"]
    assert nominated(result) == {"gang-0": "n1"}


def test_decisions_name_both_sides() -> None:
    result = filled().pending("want", 1, queue="b").cycle(RECLAIM)
    [evict] = [decision for decision in result.decisions if isinstance(decision, Evict)]
    reason = evict.reason
    assert (reason.action, reason.gang_size, reason.evictor) == (RECLAIM, 1, "want")
    assert (reason.victim_side.name, reason.evictor_side.name) == ("a", "b")
    assert reason.victim_side.allocated[2] == 8.0
    assert reason.evictor_side.fair_share[2] == 1.0
    report = result.reports[0].search
    assert (report.filtered, report.simulated) == (1, 1)
    assert report.results == {("solved", False): 1}
    assert report.emitted == {"NodeLocalGreedy": 1}
    assert report.trials == [("NodeLocalGreedy", "solved", 0.0)]


def test_cousins_are_named_by_their_parents() -> None:
    built = (
        cluster()
        .node("n0", 2)
        .queue("x", 1)
        .queue("y", 1)
        .queue("x1", 1, parent="x")
        .queue("y1", 1, parent="y")
    )
    built.running("r0", ["n0"], queue="x1").running("r1", ["n0"], queue="x1").pending(
        "want", queue="y1"
    )
    [evict] = [
        decision for decision in built.cycle(RECLAIM).decisions if isinstance(decision, Evict)
    ]
    assert (evict.reason.victim_side.name, evict.reason.evictor_side.name) == ("x", "y")


def test_a_search_that_fails_leaves_no_trace() -> None:
    session = filled().pending("gang", 5, queue="b").session()
    before = fingerprint(session)
    report = run_action(session, Placer(session), RECLAIM)
    assert fingerprint(session) == before
    assert session.decisions == []
    assert (report.attempted, report.succeeded) == (0, 0)


def test_without_fair_shares_nobody_reclaims() -> None:
    plain = SchedulerConfig(plugins=tuple(p for p in DEFAULT_PLUGINS if p.name != "proportion"))
    assert filled().pending("want", queue="b").cycle(RECLAIM, config=plain).decisions == []


def test_without_generators_there_is_no_search() -> None:
    plain = SchedulerConfig(
        plugins=tuple(p for p in DEFAULT_PLUGINS if not p.name.startswith("sg-"))
    )
    result = filled().pending("want", queue="b").cycle(RECLAIM, config=plain)
    assert result.decisions == []
    assert result.reports[0].search.results == {("no_generator", False): 1}


def test_time_that_is_over_ends_the_action() -> None:
    config = SchedulerConfig(budgets=SearchBudgets(default_action_s=6.0, max_pod_group_s=inf))
    built = filled()
    for number in range(4):
        built.pending(f"b{number}", queue="b")
    session = built.session(config)
    stop_checks = 0

    def clock() -> float:
        """Stand still for the first pod group, then let the action's time run out in a search."""
        nonlocal stop_checks
        stop_checks += bool(session.decisions)
        return 0.0 if not stop_checks else 5.0 if stop_checks == 1 else 50.0

    session.clock = clock
    report = run_action(session, Placer(session), RECLAIM)
    assert (report.attempted, report.succeeded) == (2, 1)
    assert report.search.results["deadline_exhausted", False] == 1


def test_no_time_at_all_attempts_nothing() -> None:
    clock = chain([0.0, 0.0], repeat(5.0))
    config = SchedulerConfig(budgets=SearchBudgets(default_action_s=1.0))
    session = filled().pending("b0", queue="b").pending("b1", queue="b").session(config)
    session.clock = lambda: next(clock)
    report = run_action(session, Placer(session), RECLAIM)
    assert report.search.results == {("not_attempted", False): 1}
    assert report.attempted == 1


def test_a_generator_without_time_hands_over_to_the_next() -> None:
    config = SchedulerConfig(
        budgets=SearchBudgets(
            default_action_s=inf,
            max_pod_group_s=inf,
            generator_s={"NodeLocalGreedy": 1e-9, "MultiNodeGang": inf},
        )
    )
    session = filled().pending("want", queue="b").session(config)
    ticks = iter(range(1000))
    session.clock = lambda: float(next(ticks))
    report = run_action(session, Placer(session), RECLAIM)
    assert report.succeeded == 1
    assert [
        decision.task.name for decision in session.decisions if isinstance(decision, Evict)
    ] == ["a7-0"]


def test_like_pod_groups_are_not_searched_again_unless_easier() -> None:
    built = cluster().nodes(2, 4).queue("a").queue("b", 4)
    for node in ("n0", "n1"):
        built.running(f"protected-{node}", [node], gpus=3, queue="a", priority=100)
    built.running("r", ["n0"], queue="a")
    for number in range(3):
        built.pending(f"wide{number}", gpus=4, queue="b")
    built.pending("narrow", gpus=1, queue="b")
    result = built.cycle(RECLAIM)
    assert result.reports[0].search.results["generators_exhausted", False] == 1
    everyone = built.cycle(RECLAIM, config=SchedulerConfig(use_scheduling_signatures=False))
    assert everyone.reports[0].search.results["generators_exhausted", False] == 3
    assert nominated(result) == nominated(everyone) == {"narrow-0": "n0", "r-0": "n1"}


def test_the_preemption_delay_is_recorded() -> None:
    result = (
        filled().pending("want", queue="b", preemption_delay_s=600.0, created=-100.0).cycle(RECLAIM)
    )
    assert result.decisions == []
    group = next(i for i, g in enumerate(result.state.pod_groups.inputs) if g.name == "want")
    assert result.fit.pod_groups[group] == [
        GroupFit(GroupReason.PREEMPTION_DELAY, DelayRefusal(600.0, 500.0))
    ]


def test_a_delay_counts_anew_from_the_last_eviction() -> None:
    built = filled().pending(
        "want", queue="b", preemption_delay_s=60.0, created=-100.0, last_eviction=-10.0
    )
    assert built.cycle(RECLAIM).decisions == []


def test_elastic_growth_reclaims_one_step() -> None:
    built = cluster().nodes(1, 4).queue("a", 2).queue("b", 2)
    for number in range(3):
        built.running(f"a{number}", ["n0"], queue="a")
    tasks = tuple(
        TaskInput(
            name=f"e-{n}",
            uid=f"e-{n}",
            request=request(1),
            node="n0" if n == 0 else "",
            status=TaskStatus.RUNNING if n == 0 else TaskStatus.PENDING,
        )
        for n in range(3)
    )
    built.group(
        PodGroupInput(
            name="e",
            uid="e",
            queue="b",
            root=SubGroupInput(pod_sets=(PodSetInput(min_available=1),)),
            tasks=tasks,
        )
    )
    result = built.cycle(RECLAIM)
    assert victims(result) == ["a2-0"]
    assert nominated(result) == {"e-1": "n0"}


def test_settled_elastic_victims_stay_settled() -> None:
    built = cluster().nodes(1, 6).queue("a", 2).queue("b", 4)
    built.running("elastic", ["n0"] * 6, minimum=1, queue="a")
    result = built.pending("gang", 4, queue="b").cycle(RECLAIM)
    assert sorted(victims(result)) == ["elastic-2", "elastic-3", "elastic-4", "elastic-5"]
    assert len(nominated(result)) == 4


def test_consolidation_stops_at_its_number_of_victims() -> None:
    built = cluster().nodes(2, 4).queue("a")
    for number in range(4):
        built.running(f"r{number}", [f"n{number % 2}"])
    built.pending("wide", gpus=4)
    two = SchedulerConfig(max_consolidation_victims=2)
    three = SchedulerConfig(max_consolidation_victims=3)
    assert (
        built.cycle(CONSOLIDATION, config=replace(two, max_consolidation_victims=0)).decisions == []
    )
    assert built.cycle(CONSOLIDATION, config=two).decisions == []
    result = built.cycle(CONSOLIDATION, config=three)
    assert victims(result) == ["r3-0", "r1-0"]
    assert {decision.moved_to for decision in result.decisions if isinstance(decision, Evict)} == {
        "n0"
    }


def test_consolidation_asks_the_free_gpus_first() -> None:
    built = cluster().nodes(2, 2).queue("a").running("r0", ["n0"]).running("r1", ["n1"])
    result = built.pending("wide", gpus=3).pending("fits", gpus=2).cycle(CONSOLIDATION)
    assert nominated(result)["fits-0"] in ("n0", "n1")
    assert "wide-0" not in nominated(result)


def test_non_preemptible_pod_groups_do_not_consolidate() -> None:
    built = cluster().nodes(2, 2).queue("a").running("r0", ["n0"]).running("r1", ["n1"])
    assert built.pending("protected", gpus=2, priority=100).cycle(CONSOLIDATION).decisions == []


def test_a_non_preemptible_preemptor_over_quota_disturbs_nobody() -> None:
    built = cluster().nodes(1, 2).queue("a", 1)
    built.running("protected", ["n0"], priority=100).running("low", ["n0"], priority=50)
    result = built.pending("more", priority=120).cycle(PREEMPT)
    assert result.decisions == []
    assert result.reports[0].search.results == {("generators_exhausted", False): 1}


def test_shared_devices_are_reclaimed_by_group() -> None:
    built = cluster().node("n0", 2).queue("a", 1).queue("b", 1)
    for number in range(4):
        built.running(f"h{number}", ["n0"], queue="a", gpus=0.5, gpu_groups=[(f"g{number // 2}",)])
    result = built.pending("whole", queue="b").cycle(RECLAIM)
    assert victims(result) == ["h3-0", "h2-0"]
    assert nominated(result) == {"whole-0": "n0"}
    result.state.validate()


def test_a_gang_that_would_not_run_is_not_kept() -> None:
    """A subgroup that lacks pods is never complete, whatever is evicted for the others."""
    built = cluster().nodes(1, 2).queue("a", 0).queue("b", 2)
    for number in range(2):
        built.running(f"r{number}", ["n0"], queue="a")
    root = SubGroupInput(
        pod_sets=(
            PodSetInput(name="here", min_available=1),
            PodSetInput(name="gone", min_available=1),
        )
    )
    task = TaskInput(name="t", uid="t", subgroup="here", request=request(1))
    built.group(PodGroupInput(name="half", uid="half", queue="b", root=root, tasks=(task,)))
    assert built.cycle(RECLAIM).decisions == []


@pytest.mark.parametrize("action", [CONSOLIDATION, RECLAIM, PREEMPT])
def test_nothing_pending_is_nothing_to_do(action) -> None:
    result = filled().cycle(action)
    assert result.decisions == []
    assert result.reports[0].attempted == 0
    assert status_of(result, "a0-0") is TaskStatus.RUNNING


def test_parts_are_halved_between_success_and_failure() -> None:
    """One node at a time is added to what is settled, so a jump from two pods to five fails first."""
    built = cluster().nodes(6, 2).queue("a", 0).queue("b", 12)
    for number in range(12):
        built.running(f"r{number}", [f"n{number % 6}"], queue="a")
    sizes = []
    original = search.Search._probe

    def spy(self, name, size, settled):
        success = original(self, name, size, settled)
        sizes.append((name, size, len(settled), success is not None))
        return success

    search.Search._probe = spy
    try:
        result = built.pending("gang", 5, gpus=2, queue="b").cycle(RECLAIM)
    finally:
        search.Search._probe = original
    local, gang = "sg-nodelocalgreedy", "sg-multinodegang"
    assert sizes == [
        (local, 1, 0, True),
        (local, 2, 2, True),
        (local, 4, 4, False),
        (local, 3, 4, True),
        (local, 5, 6, False),
        (gang, 1, 0, True),
        (gang, 2, 2, True),
        (gang, 4, 4, True),
        (gang, 5, 8, True),
    ]
    assert len(victims(result)) == 10
    assert len(nominated(result)) == 5


def test_a_gang_in_one_rack_is_searched_among_the_nodes_that_matter() -> None:
    built = (
        cluster()
        .queue("a", 0)
        .queue("b", 8)
        .having(topologies=(TopologyInput(name="t", levels=("rack",)),))
    )
    for number in range(4):
        built.node(f"n{number}", 2, labels={"rack": f"r{number // 2}"})
        built.running(
            f"r{number}", [f"n{number}"], gpus=2, queue="a", priority=100 if number == 1 else 50
        )
    root = SubGroupInput(
        topology=TopologyConstraint(topology="t", required_level="rack"),
        pod_sets=(PodSetInput(min_available=2),),
    )
    result = built.pending("gang", 2, gpus=2, queue="b", root=root).cycle(RECLAIM)
    assert sorted(victims(result)) == ["r2-0", "r3-0"]
    assert set(nominated(result).values()) == {"n2", "n3"}


def test_moving_stops_where_nobody_can_leave() -> None:
    """Eight GPUs are free on a node that neither the asking pod nor any running one may use."""
    built = cluster().nodes(4, 2).node("apart", 8, taints=(Taint("apart"),)).queue("a")
    small = request(1, cpu=0.5)
    for number in range(8):
        built.running(f"r{number}", [f"n{number % 4}"], request=small)
    result = built.pending("want").cycle(CONSOLIDATION)
    assert result.decisions == []
    assert result.reports[0].search.simulated == 0
    free = TaskConstraints(tolerations=(Toleration("apart"),))
    built = cluster().nodes(4, 2).node("apart", 8, taints=(Taint("apart"),)).queue("a")
    for number in range(8):
        built.running(
            f"r{number}", [f"n{number % 4}"], constraints=free if number == 3 else NO_CONSTRAINTS
        )
    assert victims(built.pending("want").cycle(CONSOLIDATION)) == ["r3-0"]


def test_no_trial_moves_pods_that_need_the_same_places_again() -> None:
    """Nodes apart have room for what runs, but it may not go there: with equal pods only changing places is left."""
    built = cluster().nodes(4, 2).node("apart", 8, taints=(Taint("apart"),)).queue("a")
    for number in range(8):
        built.running(f"r{number}", [f"n{number % 4}"])
    result = built.pending("want").cycle(CONSOLIDATION)
    assert result.decisions == []
    assert result.reports[0].search.simulated == 0


def test_the_search_ends_when_too_many_sets_of_victims_are_refused(monkeypatch) -> None:
    monkeypatch.setattr(search, "REFUSALS", 2)
    built = cluster().nodes(4, 2).node("apart", 8, taints=(Taint("apart"),)).queue("a")
    for number in range(8):
        built.running(f"r{number}", [f"n{number % 4}"])
    result = built.pending("want").cycle(CONSOLIDATION)
    assert result.decisions == []
    assert sum(result.reports[0].search.emitted.values()) == 4


def test_victims_that_ask_for_gpu_memory_count_with_their_share_of_the_device() -> None:
    built = cluster().node("n0", 1, gpu_memory_mib=16_000).queue("a", 0).queue("b", 1)
    half = request(0, gpu_memory_mib=8_000)
    for number in range(2):
        built.running(f"m{number}", ["n0"], queue="a", request=half, gpu_groups=[("g",)])
    result = built.pending("p", queue="b", gpus=0.5).cycle(RECLAIM)
    assert victims(result) == ["m1-0"]
    assert nominated(result) == {"p-0": "n0"}


@pytest.mark.parametrize(
    "action", [ActionName.CONSOLIDATION, ActionName.RECLAIM, ActionName.PREEMPT]
)
def test_nothing_is_evicted_where_all_nodes_are_gone(action: ActionName) -> None:
    """A resource of devices is not compared with the largest node, so only the search finds that none has room."""
    devices = DeviceInputs(classes=(DeviceClass(name="c", extended_resource="example.com/card"),))
    card = TaskRequest(other=(("example.com/card", 1000.0),))
    session = (
        cluster()
        .queue("a", 4)
        .queue("b", 0)
        .running("other", ["gone"], queue="b", priority=50, request=card)
        .running("mine", ["gone"], queue="a", priority=50, request=card)
        .pending("late", queue="a", priority=60, request=card)
        .having(devices=devices)
        .cycle(action)
    )
    assert session.decisions == []

"""Room kept for those at the head of the order, and lent to work that declares to end in time."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queues.workloads.reasons import ROOM_KEPT, START_EXPECTED
from scheduler.core.cluster.constraints import TaskConstraints
from scheduler.core.cluster.inputs import PodGroupInput, PodSetInput, SubGroupInput, TaskInput
from scheduler.core.cluster.status import TaskStatus
from scheduler.core.config import DEFAULT_PLUGINS, PluginConfig, SchedulerConfig
from scheduler.core.decisions import ActionName, Bind
from scheduler.core.errors import ConfigError
from scheduler.core.placement.reservations import Reservations
from scheduler.core.plugins.backfill import BackfillArguments
from scheduler.core.session.session import Session
from scheduler.explain.standings import standings
from scheduler.explain.verdicts import verdicts
from scheduler.tools.simulate.living import LivingCluster
from tests.builders import ClusterBuilder, cluster, placements, request

ALLOCATE = ActionName.ALLOCATE
#: `make stability` plays many more.
EXAMPLES = int(os.environ.get("KAIWEB_BACKFILL_EXAMPLES", "6"))


def config(reservations: int = 4, *actions: ActionName) -> SchedulerConfig:
    plugin = PluginConfig("backfill", BackfillArguments(reservations=reservations))
    chosen = SchedulerConfig(plugins=(*DEFAULT_PLUGINS, plugin))
    return replace(chosen, actions=actions) if actions else chosen


def waiting_gang(**holder: Any) -> ClusterBuilder:
    """Return two nodes of four GPUs, one of them held for another 100 s, and a gang that needs both."""
    built = cluster().nodes(2, gpus=4).queue("q")
    built.running(
        "holder", ["n0"], **{"gpus": 4, "max_run_time_s": 300.0, "ends_by": 100.0, **holder}
    )
    return built.pending("gang", 2, gpus=4)


def bound(session: Session) -> set[str]:
    return {decision.pod_group for decision in session.decisions if isinstance(decision, Bind)}


def test_without_the_plugin_whoever_fits_takes_the_room() -> None:
    assert bound(waiting_gang().pending("long").cycle()) == {"long"}


def test_room_is_kept_from_work_that_declares_nothing() -> None:
    session = waiting_gang().pending("long").cycle(config=config())
    assert bound(session) == set()
    reservations = session.attached(Reservations)
    assert reservations is not None
    assert [(entry.pod_group, entry.starts_by) for entry in reservations.entries] == [(1, 100.0)]


@pytest.mark.parametrize(("seconds", "starts"), [(60.0, True), (100.0, True), (101.0, False)])
def test_room_is_lent_to_work_that_ends_in_time(seconds, starts) -> None:
    session = waiting_gang().pending("short", max_run_time_s=seconds).cycle(config=config())
    assert bound(session) == ({"short"} if starts else set())


def test_long_work_takes_what_is_not_needed() -> None:
    built = waiting_gang().node("n9", 2).pending("long", gpus=2).pending("longer", gpus=2)
    session = built.cycle(config=config())
    assert [(d.pod_group, d.node) for d in session.decisions] == [("long", "n9")]


@pytest.mark.parametrize("holder", [{"max_run_time_s": None}, {"ends_by": None}])
def test_no_room_is_kept_where_the_end_is_not_known(holder) -> None:
    session = waiting_gang(**holder).pending("long").cycle(config=config())
    assert bound(session) == {"long"}


def test_the_room_is_kept_by_the_earliest_ends_that_suffice() -> None:
    built = cluster().nodes(3, gpus=4).queue("q")
    for node, end in (("n0", 500.0), ("n1", 50.0), ("n2", 100.0)):
        built.running(f"on-{node}", [node], gpus=4, max_run_time_s=end, ends_by=end)
    session = built.pending("gang", 2, gpus=4).cycle(config=config())
    reservations = session.attached(Reservations)
    assert reservations is not None
    names = session.state.nodes.names
    (reservation,) = reservations.entries
    assert reservation.starts_by == 100.0
    assert {names[node] for node in reservation.nodes.values()} == {"n1", "n2"}


def test_no_room_is_kept_for_longer_than_the_horizon() -> None:
    plugin = PluginConfig("backfill", BackfillArguments(horizon_s=99.0))
    session = (
        waiting_gang()
        .pending("long")
        .cycle(config=SchedulerConfig(plugins=(*DEFAULT_PLUGINS, plugin)))
    )
    assert bound(session) == {"long"}


def test_a_second_reservation_counts_the_first() -> None:
    built = waiting_gang().pending("second", gpus=4)
    built.running("other", ["n1"], gpus=2, max_run_time_s=30.0, ends_by=30.0)
    session = built.cycle(config=config())
    reservations = session.attached(Reservations)
    assert reservations is not None
    # The gang takes both nodes, and nobody knows when it will end.
    assert [entry.starts_by for entry in reservations.entries] == [100.0]


def test_work_that_shares_gpus_or_whose_limit_is_reached_gets_none() -> None:
    built = cluster().node("n0", 1).queue("q")
    built.running("holder", ["n0"], max_run_time_s=10.0, ends_by=10.0).pending("part", gpus=0.5)
    reservations = built.cycle(config=config()).attached(Reservations)
    assert reservations is not None
    assert reservations.entries == []


def test_other_actions_keep_the_room_too_and_the_gang_itself_may_evict_for_it() -> None:
    built = waiting_gang(priority=40).pending("long", gpus=2, priority=50)
    urgent = built.cycle(config=config(4, ALLOCATE, ActionName.PREEMPT))
    assert "gang" in {d.pod_group for d in urgent.decisions}
    assert bound(urgent) == set()


def test_consolidation_moves_nobody_whose_end_is_awaited() -> None:
    built = cluster().node("x0", 4, labels={"x": "1"}).node("x1", 4, labels={"x": "1"})
    built.node("y", 4).queue("q")
    built.running("holder", ["x0"], gpus=4, max_run_time_s=100.0, ends_by=100.0)
    selected = TaskConstraints(node_selector=(("x", "1"),))
    built.pending("gang", 2, gpus=4, constraints=selected)
    built.pending("behind", gpus=4, constraints=selected)
    actions = (ALLOCATE, ActionName.CONSOLIDATION)
    # "behind" could have the node of the holder, if that moved to the third node.
    assert [d.pod_group for d in built.cycle(config=config(1, *actions)).decisions] == []


def promised_gang() -> ClusterBuilder:
    """Return a gang whose evictions are under way, and one behind it for which room is kept until 100 s.

    The first is promised n0, of which a victim still has a half, and the whole of n1. The second waits for the holder
    of a half of n2.
    """
    built = cluster().nodes(3, gpus=4).queue("q")
    built.group(leaving("victim", "n0", gpus=2))
    built.running("holder", ["n2"], gpus=2, max_run_time_s=300.0, ends_by=100.0)
    built.group(promised("evictor", {"evictor-0": "n0", "evictor-1": "n1"}, gpus=4))
    return built.pending("gang", gpus=4)


def leaving(name: str, node: str, gpus: int) -> PodGroupInput:
    task = TaskInput(name=name, uid=name, status=TaskStatus.RELEASING, node=node, request=request(gpus))  # fmt: skip
    return PodGroupInput(name=name, uid=name, queue="q", tasks=(task,))


def promised(name: str, nodes: Mapping[str, str], gpus: int) -> PodGroupInput:
    """Return a gang whose pods have nominated nodes."""
    return PodGroupInput(
        name=name,
        uid=name,
        queue="q",
        root=SubGroupInput(pod_sets=(PodSetInput(min_available=len(nodes)),)),
        tasks=tuple(
            TaskInput(name=task, uid=task, request=request(gpus), nominated_node=node)
            for task, node in nodes.items()
        ),
    )


def test_room_that_is_promised_is_not_lent_by_another_reservation() -> None:
    built = promised_gang().pending("first", gpus=2, max_run_time_s=50.0)
    built.pending("second", gpus=2, max_run_time_s=50.0)
    session = built.cycle(config=config(4, ALLOCATE))
    reservations = session.attached(Reservations)
    assert reservations is not None
    assert [(entry.pod_group, entry.starts_by) for entry in reservations.entries] == [(3, 100.0)]
    # The gap on n2 is lent once. The free half of n0 and all of n1 are promised, though the evictor cannot start yet.
    assert bound(session) == {"first"}
    assert placements(session)["first-0"] == "n2"
    assert placements(session)["evictor-1"] == "n1"


def test_no_action_gives_away_room_that_is_promised_and_beside_kept_room() -> None:
    built = promised_gang().pending("short", gpus=2, max_run_time_s=10.0)
    built.pending("urgent", gpus=4, max_run_time_s=10.0)
    actions = (ALLOCATE, ActionName.CONSOLIDATION, ActionName.RECLAIM, ActionName.PREEMPT)
    session = built.cycle(config=config(4, *actions))
    reserved = placements(session)
    assert (reserved["evictor-0"], reserved["evictor-1"]) == ("n0", "n1")
    assert bound(session) <= {"short"}


def test_the_rows_of_the_nodes_are_as_before_once_nothing_is_kept() -> None:
    session = waiting_gang().pending("long").cycle(config=config(4, ALLOCATE))
    reservations = session.attached(Reservations)
    assert reservations is not None
    assert session.state.nodes.releasing_rows[2] == [0.0, -4.0]
    with reservations.room_available_to(session.view(1)):
        assert session.state.nodes.releasing_rows[2] == [0.0, 0.0]
    assert session.state.nodes.releasing_rows[2] == [0.0, -4.0]


def test_the_reasons_say_when_it_starts_and_for_whom_room_is_kept() -> None:
    session = waiting_gang().pending("long").cycle(config=config(4, ALLOCATE))
    placed = standings(session, verdicts(session, 1_800_000_000.0))
    gang, long = placed["/gang"], placed["/long"]
    assert (gang.code, long.code) == (START_EXPECTED, ROOM_KEPT)
    assert gang.text == (
        "It will start by 2027-01-15T08:02:00Z at the latest, when workloads end that declared their "
        "run time: /holder"
    )
    assert "Free room is kept for workloads ahead of it: /gang" in long.text
    assert "kaiweb.dev/max-run-time" in long.text


def test_a_number_below_one_is_refused() -> None:
    with pytest.raises(ConfigError, match="expected 1 or more, got 0"):
        BackfillArguments(reservations=0)


# ------------------------------------------------------------------------------- in virtual time


@dataclass(frozen=True)
class Job:
    """A gang with its arrival, what it declares, and how long it really runs."""

    name: str
    submit_s: float
    pods: int
    gpus: int
    runs_s: float
    declares_s: float | None

    def group(self) -> PodGroupInput:
        task = TaskInput(name="", uid="", request=request(self.gpus))
        names = [f"{self.name}-{number}" for number in range(self.pods)]
        return PodGroupInput(
            name=self.name,
            uid=self.name,
            queue="q",
            created=self.submit_s,
            max_run_time_s=self.declares_s,
            root=SubGroupInput(pod_sets=(PodSetInput(min_available=self.pods),)),
            tasks=tuple(replace(task, name=name, uid=name) for name in names),
        )


@dataclass
class Played:
    """When each job started, and by when it was expected in each cycle in which it was first in the order."""

    starts: dict[str, float]
    expected_as_head: dict[str, list[float]]


def play(jobs: list[Job], nodes: int, *, backfill: bool = True) -> Played:
    """Run the cycles in virtual time: one whenever jobs arrive or end, and one after each that started some."""
    built = cluster().nodes(nodes, gpus=4).queue("q").build()
    living = LivingCluster(
        built.nodes,
        built.queues,
        config(4, ALLOCATE) if backfill else SchedulerConfig(actions=(ALLOCATE,)),
    )
    by_name = {job.name: job for job in jobs}
    arriving = sorted(jobs, key=lambda job: (job.submit_s, job.name))
    ends: dict[str, float] = {}
    played = Played({}, {})
    while arriving or ends:
        living.now_s = min([job.submit_s for job in arriving[:1]] + list(ends.values()))
        now_s = living.now_s
        for name in [name for name, end in ends.items() if end <= now_s]:
            living.finish(name)
            del ends[name]
        while arriving and arriving[0].submit_s <= now_s:
            living.submit(arriving.pop(0).group())
        session = living.step()
        for decision in session.decisions:
            if isinstance(decision, Bind) and decision.pod_group not in played.starts:
                played.starts[decision.pod_group] = now_s
                ends[decision.pod_group] = now_s + by_name[decision.pod_group].runs_s
        reservations = session.attached(Reservations)
        if reservations is not None and session.unplaced_groups:
            head = session.unplaced_groups[0]
            reservation = reservations.reservation_of(head)
            if reservation is not None:
                name = session.state.pod_groups.inputs[head].name
                expected = played.expected_as_head.setdefault(name, [])
                expected.append(now_s + reservation.starts_by)
    return played


JOBS = st.lists(
    st.tuples(
        st.integers(0, 30),
        st.integers(1, 4),
        st.sampled_from([1, 2, 4]),
        st.integers(1, 40),
        st.sampled_from(["exact", "early", "never"]),
    ),
    min_size=2,
    max_size=8 if EXAMPLES < 100 else 14,
)


def _jobs(drawn: list[tuple[int, int, int, int, str]]) -> list[Job]:
    return [
        Job(
            f"j{number:02}", 10.0 * at, pods, gpus, 10.0 * run,
            None if kind == "never" else 10.0 * run * (2 if kind == "early" else 1),
        )
        for number, (at, pods, gpus, run, kind) in enumerate(drawn)
    ]  # fmt: skip


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(drawn=JOBS)
def test_the_head_of_the_order_starts_by_its_moment(drawn) -> None:
    """Whatever comes later, ends early or declares nothing: once at the head, the moment only comes nearer."""
    jobs = _jobs(drawn)
    played = play(jobs, nodes=4)
    assert played.starts.keys() == {job.name for job in jobs}
    for name, expected in played.expected_as_head.items():
        assert expected == sorted(expected, reverse=True)
        assert played.starts[name] <= expected[-1]


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(drawn=JOBS, later=JOBS)
def test_work_that_comes_later_does_not_delay_the_gang_at_the_head(drawn, later) -> None:
    """Alone and with others behind it the gang starts at the same time, if the declared times are exact."""
    gang = Job("gang", 1.0, 4, 4, 100.0, None)
    holders = [replace(job, submit_s=0.0, declares_s=job.runs_s) for job in _jobs(drawn)]
    at_once = play([*holders, gang], nodes=4).starts
    holders = [job for job in holders if at_once[job.name] == 0.0]
    behind = [
        replace(job, name=f"k{job.name}", submit_s=2.0 + job.submit_s) for job in _jobs(later)
    ]
    behind = [
        job if job.declares_s is None else replace(job, declares_s=job.runs_s) for job in behind
    ]
    alone = play([*holders, gang], nodes=4).starts["gang"]
    assert play([*holders, gang, *behind], nodes=4).starts["gang"] == alone


def test_backfill_uses_the_gap_and_without_it_the_gang_starves() -> None:
    holder = Job("holder", 0.0, 1, 4, 100.0, 100.0)
    gang = Job("gang", 1.0, 2, 4, 50.0, None)
    short = [Job(f"s{number}", 2.0 + number, 1, 2, 40.0, 40.0) for number in range(8)]
    with_room = play([holder, gang, *short], nodes=2)
    without = play([holder, gang, *short], nodes=2, backfill=False)
    assert with_room.starts["gang"] == 100.0
    assert (
        sum(start < 100.0 for name, start in with_room.starts.items() if name.startswith("s")) == 4
    )
    assert without.starts["gang"] > 100.0

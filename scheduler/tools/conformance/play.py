"""Play a scenario: one session, or several rounds between which the cluster changes.

Between rounds, bound pods start to run, and evicted and nominated pods become pending again; evicted pods of
jobs marked `stays_releasing` stay releasing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduler.core.cluster.axis import GPU_ROW
from scheduler.core.cluster.status import TaskStatus
from scheduler.core.cycle import run_cycle
from scheduler.core.decisions import Bind, Decision, Evict
from scheduler.core.plugins.device_claims.ledger import ClaimLedger
from scheduler.core.plugins.numa.plugin import NumaPlugin
from scheduler.core.session.session import Session
from scheduler.tools.conformance.judge import ClusterOutcome, NodeOutcome, TaskOutcome
from scheduler.tools.conformance.read_cluster import AXIS_NAMES
from scheduler.tools.conformance.settings import read_config
from scheduler.tools.conformance.world import STATE_OF_STATUS, TaskPlace, World

Document = Mapping[str, Any]


@dataclass(slots=True, kw_only=True)
class ScenarioRun:
    """The result of playing one scenario.

    Parameters
    ----------
    points : the judging points: name and state of the cluster
    events : per session its decisions
    end : the state after the last session
    """

    points: list[tuple[str, ClusterOutcome]] = field(default_factory=list)
    events: list[list[dict[str, Any]]] = field(default_factory=list)
    end: ClusterOutcome

    @property
    def counts(self) -> list[dict[str, int]]:
        """Return how many decisions of each kind each session took."""
        return [
            {
                kind: sum(event["kind"] == kind for event in round_events)
                for kind in ("bind", "evict", "pipeline")
            }
            for round_events in self.events
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return the run in the form of the field `observed` of a scenario file."""
        return {
            "tasks": {name: task.as_dict() for name, task in sorted(self.end.tasks.items())},
            "nodes": {
                name: {"idle_gpus": node.idle_gpus, "releasing_gpus": node.releasing_gpus}
                for name, node in sorted(self.end.nodes.items())
            },
            "events_by_round": self.events,
            "rounds_run": len(self.events),
        }


def play(document: Document) -> ScenarioRun:
    """Run a scenario to its end and keep the state at every judging point."""
    if document.get("mode") == "rounds":
        return _play_rounds(document)
    session = run_cycle(World(document).snapshot(), read_config(document))
    outcome = _outcome_of(session)
    return ScenarioRun(points=[("end", outcome)], events=[_events_of(session)], end=outcome)


def _play_rounds(document: Document) -> ScenarioRun:
    world = World(document)
    rounds = document.get("rounds") or {}
    until_round, rounds_after = int(rounds.get("until_match", 1)), int(rounds.get("after_match", 0))
    releasing_uids = {
        task["id"]
        for job in document.get("jobs", ())
        if job.get("stays_releasing")
        for task in job.get("tasks", ())
    }
    run = ScenarioRun(end=ClusterOutcome(tasks={}, nodes={}))
    for round_number in range(1, until_round + rounds_after + 1):
        session = run_cycle(world.snapshot(), read_config(document))
        run.events.append(_events_of(session))
        run.end = _outcome_of(session)
        if round_number > until_round:
            run.points.append((f"end of round {round_number}", run.end))
        _move_on(world, session, releasing_uids)
        if round_number == until_round:
            run.points.append((f"after round {round_number}", _outcome_after(world, run.end)))
    return run


def _move_on(world: World, session: Session, releasing_uids: set[str]) -> None:
    """Change the world as the cluster would between rounds."""
    tasks, nodes = session.state.tasks, session.state.nodes
    ledger = session.attached(ClaimLedger)
    if ledger is not None:
        world.claims = ledger.current()
    for index, task in enumerate(tasks.inputs):
        place = world.places.get(task.uid)
        if place is None:
            continue
        state = STATE_OF_STATUS[TaskStatus(tasks.status[index])]
        if state == "binding":
            world.places[task.uid] = TaskPlace(
                state="running",
                node=nodes.names[tasks.node[index]],
                gpu_groups=tasks.gpu_groups[index],
                numa=tasks.numa.get(index, ()),
                claim_allocations=tasks.claim_allocations.get(index, ()),
            )
        elif state == "pipelined" or (state == "releasing" and task.uid not in releasing_uids):
            world.places[task.uid] = TaskPlace(state="pending")
        elif state == "releasing":
            place.state = state


def _outcome_of(session: Session) -> ClusterOutcome:
    state = session.state
    tasks, nodes = state.tasks, state.nodes
    outcomes = {}
    for index, task in enumerate(tasks.inputs):
        node = tasks.node[index]
        outcomes[task.uid] = TaskOutcome(
            status=STATE_OF_STATUS[TaskStatus(tasks.status[index])],
            node=nodes.names[node] if node >= 0 else task.node,
            gpu_groups=tuple(tasks.gpu_groups[index]),
            numa_zones=tuple(share.zone for share in tasks.numa.get(index, ())),
        )
    return ClusterOutcome(
        tasks=outcomes,
        nodes={
            name: NodeOutcome(
                idle_gpus=nodes.idle_rows[GPU_ROW][index],
                releasing_gpus=nodes.releasing_rows[GPU_ROW][index],
                zones_available=_zones_available(session, index),
            )
            for index, name in enumerate(nodes.names)
        },
        last_starts={
            group.name: state.pod_groups.last_start[index]
            for index, group in enumerate(state.pod_groups.inputs)
        },
        explained=_explained(session),
    )


def _explained(session: Session) -> frozenset[str]:
    """Return the names of the pod groups for which a reason why they do not fit was recorded."""
    inputs, group_of = session.state.pod_groups.inputs, session.state.tasks.pod_group
    groups = set(session.fit.pod_groups) | {group_of[task] for task in session.fit.tasks}
    return frozenset(inputs[group].name for group in groups if group >= 0)


def _zones_available(session: Session, node: int) -> list[dict[str, float]]:
    """Return per NUMA zone of a node the free amounts, by resource name of the scenario format."""
    ledger = session.hooks.numa
    if not isinstance(ledger, NumaPlugin):
        return []
    names = {axis: name for name, axis in AXIS_NAMES.items()}
    return [
        {names.get(name, name): amount for name, amount in zone.items()}
        for zone in ledger.free[node]
    ]


def _outcome_after(world: World, end: ClusterOutcome) -> ClusterOutcome:
    """Return the state after a round's transition; nodes and pod groups are as the session left them."""
    return ClusterOutcome(
        tasks={
            name: TaskOutcome(
                status=place.state,
                node=place.node,
                gpu_groups=place.gpu_groups,
                numa_zones=tuple(share.zone for share in place.numa),
            )
            for name, place in world.places.items()
        },
        nodes=end.nodes,
        last_starts=end.last_starts,
        explained=end.explained,
    )


def _events_of(session: Session) -> list[dict[str, Any]]:
    return [_event(decision) for decision in session.decisions]


def _event(decision: Decision) -> dict[str, Any]:
    if isinstance(decision, Bind):
        kind, action = "bind", decision.action
    elif isinstance(decision, Evict):
        kind, action = "evict", decision.reason.action
    else:
        kind, action = "pipeline", decision.action
    event: dict[str, Any] = {
        "kind": kind,
        "action": str(action),
        "task": decision.task.uid,
        "node": decision.node,
    }
    groups = getattr(decision, "gpu_groups", ())
    if groups:
        event["gpu_groups"] = list(groups)
    return event

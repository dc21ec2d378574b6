"""Run the cycles of a what-if simulation, with the edits and without them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from queues.tree.amounts import Usage
from queues.tree.shape import Finding, Severity
from queues.workloads.reasons import GROUP_INCOMPLETE, NOT_EVALUATED
from scheduler.core.arrays import GPU_INDEX, Amounts
from scheduler.core.cluster.inputs import ClusterInput
from scheduler.core.decisions import Bind, Evict
from scheduler.core.session.session import Session
from scheduler.explain.texts import evict_message
from scheduler.explain.verdicts import verdicts
from scheduler.load.build import SnapshotBuilder
from scheduler.settings.shard import ShardSettings
from scheduler.tools.simulate.living import LivingCluster, key_of
from scheduler.tools.simulate.what_if.edited import Edited, apply_edits, settings_of_picture
from scheduler.tools.simulate.what_if.picture import Picture, PictureStore
from scheduler.tools.simulate.what_if.question import Question

#: A simulation that takes longer is ended after its current cycle, with a warning.
TIME_LIMIT_S = 30.0


class QueueState(NamedTuple):
    """The fair share and the allocation of a queue: millicores, bytes, GPUs."""

    share: Amounts
    allocated: Amounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A pod that starts or is evicted.

    Attributes
    ----------
    cycle : number of the cycle, from 1
    action : the action of the cycle that decided it
    run_time_s : for a victim, how long its workload has run; None if that is not known
    evictor, evictor_queue : the workload that gets the room; empty if none does
    rule : for a victim, the text of its event
    """

    cycle: int
    workload: str
    pod: str
    queue: str
    node: str
    gpu: float
    action: str
    evictor: str = ""
    evictor_queue: str = ""
    rule: str = ""
    run_time_s: float | None = None


class Waiting(NamedTuple):
    """Why a workload waits at the end."""

    queue: str
    code: str
    text: str


@dataclass(slots=True)
class Course:
    """What happened in the cycles of one run; `Outcome` compares two of them.

    Attributes
    ----------
    is_cut : the time limit ended the run
    waiting : workloads that wait at the end, by `namespace/name`
    last : queues after the last cycle
    has_claims : a bind allocated devices to a claim
    counts : how many nodes, queues, workloads and pods there are at the start
    """

    cycles: int = 0
    is_cut: bool = False
    starts: list[Move] = field(default_factory=list)
    evictions: list[Move] = field(default_factory=list)
    waiting: dict[str, Waiting] = field(default_factory=dict)
    last: dict[str, QueueState] = field(default_factory=dict)
    has_claims: bool = False
    counts: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The answer to a question.

    Attributes
    ----------
    edited, unedited : the course with and without the edits; None if the edits cannot be made
    """

    question: Question
    picture: Picture
    errors: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()
    edited: Course | None = None
    unedited: Course | None = None
    seconds: float = 0.0


def simulate(
    picture: Picture,
    question: Question,
    *,
    usage: Mapping[str, Usage] | None = None,
    clock: Callable[[], float] = time.monotonic,
    time_limit_s: float = TIME_LIMIT_S,
) -> Outcome:
    """Answer a question about a cluster; nothing is written anywhere.

    Parameters
    ----------
    usage : what queues hold now, for the warnings of edits

    Raises
    ------
    QuestionError : an added or removed object that cannot be read or does not exist
    scheduler.core.errors.CoreError : the cluster contradicts itself, or its settings are wrong
    """
    started = clock()
    after = apply_edits(picture, question, usage or {})
    if after.errors:
        return Outcome(
            question=question, picture=picture, errors=after.errors, warnings=after.warnings
        )
    is_time_up = _deadline(clock, started + time_limit_s)
    settings = settings_of_picture(picture, question.shard)
    before_edits, after_edits = _inputs(picture, settings, after)
    edited = _run(after_edits, after.settings, picture.taken_at, question.cycles, is_time_up)
    unedited = _run(before_edits, settings, picture.taken_at, max(1, edited.cycles), is_time_up)
    return Outcome(
        question=question,
        picture=picture,
        warnings=(*after.warnings, *_run_warnings(edited, unedited, question)),
        edited=edited,
        unedited=unedited,
        seconds=clock() - started,
    )


def _deadline(clock: Callable[[], float], end: float) -> Callable[[], bool]:
    return lambda: clock() >= end


def _inputs(
    picture: Picture, settings: ShardSettings, after: Edited
) -> tuple[ClusterInput, ClusterInput]:
    """Return the input of the core before and after the edits, converting once what both have."""
    store = PictureStore()
    builder = SnapshotBuilder(settings.params, origin=picture.taken_at)
    before_edits = builder.build(store.view(picture), picture.taken_at).cluster
    if after.settings.params != settings.params:
        builder = SnapshotBuilder(after.settings.params, origin=picture.taken_at)
    return before_edits, builder.build(store.view(after.picture), picture.taken_at).cluster


def _run(
    inputs: ClusterInput,
    settings: ShardSettings,
    taken_at: float,
    cycles: int,
    is_time_up: Callable[[], bool],
) -> Course:
    cluster = LivingCluster(inputs.nodes, inputs.queues, settings.core, base=inputs)
    for group in inputs.pod_groups:
        cluster.submit(group)
    course = Course(
        counts={
            "nodes": len(inputs.nodes),
            "queues": len(inputs.queues),
            "workloads": len(inputs.pod_groups),
            "pods": sum(len(group.tasks) for group in inputs.pod_groups),
        }
    )
    session, now = None, taken_at
    while course.cycles < cycles and not (course.cycles and is_time_up()):
        now = taken_at + cluster.now_s
        session = cluster.step(is_time_up)
        course.cycles += 1
        _note(course, session)
    if session is not None:
        course.waiting = _waiting(session, now)
    course.is_cut = is_time_up()
    return course


def _note(course: Course, session: Session) -> None:
    """Add the decisions and shares of a cycle."""
    moves = _Moves(session, course.cycles)
    for decision in session.decisions:
        if isinstance(decision, Bind):
            course.starts.append(moves.start(decision))
            course.has_claims = course.has_claims or bool(decision.claim_allocations)
        elif isinstance(decision, Evict):
            course.evictions.append(moves.eviction(decision))
    ledger = session.policy.ledger
    course.last = {
        name: QueueState(tuple(ledger.fair_shares[index]), tuple(ledger.allocated[index]))
        for index, name in enumerate(ledger.names)
    }


class _Moves:
    """Describes the decisions of one cycle."""

    def __init__(self, session: Session, cycle: int) -> None:
        self._cycle = cycle
        tasks = session.state.tasks
        self._gpus = {
            task.uid: float(tasks.accepted[index][GPU_INDEX])
            for index, task in enumerate(tasks.inputs)
        }
        groups = session.state.pod_groups.inputs
        self._groups = {(group.namespace, group.name): group for group in groups}

    def start(self, decision: Bind) -> Move:
        return self._move(decision, decision.action.value)

    def eviction(self, decision: Evict) -> Move:
        reason = decision.reason
        evictor = self._groups.get((reason.evictor_namespace, reason.evictor))
        victim = self._groups[(decision.pod_group_namespace, decision.pod_group)]
        return replace(
            self._move(decision, reason.action.value),
            evictor=key_of(evictor) if evictor else "",
            evictor_queue=evictor.queue if evictor else "",
            rule=evict_message(decision),
            run_time_s=None if victim.last_start is None else -victim.last_start,
        )

    def _move(self, decision: Bind | Evict, action: str) -> Move:
        group = self._groups[(decision.pod_group_namespace, decision.pod_group)]
        return Move(
            cycle=self._cycle,
            workload=key_of(group),
            pod=f"{decision.task.namespace}/{decision.task.name}",
            queue=group.queue,
            node=decision.node,
            gpu=self._gpus[decision.task.uid],
            action=action,
        )


def _waiting(session: Session, now: float) -> dict[str, Waiting]:
    queues = {key_of(group): group.queue for group in session.state.pod_groups.inputs}
    waiting = {}
    for verdict in verdicts(session, now):
        if not verdict.is_waiting:
            continue
        key = f"{verdict.namespace}/{verdict.name}"
        if verdict.not_ready:
            waiting[key] = Waiting(queues[key], GROUP_INCOMPLETE, verdict.not_ready)
        else:
            cause = verdict.cause
            code = cause.code if cause is not None else NOT_EVALUATED
            text = verdict.message or (cause.text if cause is not None else "")
            waiting[key] = Waiting(queues[key], code, text)
    return waiting


def _run_warnings(edited: Course, unedited: Course, question: Question) -> tuple[Finding, ...]:
    warnings = []
    if edited.is_cut or unedited.is_cut:
        text = f"the time limit was reached after {edited.cycles} of {question.cycles} cycles"
        warnings.append(_warning("time-limit", text))
    if edited.has_claims and edited.cycles > 1:
        text = "devices that claims get in one cycle count as free in the next one"
        warnings.append(_warning("device-claims", text))
    return tuple(warnings)


def _warning(code: str, text: str) -> Finding:
    return Finding(pointer="", code=code, message=text, severity=Severity.WARNING)

"""One cycle: open a session on a snapshot, run the actions in order, return what was decided.

This file is the table of contents of the core. `run_cycle` is all a scheduler needs; `open_session` and
`run_action` let tools (conformance, benchmark, explain) look at the session in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from scheduler.core.actions.table import ACTIONS
from scheduler.core.cluster.build import build_state
from scheduler.core.cluster.inputs import ClusterInput
from scheduler.core.config import SchedulerConfig
from scheduler.core.decisions import ActionName, ActionReport, Decision
from scheduler.core.placement.place import Placer
from scheduler.core.plugins.table import spec_of
from scheduler.core.session.session import NO_SEED, Clock, Session, no_clock


@dataclass(frozen=True, slots=True)
class CycleResult:
    """A finished cycle: the session as it ended, with decisions, reports and reasons."""

    session: Session
    decisions: list[Decision]
    reports: list[ActionReport]


def open_session(
    given: ClusterInput,
    config: SchedulerConfig,
    *,
    clock: Clock = no_clock,
    gpu_group_seed: UUID = NO_SEED,
) -> Session:
    """Make the state from a snapshot and let the plugins open on it."""
    state = build_state(given, full_hierarchy=config.full_hierarchy_fairness)
    session = Session(state, config, clock, gpu_group_seed)
    for chosen in config.plugins:
        plugin = spec_of(chosen.name).plugin(chosen.arguments)
        if plugin is not None:
            started = clock()
            plugin.open(session)
            session.plugin_seconds[chosen.name] = clock() - started
    session.start()
    return session


def run_action(session: Session, placer: Placer, name: ActionName) -> ActionReport:
    """Run one action on an open session; its time is measured by the session's clock."""
    report = ActionReport(name)
    started = session.clock()
    ACTIONS[name]().run(session, placer, report)
    report.seconds = session.clock() - started
    session.reports.append(report)
    return report


def run_actions(session: Session) -> None:
    """Run the configured actions to the end; the session shows what came of it."""
    for _ in stream_cycle(session):
        pass


def stream_cycle(session: Session) -> Iterator[Decision]:
    """Run the configured actions, yielding decisions after each action."""
    placer = Placer(session)
    sent = 0
    for name in session.config.actions:
        run_action(session, placer, name)
        yield from session.decisions[sent:]
        sent = len(session.decisions)


def run_cycle(
    given: ClusterInput,
    config: SchedulerConfig,
    *,
    clock: Clock = no_clock,
    gpu_group_seed: UUID = NO_SEED,
) -> CycleResult:
    """Run one whole cycle.

    Parameters
    ----------
    given : the snapshot
    config : actions, plugins, limits
    clock : monotonic seconds, for budgets and reports; the default never advances
    gpu_group_seed : makes names of newly shared devices unlike those of other cycles

    Returns
    -------
    the session at its end with all decisions, in the order they were made
    """
    session = open_session(given, config, clock=clock, gpu_group_seed=gpu_group_seed)
    run_actions(session)
    return CycleResult(session, session.decisions, session.reports)

"""One cycle: open a session on a snapshot and run the actions in order.

This file is the table of contents of the core. `run_cycle` is what the scheduler's worker, replay, simulation
and the conformance suite call. `open_session` and `run_action` are its two steps, for tools and tests that
look at a session in between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

from scheduler.core.actions.table import ACTIONS
from scheduler.core.cluster.build import build_state
from scheduler.core.cluster.inputs import ClusterInput
from scheduler.core.cluster.kept import KeptState
from scheduler.core.config import SchedulerConfig
from scheduler.core.decisions import ActionName, ActionReport, Decision
from scheduler.core.placement.place import Placer
from scheduler.core.plugins.table import spec_of
from scheduler.core.session.minimums import charge_all_minimums
from scheduler.core.session.session import NO_SEED, Clock, Session, no_clock, run_to_the_end

#: Called with the name of the next action; False skips it.
BeforeAction = Callable[[ActionName], bool]
#: Called with the decisions an action has added.
AfterAction = Callable[[Sequence[Decision]], None]


def run_cycle(
    cluster: ClusterInput,
    config: SchedulerConfig,
    *,
    clock: Clock = no_clock,
    should_stop: Callable[[], bool] = run_to_the_end,
    gpu_group_seed: UUID = NO_SEED,
    kept_state: KeptState | None = None,
    after_open: Callable[[Session], None] = lambda _: None,
    before_action: BeforeAction = lambda _: True,
    after_action: AfterAction = lambda _: None,
) -> Session:
    """Run one whole cycle.

    Parameters
    ----------
    cluster : the snapshot
    config : actions, plugins, limits
    clock : monotonic seconds, for budgets and reports; the default never advances
    should_stop : called between the trials of a search for victims; True ends the search
    gpu_group_seed : from which the ids of newly shared devices are made; another one for each cycle
    kept_state : the state of the last cycle's beginning, brought up to date in place of a new one
    after_open : called with the session once its plugins are open
    before_action, after_action : called around each action; see their types

    Returns
    -------
    the session at its end, with all decisions in the order they were made, a report per action, and why others wait
    """
    session = open_session(
        cluster,
        config,
        clock=clock,
        should_stop=should_stop,
        gpu_group_seed=gpu_group_seed,
        kept_state=kept_state,
    )
    after_open(session)
    placer = Placer(session)
    for name in config.actions:
        if before_action(name):
            decided_before = len(session.decisions)
            run_action(session, placer, name)
            after_action(session.decisions[decided_before:])
    return session


def open_session(
    cluster: ClusterInput,
    config: SchedulerConfig,
    *,
    clock: Clock = no_clock,
    should_stop: Callable[[], bool] = run_to_the_end,
    gpu_group_seed: UUID = NO_SEED,
    kept_state: KeptState | None = None,
) -> Session:
    """Build the state from a snapshot, or bring the kept one up to date, and open the plugins on it."""
    build = build_state if kept_state is None else kept_state.open
    state = build(cluster, full_hierarchy=config.full_hierarchy_fairness)
    session = Session(state, config, clock, should_stop, gpu_group_seed)
    for plugin_config in config.plugins:
        plugin = spec_of(plugin_config.name).plugin(plugin_config.arguments)
        if plugin is not None:
            started = clock()
            plugin.open(session)
            session.plugin_seconds[plugin_config.name] = clock() - started
    session.start()
    charge_all_minimums(session)
    return session


def run_action(session: Session, placer: Placer, name: ActionName) -> ActionReport:
    """Run one action on an open session; its time is measured by the session's clock."""
    report = ActionReport(name)
    started = session.clock()
    ACTIONS[name]().run(session, placer, report)
    report.seconds = session.clock() - started
    session.reports.append(report)
    return report

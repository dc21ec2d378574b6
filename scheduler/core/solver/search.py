"""The search for victims of one pod group: larger and larger parts of its chunk, then all of it.

Each generator in turn finds out how many of the tasks can get room. It probes one task, two, four ...
until a probe fails, then halves between the last success and the first failure. What a probe had to evict
is settled: it is part of every later probe. At the end the whole chunk is tried once more, and only that
counts. Solving the whole chunk at once would find other, larger sets of victims.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from scheduler.core.arrays import Floats
from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.decisions import DUPLICATE, EvictReason
from scheduler.core.session.gang import GangView
from scheduler.core.session.nodeset import NodeSet
from scheduler.core.session.session import Session
from scheduler.core.session.statement import Statement
from scheduler.core.solver.bounds import (
    Places,
    has_topology_constraint,
    is_hopeless,
    is_shut_in,
    may_fit,
)
from scheduler.core.solver.budget import GroupBudget, SearchResult
from scheduler.core.solver.demand import ProbeDemand
from scheduler.core.solver.generators import GENERATORS, Probe, VictimSet
from scheduler.core.solver.moves import MovingRoom
from scheduler.core.solver.room import GpuRoom
from scheduler.core.solver.trial import Success, Trial, TrialRunner
from scheduler.core.solver.usefulness import BatchTest, UsefulVictims, domain_tests
from scheduler.core.solver.victims import Batch, VictimSequence
from scheduler.core.solver.within_limits import within_limits

#: Failed trials after which it is worth checking whether the search can succeed at all.
PATIENCE = 3
#: The same for sets of victims that are refused before a trial, which costs much less.
REFUSALS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchTask:
    """What an action gives to one search: the pod group that needs room, and the rules of the action.

    Attributes
    ----------
    view : the pod group that needs room
    make_sequence : tasks that count as evicted already -> what else may be evicted, in order; called
        again where settled victims are elastic
    accepts : the action's rules on the outcome of a trial
    reason_of : (victim, number of victims) -> why it is evicted
    takeable : every batch there is -> exclusive upper bound on the GPUs that may be evicted together
    may_lose : whether a victim may end without a place; False if all must be moved
    """

    view: GangView
    make_sequence: Callable[[frozenset[int]], VictimSequence]
    accepts: Callable[[ProbeDemand, Mapping[int, Sequence[int]]], bool]
    reason_of: Callable[[int, int], EvictReason]
    takeable: Callable[[Sequence[Batch]], float]
    may_lose: bool = True


class OutOfTimeError(Exception):
    """The time budget of the pod group is used up, so the whole search ends."""


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """How a search ended; the statement is open if it was solved."""

    result: SearchResult
    statement: Statement | None = None
    victims: tuple[int, ...] = ()


class Search:
    """One search; use `run` once."""

    def __init__(
        self, session: Session, runner: TrialRunner, task: SearchTask, budget: GroupBudget
    ) -> None:
        self._session = session
        self._runner = runner
        self._task = task
        self._budget = budget
        self._chunk = tuple(task.view.next_chunk(include_evicted=True))
        #: Size of a chunk -> what it demands.
        self._demands: dict[int, ProbeDemand] = {}
        self._sequence: VictimSequence | None = None
        #: Demand, settled victims and proposed victims of the trials that failed.
        self._failed: set[tuple[int, frozenset[int], frozenset[int]]] = set()
        self._failures = 0
        self._refusals = 0
        #: Which victims generators may propose now, and whether any were left out so far.
        self._is_useful: BatchTest | None = None
        self._has_skipped = False
        #: The answer of `_is_hopeless`, once it was computed.
        self._was_hopeless: bool | None = None
        self._has_topology = has_topology_constraint(task.view.root)
        self._room: Floats = GpuRoom.of(session).gpus
        #: Number of tasks of the demand -> its room; used if victims must be moved.
        self._moving_room: dict[int, MovingRoom] = {}

    def run(self) -> SearchOutcome:
        """Search with every generator in turn."""
        self._session.disruptions.in_the_way.clear()
        generators = self._session.hooks.generators
        if not generators:
            return SearchOutcome(SearchResult.NO_GENERATOR)
        if not self._chunk:
            return SearchOutcome(SearchResult.GENERATORS_EXHAUSTED)
        if len(self._chunk) > 1 and self._is_hopeless():
            return SearchOutcome(SearchResult.GENERATORS_EXHAUSTED)
        try:
            for is_useful in self._victim_tests():
                self._is_useful = is_useful
                for name in generators:
                    success = self._with_generator(name)
                    if success is not None:
                        return self._finish(success)
                    if self._was_hopeless:
                        return SearchOutcome(SearchResult.GENERATORS_EXHAUSTED)
        except OutOfTimeError:
            return SearchOutcome(SearchResult.DEADLINE_EXHAUSTED)
        return SearchOutcome(SearchResult.GENERATORS_EXHAUSTED)

    def _victim_tests(self) -> Iterator[BatchTest | None]:
        """Yield tests of which victims to propose: one for each required domain, then useful ones, then None for any.

        Victims that are of no use themselves may still make room for others to move to.
        """
        demand = self._demand(len(self._chunk))
        is_useful = UsefulVictims(self._session, self._runner.rules_of, demand)
        if self._has_topology:
            yield from domain_tests(self._session, demand, self._sequence_for(()).all())
        yield is_useful
        if self._has_skipped:
            yield None

    def _finish(self, success: Success) -> SearchOutcome:
        """Keep a success if the pod group then has its minimum; KAI keeps others too, but reports them as unsolved."""
        if self._task.view.is_gang_satisfied():
            return SearchOutcome(SearchResult.SOLVED, success.statement, success.victims)
        success.statement.discard()
        return SearchOutcome(SearchResult.GENERATORS_EXHAUSTED)

    # -------------------------------------------------------------------------- one generator

    def _with_generator(self, name: str) -> Success | None:
        """Return a success for the whole chunk with the victims that one generator proposes."""
        self._runner.generator = GENERATORS[name][0]
        self._budget.start_generator(self._runner.generator)
        whole = len(self._chunk)
        settled: tuple[int, ...] = ()
        low, size = 0, 1
        while True:
            success = self._probe(name, size, settled)
            if success is None:
                break
            low = size
            if size == whole and success.is_exact:
                return success
            success.statement.discard()
            settled = success.victims
            if size == whole:
                return self._probe(name, whole, settled)
            size = min(size * 2, whole)
        if not low:
            return None
        settled = self._halve(name, low, size, settled)
        return self._probe(name, whole, settled)

    def _halve(self, name: str, low: int, high: int, settled: tuple[int, ...]) -> tuple[int, ...]:
        """Find the largest part that can get room, between a success and a failure; return its victims."""
        while high - low > 1:
            middle = (low + high) // 2
            success = self._probe(name, middle, settled)
            if success is None:
                high = middle
            else:
                low = middle
                success.statement.discard()
                settled = success.victims
        return settled

    def _probe(self, name: str, size: int, settled: tuple[int, ...]) -> Success | None:
        """Return the first success for the first `size` tasks of the chunk, beyond the settled victims."""
        demand = self._demand(size)
        probe = Probe(
            self._session,
            demand,
            settled,
            self._room,
            self._sequence_for(settled),
            self._is_useful,
        )
        places = self._places(demand, settled)
        if self._was_hopeless and size == len(self._chunk):
            return None
        try:
            for victims in self._victim_sets(name, probe):
                for subset in within_limits(self._session.disruptions, probe, victims):
                    success = self._try(probe, places, subset)
                    if success is not None:
                        return success
        finally:
            self._runner.report.filtered += probe.filters.rejected
            self._has_skipped = self._has_skipped or probe.has_skipped
        return None

    def _victim_sets(self, name: str, probe: Probe) -> Iterator[VictimSet]:
        for victims in GENERATORS[name][1](probe):
            self._runner.report.count_emitted(self._runner.generator)
            if self._budget.is_exhausted:
                raise OutOfTimeError
            if self._budget.is_generator_exhausted or (
                self._is_worth_a_check() and self._is_hopeless()
            ):
                return
            yield victims

    def _try(self, probe: Probe, places: Places, victims: VictimSet) -> Success | None:
        if not victims and not probe.settled:
            return None
        if not may_fit(places, probe.demand, victims) or not self._may_move(
            probe.demand, probe.settled + victims
        ):
            self._refusals += 1
            return None
        key = (probe.demand.key, probe.settled_set, frozenset(victims))
        if key in self._failed:
            self._runner.report.trials.append((self._runner.generator, DUPLICATE, 0.0))
            return None
        trial = Trial(
            probe.demand,
            probe.settled + victims,
            self._nodes(probe, victims),
            self._task.reason_of,
            self._task.may_lose,
        )
        success = self._runner.run(trial, self._task.accepts)
        if success is None:
            self._failed.add(key)
            self._failures += 1
        return success

    # ------------------------------------------------------------------- the parts of a probe

    def _demand(self, size: int) -> ProbeDemand:
        demand = self._demands.get(size)
        if demand is None:
            demand = ProbeDemand(self._session, self._task.view, self._chunk[:size])
            self._demands[size] = demand
        return demand

    def _places(self, demand: ProbeDemand, settled: tuple[int, ...]) -> Places:
        task = demand.tasks[0]
        return Places(
            self._session,
            self._runner.rules_of(task),
            demand,
            settled,
            may_lose=self._task.may_lose,
        )

    def _sequence_for(self, settled: tuple[int, ...]) -> VictimSequence:
        """Return the victims in order; the sequence is shared, unless settled victims are elastic.

        A pod group that lost some of its tasks competes for the rest, which changes the order.
        """
        if self._sequence is None:
            self._sequence = self._task.make_sequence(frozenset())
        if settled and self._has_partial_victim(settled):
            return self._task.make_sequence(frozenset(settled))
        return self._sequence

    def _has_partial_victim(self, settled: tuple[int, ...]) -> bool:
        """Return whether some pod group has lost some of its tasks, but not all."""
        active = self._session.state.pod_groups.active_allocated
        pod_group_of = self._session.state.tasks.pod_group
        lost_tasks = Counter(pod_group_of[task] for task in settled)
        return any(count < active[pod_group] for pod_group, count in lost_tasks.items())

    def _nodes(self, probe: Probe, victims: VictimSet) -> NodeSet:
        """Return the nodes on which a trial may place: all of them, unless a topology domain must be chosen.

        A domain is chosen among the nodes that matter: those with free GPUs, and those of victims.
        """
        if not (self._has_topology and probe.demand.wants_gpu):
            return self._session.all_nodes
        nodes = set((self._room > 0).nonzero()[0].tolist())
        node_of = self._session.state.tasks.node
        nodes.update(node_of[task] for task in probe.settled)
        nodes.update(node_of[task] for task in victims)
        nodes.discard(NOWHERE)
        return NodeSet.of(list(nodes))

    def _may_move(self, demand: ProbeDemand, victims: Sequence[int]) -> bool:
        """Return whether these victims could all have another place beside the demand, if they need one."""
        if self._task.may_lose:
            return True
        room = self._moving_room.get(demand.key)
        if room is None:
            room = MovingRoom(self._session, self._runner.rules_of, demand)
            self._moving_room[demand.key] = room
        return room.may_hold(victims)

    def _is_worth_a_check(self) -> bool:
        """Return whether so many attempts failed that it pays to check whether all victims together would do."""
        return self._failures > PATIENCE or self._refusals > REFUSALS

    def _is_hopeless(self) -> bool:
        """Return whether even evicting every victim cannot make room for the whole chunk; computed once."""
        if self._was_hopeless is None:
            batches = self._sequence_for(()).all()
            victims = tuple(task for batch in batches for task in batch.tasks)
            self._was_hopeless = (
                self._is_out_of_bounds(batches)
                or not self._may_move(self._demand(len(self._chunk)), victims)
                or not self._may_place_first(victims)
            )
        return self._was_hopeless

    def _is_out_of_bounds(self, batches: Sequence[Batch]) -> bool:
        """Return whether the figures of all victims together say that the chunk cannot get room."""
        demand, rules_of = self._demand(len(self._chunk)), self._runner.rules_of
        return is_hopeless(
            self._session,
            self._places(demand, ()),
            demand,
            self._room,
            batches,
            self._task.takeable(batches),
        ) or (
            not self._task.may_lose
            and is_shut_in(self._session, rules_of, demand, self._room, batches)
        )

    def _may_place_first(self, victims: tuple[int, ...]) -> bool:
        """Return whether the first task could be placed once all victims have left, if figures do not say so.

        Which pods stand beside it and what is left of single devices is in no figure.
        """
        demand = self._demand(1)
        task = demand.tasks[0]
        task_class = self._session.state.tasks.task_class[task]
        rules = self._runner.rules_of(task)
        if not (task_class.is_shared or rules.node_filters or rules.cluster_filters):
            return True
        if task_class.constraints.pod_affinity or task_class.is_dra:
            return True  # a victim may be the pod that it must stand beside, or share its claim
        return self._runner.fits_once_all_left(
            Trial(demand, victims, self._session.all_nodes, self._task.reason_of)
        )

"""A run over many random clusters: check every rule, collect what does not hold, shrink it, write it down."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.scheduler.fuzz import evictions, gangs, oracle, queues, reasons, room, sameness
from tests.scheduler.fuzz.cycles import CycleRun, Finding, disturb, next_document, play
from tests.scheduler.fuzz.generate import Document, add_arrival, random_document
from tests.scheduler.fuzz.shrink import shrink

Rule = Callable[[CycleRun], Iterable[Finding]]

RULES: tuple[Rule, ...] = (
    gangs.gangs_are_not_broken,
    gangs.gangs_start_whole,
    gangs.only_preemptible_work_is_evicted,
    room.no_bind_overdraws_a_node,
    room.no_promise_overdraws_a_node,
    room.state_is_valid,
    queues.limits_hold,
    queues.non_preemptible_work_stays_within_quota,
    queues.reclaim_takes_only_what_is_above,
    evictions.nothing_is_bound_and_evicted,
    evictions.evictions_have_an_evictor,
    evictions.evictions_are_needed,
    evictions.moves_are_needed,
    reasons.explanations_agree,
    sameness.order_of_input_does_not_matter,
    sameness.names_of_nodes_do_not_matter,
    sameness.input_is_left_alone,
)
#: Pod groups of a living cluster.
MAX_JOBS = 20
#: Rounds of an undisturbed cluster in which a repeated eviction must show again while it is shrunk.
CALM_CYCLES = 5

#: What is looked for in a document.
Check = Callable[[Document], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Hit:
    """A finding with the smallest document that shows it."""

    finding: Finding
    cluster: int
    document: Document


@dataclass(slots=True)
class Campaign:
    """The state of a run.

    Attributes
    ----------
    first_of : only the first finding of each rule is shrunk
    """

    seed: int
    cycles: int = 1
    clusters: int = 0
    cycles_run: int = 0
    tiny: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    decisions: Counter[str] = field(default_factory=Counter)
    first_of: dict[str, Hit] = field(default_factory=dict)

    def run_cluster(self, number: int) -> None:
        """Play one random cluster for as many cycles as the run has."""
        rng = random.Random(f"{self.seed}/{number}")
        document = random_document(rng, number)
        self.clusters += 1
        repeated, calm_start, is_disturbed = evictions.RepeatedEvictions(), document, False
        for cycle in range(self.cycles):
            cycle_run = play(document)
            self.cycles_run += 1
            self.decisions.update(
                type(decision).__name__ for decision in cycle_run.session.decisions
            )
            self.decisions.update(str(eviction.reason.action) for eviction in cycle_run.evictions)
            for finding in broken_rules(cycle_run):
                self._note(finding, number, document, check_once)
            for finding in repeated.watch(cycle_run, is_disturbed=is_disturbed):
                self._note(finding, number, calm_start, check_repeated)
            document = next_document(cycle_run)
            is_disturbed = disturb(document, rng)
            if rng.random() < 0.3 and len(document["jobs"]) < MAX_JOBS:
                add_arrival(rng, document, 100 + cycle)
                is_disturbed = True
            if is_disturbed:
                calm_start = document

    def run_tiny(self, number: int) -> None:
        """Ask the oracle about one tiny cluster, and check every rule after its first cycle."""
        document = oracle.tiny_document(random.Random(f"{self.seed}/tiny/{number}"), number)
        self.tiny += 1
        for finding in check_once(document):
            self._note(finding, number, document, check_once)
        for finding in oracle.misses(document):
            self._note(finding, number, document, oracle.misses)

    def _note(self, finding: Finding, cluster: int, document: Document, check: Check) -> None:
        self.counts[finding.rule] += 1
        if finding.rule in self.first_of:
            return

        def still_fails(smaller: Document) -> bool:
            return any(found_again.rule == finding.rule for found_again in safely(check, smaller))

        smallest = shrink(document, still_fails)
        last = next((f for f in safely(check, smallest) if f.rule == finding.rule), finding)
        self.first_of[finding.rule] = Hit(last, cluster, smallest)

    def write(self, folder: Path) -> list[Path]:
        """Write the shrunk findings as scenarios, without an expectation yet."""
        folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for rule, hit in sorted(self.first_of.items()):
            name = f"{rule.replace(' ', '-')}-{self.seed}-{hit.cluster}"
            title = f"{hit.finding.rule}: {hit.finding.text}"
            path = folder / f"{name}.json"
            path.write_text(json.dumps({**hit.document, "id": name, "title": title}, indent=1))
            paths.append(path)
        return paths


def broken_rules(cycle_run: CycleRun) -> Iterator[Finding]:
    """Return everything that does not hold after a cycle."""
    for rule in RULES:
        yield from rule(cycle_run)


def check_once(document: Document) -> Iterator[Finding]:
    """Play one cycle and check every rule."""
    return broken_rules(play(document))


def check_repeated(document: Document) -> Iterator[Finding]:
    """Play several cycles that nothing disturbs, and look for pods evicted twice."""
    repeated = evictions.RepeatedEvictions()
    for _ in range(CALM_CYCLES):
        cycle_run = play(document)
        yield from repeated.watch(cycle_run, is_disturbed=False)
        document = next_document(cycle_run)


def safely(check: Check, document: Document) -> list[Finding]:
    """Check a document that may have lost a part it needs; such a document shows nothing."""
    try:
        return list(check(document))
    except (KeyError, StopIteration, RuntimeError, IndexError, ValueError):
        return []

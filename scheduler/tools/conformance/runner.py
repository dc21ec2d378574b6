"""Run every scenario and table below a folder, and collect the verdicts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scheduler.tools.conformance.judge import judge_limits, judge_observed, judge_outcome
from scheduler.tools.conformance.play import ScenarioRun, play
from scheduler.tools.conformance.tables import judge_table
from scheduler.tools.conformance.verdict import Mismatch, Verdict


@dataclass(slots=True, kw_only=True)
class Report:
    """The result of running a folder.

    Attributes
    ----------
    actual : scenario -> what happened in it, in the form of `observed` (or its error)
    """

    verdicts: list[Verdict] = field(default_factory=list)
    actual: dict[str, Any] = field(default_factory=dict)

    @property
    def judged(self) -> list[Verdict]:
        """Return the verdicts of cases that state an expectation."""
        return [verdict for verdict in self.verdicts if verdict.judged]

    @property
    def failing(self) -> list[Verdict]:
        """Return the judged cases that do not pass."""
        return [verdict for verdict in self.judged if not verdict.passed]

    @property
    def summary(self) -> str:
        """Return "<passed> of <judged>" cases."""
        total = len(self.judged)
        return f"{total - len(self.failing)} of {total}"


def run_folder(folder: Path, *, judge_observations: bool = False) -> Report:
    """Run every scenario and table below a folder, in order of path.

    Parameters
    ----------
    folder : where the JSON files are; other files and unknown schemas are skipped
    judge_observations : also compare every task with `observed`, what KAI did in the same scenario

    Raises
    ------
    FileNotFoundError : no such folder
    """
    if not folder.exists():
        raise FileNotFoundError(f"no folder or file at {folder}")
    report = Report()
    for document in read_documents(folder):
        if "table" in document:
            report.verdicts += judge_table(document)
        else:
            _run_scenario(document, report, judge_observations)
    return report


def read_documents(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield every document of a known schema below a folder (or the one file it names)."""
    paths = [folder] if folder.is_file() else sorted(folder.rglob("*.json"))
    for path in paths:
        document = json.loads(path.read_text())
        if not isinstance(document, dict):
            continue
        if "table" in document and "cases" in document:
            yield document
        elif "cluster" in document and "jobs" in document:
            document.setdefault("id", path.stem)
            yield document


def judge_scenario(
    document: dict[str, Any], run: ScenarioRun, *, judge_observations: bool = False
) -> Verdict:
    """Judge a scenario that was played, at each of its judging points (the end, or each round)."""
    mismatches: list[Mismatch] = []
    for judging_point, outcome in run.points:
        mismatches += judge_outcome(document, outcome, judging_point)
    mismatches += judge_limits(document, run.counts)
    if judge_observations:
        mismatches += judge_observed(document, run.end)
    return Verdict(
        case=document["id"],
        mismatches=tuple(mismatches),
        judged=bool(document.get("expected")) or judge_observations,
    )


def _run_scenario(document: dict[str, Any], report: Report, judge_observations: bool) -> None:
    name = document["id"]
    try:
        run = play(document)
        verdict = judge_scenario(document, run, judge_observations=judge_observations)
        report.actual[name] = run.as_dict()
    except Exception as error:  # one broken scenario must not hide the others; it counts as failed
        broken = Mismatch(
            where="run", expected="an outcome", actual=f"{type(error).__name__}: {error}"
        )
        verdict = Verdict(case=name, mismatches=(broken,))
        report.actual[name] = {"error": broken.actual}
    report.verdicts.append(verdict)

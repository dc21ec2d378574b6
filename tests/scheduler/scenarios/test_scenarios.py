"""The project's own scenarios: one JSON per case, in the schema of the conformance runner."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scheduler.tools.conformance.play import play
from scheduler.tools.conformance.runner import judge_scenario

FOLDER = Path(__file__).parent
SCENARIOS = sorted(path.stem for path in FOLDER.glob("*.json"))


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(name) -> None:
    document = json.loads((FOLDER / f"{name}.json").read_text())
    assert document["id"] == f"own/{name}"
    verdict = judge_scenario(document, play(document))
    assert verdict.judged
    assert [miss.as_text() for miss in verdict.mismatches] == []


def test_there_are_scenarios() -> None:
    assert len(SCENARIOS) >= 30

"""Each known fault has a small cluster that shows it; once the fault is mended its entry and file go."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.scheduler.fuzz.campaign import check_once, check_repeated
from tests.scheduler.fuzz.known import KNOWN, known_fault

FAULTS = sorted((Path(__file__).parent / "faults").glob("*.json"))


@pytest.mark.parametrize("file", FAULTS, ids=lambda file: file.stem)
def test_a_known_fault_still_shows_in_its_cluster(file: Path) -> None:
    document = json.loads(file.read_text())
    findings = [*check_once(document), *check_repeated(document)]
    shown = {known_fault(finding, document) for finding in findings}
    assert file.stem[:2] in shown
    assert None not in shown, "a fault that is not known"


def test_every_known_fault_has_a_cluster() -> None:
    assert {file.stem[:2] for file in FAULTS} == {entry.fault for entry in KNOWN}

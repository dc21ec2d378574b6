"""Small clusters in which the fuzz once found a fault, of the core or of a rule; every rule must hold in them now."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.scheduler.fuzz.campaign import check_once, check_repeated

MENDED = sorted((Path(__file__).parent / "mended").glob("*.json"))


@pytest.mark.parametrize("file", MENDED, ids=lambda file: file.stem)
def test_no_rule_is_broken_where_one_was(file: Path) -> None:
    document = json.loads(file.read_text())
    assert [*check_once(document), *check_repeated(document)] == []


def test_there_are_mended_clusters() -> None:
    assert len(MENDED) >= 5

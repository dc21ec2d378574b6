"""Small clusters in which the fuzz finds a fault of the core that is not mended yet; a mended one moves to `mended/`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.scheduler.fuzz.campaign import check_once, check_repeated

OPEN = sorted((Path(__file__).parent / "open").glob("*.json"))


@pytest.mark.xfail(strict=True, reason="a fault of the core that is known and open")
@pytest.mark.parametrize("file", OPEN, ids=lambda file: file.stem)
def test_no_rule_is_broken(file: Path) -> None:
    document = json.loads(file.read_text())
    assert [*check_once(document), *check_repeated(document)] == []

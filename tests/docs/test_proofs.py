"""Each of the twenty proofs names tests, the threat model too, and each named test exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "proofs.md").read_text()
SECTIONS = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
NAMED = re.compile(r"`(tests/[\w/.-]+?)(?:::(\w+))?`")


def test_there_are_twenty_in_order():
    assert [section.partition(".")[0] for section in SECTIONS] == [str(n) for n in range(1, 21)]


def test_the_threat_model_names_tests_that_exist():
    page = (ROOT / "docs" / "operations" / "threat-model.md").read_text()
    named = re.findall(r"`((?:tests|kaiweb|deploy)/[\w/.-]+)`", page)
    assert len(named) > 15
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.partition(".")[0])
def test_a_section_says_what_was_reported_and_names_tests_that_exist(section: str):
    assert all(f"*{word}:*" in section for word in ("Reported", "Here", "Proof"))
    named = NAMED.findall(section)
    assert named
    for file, name in named:
        text = (ROOT / file).read_text()
        assert name or file.endswith(".json"), f"{file}: name a test"
        assert not name or re.search(rf"\bdef {name}\(", text), f"{file} has no {name}"

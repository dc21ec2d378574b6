"""Every reason code has a text and a remedy in the dashboard, and a row in the guide."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from queues.workloads import reasons

ROOT = Path(__file__).resolve().parents[2]
CODES = sorted(
    value for name, value in vars(reasons).items() if name.isupper() and isinstance(value, str)
)


def test_the_codes_are_read():
    assert len(CODES) >= 19
    assert "BindFailing" in CODES


@pytest.mark.parametrize("code", CODES)
def test_a_code_is_explained_in_the_dashboard_and_in_the_guide(code: str):
    texts = (ROOT / "frontend/web/src/i18n/reasons.ts").read_text()
    guide = (ROOT / "docs/guides/why-it-waits.md").read_text()
    assert len(re.findall(rf"^  {code}:", texts, re.MULTILINE)) == 2, "a text and a remedy"
    assert f"| `{code}` |" in guide

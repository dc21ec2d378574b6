"""The rules by which ID tokens of pipelines are exchanged."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kaiweb.settings import ci
from kaiweb.settings.ci import CiRule, ci_rules
from kaiweb.settings.env import EnvError
from queues.access import rights

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "ci.md"
RULE: dict[str, Any] = {
    "issuer": "https://gitlab.example.com", "audience": "https://kaiweb.example.com",
    "claims": {"project_path": "acme/quotas", "ref": ["main", "release-*"]},
    "user": "ci", "scopes": ["read", "simulate"],
}  # fmt: skip


def read(*rules: Any) -> tuple[CiRule, ...]:
    return ci_rules({"KAIWEB_CI_RULES": json.dumps(rules)})


def test_a_rule_is_read_with_its_defaults() -> None:
    assert read(RULE) == (
        CiRule(
            issuer="https://gitlab.example.com",
            audience="https://kaiweb.example.com",
            claims=(("project_path", ("acme/quotas",)), ("ref", ("main", "release-*"))),
            user="ci",
            scopes=("read", "simulate"),
            minutes=15,
        ),
    )
    assert ci_rules({}) == ()


@pytest.mark.parametrize(
    "changed",
    [{"issuer": "http://gitlab.example.com"}, {"issuer": None}, {"audience": ""}, {"claims": {}},
     {"claims": {"repository": "*"}}, {"claims": {"ref": []}}, {"claims": {"ref": 7}}, {"user": ""},
     {"scopes": []}, {"scopes": ["root"]}, {"subtree": 7}, {"networks": ["10.0.0.1/8"]},
     {"networks": 7}, {"minutes": 0}, {"minutes": 61}, {"minutes": "5"}, {"role": "admin"}],
    ids=str,
)  # fmt: skip
def test_a_rule_that_cannot_be_used_is_refused_with_its_field(changed: dict[str, Any]) -> None:
    with pytest.raises(EnvError, match=next(iter(changed))):
        read(RULE | changed)


@pytest.mark.parametrize("raw", ["{", "{}", "[7]", "[{}]"])
def test_what_is_no_list_of_rules_is_refused(raw: str) -> None:
    with pytest.raises(EnvError, match="KAIWEB_CI_RULES"):
        ci_rules({"KAIWEB_CI_RULES": raw})


def test_the_scopes_are_those_of_tokens() -> None:
    assert ci.SCOPES == rights.SCOPES


def test_the_rules_that_the_guide_shows_can_be_used() -> None:
    (shown,) = re.findall(r"^```json\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    github, gitlab = ci_rules({"KAIWEB_CI_RULES": shown})
    assert (github.subtree, gitlab.scopes) == ("department", ("read", "simulate"))

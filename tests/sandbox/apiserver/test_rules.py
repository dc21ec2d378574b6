"""CEL rules of custom kinds: ours, transitions, messages, and rules that do not compile."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.apiserver import errors
from sandbox.apiserver.rules import RuleError, Rules
from sandbox.apiserver.shapes import Shape

LEVELS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"nodeLabel": {"type": "string"}, "alias": {"type": "string"}},
    },
    "x-kubernetes-validations": [
        {
            "rule": "self.map(l, l.nodeLabel) == oldSelf.map(l, l.nodeLabel)",
            "message": "nodeLabel structure is immutable; only aliases may be edited",
        },
        {
            "rule": "size(self.filter(i, size(self.filter(j, j.nodeLabel == i.nodeLabel)) > 1)) == 0",
            "message": "nodeLabel must be unique",
        },
    ],
}


@pytest.fixture(scope="module")
def rules() -> Rules:
    return Rules()


def shape(schema: dict[str, Any]) -> Shape:
    return Shape({"type": "object", "properties": {"spec": schema}}, lambda name: {})


def check(rules: Rules, schema: dict[str, Any], new: Any, old: Any = None) -> list[str]:
    before = None if old is None else {"spec": old}
    return [cause.sentence for cause in rules.check({"spec": new}, before, shape(schema), [])]


def test_rule_over_a_list(rules: Rules) -> None:
    assert check(rules, LEVELS, [{"nodeLabel": "zone"}, {"nodeLabel": "rack"}]) == []
    twice = [{"nodeLabel": "zone"}, {"nodeLabel": "zone"}]
    assert check(rules, LEVELS, twice) == ["spec: Invalid value: nodeLabel must be unique"]


def test_transition_rule_needs_an_old_value(rules: Rules) -> None:
    old = [{"nodeLabel": "zone"}]
    assert check(rules, LEVELS, [{"nodeLabel": "zone", "alias": "z"}], old) == []
    assert check(rules, LEVELS, [{"nodeLabel": "rack"}], old) == [
        "spec: Invalid value: nodeLabel structure is immutable; only aliases may be edited"
    ]


def test_numbers_follow_the_schema(rules: Rules) -> None:
    schema = {
        "type": "number",
        "x-kubernetes-validations": [{"rule": "self >= 0.0 || self == -1.0"}],
    }
    assert check(rules, schema, 4) == []
    assert check(rules, schema, -1) == []
    assert check(rules, schema, -2) == [
        "spec: Invalid value: -2: failed rule: self >= 0.0 || self == -1.0"
    ]


def test_transition_in_a_keyed_list_matches_items_by_key(rules: Rules) -> None:
    schema = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "size": {
                    "type": "integer",
                    "x-kubernetes-validations": [
                        {"rule": "self >= oldSelf", "message": "may not shrink"}
                    ],
                },
            },
        },
    }
    old = [{"name": "a", "size": 3}]
    assert check(rules, schema, [{"name": "b", "size": 1}, {"name": "a", "size": 4}], old) == []
    assert check(rules, schema, [{"name": "b", "size": 1}, {"name": "a", "size": 2}], old) == [
        "spec[1].size: Invalid value: 2: may not shrink"
    ]


def test_message_expression_is_evaluated(rules: Rules) -> None:
    schema = {
        "type": "string",
        "x-kubernetes-validations": [
            {"rule": "self != 'bad'", "messageExpression": "'got ' + self", "message": "unused"}
        ],
    }
    assert check(rules, schema, "bad") == ['spec: Invalid value: "bad": got bad']


def test_rules_wait_for_a_valid_object(rules: Rules) -> None:
    wrong = [errors.required("spec.x")]
    (cause,) = rules.check({"spec": []}, None, shape(LEVELS), wrong)
    assert cause.field == "<nil>"
    assert "some validation rules were not checked" in cause.message


def test_bad_expression_is_reported_when_it_is_compiled(rules: Rules) -> None:
    with pytest.raises(RuleError, match="compilation failed"):
        rules.compile("self >>> 1")
    bad = shape({"type": "string", "x-kubernetes-validations": [{"rule": "self >>> 1"}]})
    (cause,) = rules.check_shape(bad, "schema")
    assert cause.field == "schema.properties[spec].x-kubernetes-validations[0].rule"

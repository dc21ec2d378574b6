"""CEL rules of custom kinds: ours, transitions, messages, and rules that do not compile."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.apiserver.model import errors
from sandbox.apiserver.model.shapes import Shape
from sandbox.apiserver.schema.rules import RuleError, Rules

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


def test_rules_of_values_seen_before_are_not_evaluated_again(
    rules: Rules, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = {
        "type": "integer",
        "x-kubernetes-validations": [
            {"rule": "self > 10", "message": "too small"},
            {"rule": "self >= oldSelf", "message": "may not shrink"},
        ],
    }
    of_object, evaluated = shape(schema), []
    evaluate = Rules.evaluate

    def noted(rules: Rules, text: str, variables: dict[str, Any]) -> Any:
        evaluated.append(text)
        return evaluate(rules, text, variables)

    monkeypatch.setattr(Rules, "evaluate", noted)

    def messages(new: int, old: int | None) -> list[str]:
        before = None if old is None else {"spec": old}
        return [cause.message for cause in rules.check({"spec": new}, before, of_object, [])]

    for _time in range(2):
        assert messages(11, None) == []
        assert messages(11, 11) == []
        assert messages(11, 12) == ["Invalid value: 11: may not shrink"]
        assert messages(9, 8) == ["Invalid value: 9: too small"]
    assert len(evaluated) == 7


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


OBJECT = {"metadata": {"name": "ab", "annotations": {"x": "1"}}, "spec": {"a": 1, "list": [1, 2]}}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("object.spec.a == 1", True),
        ("object.spec != oldObject.spec", False),
        ("has(object.spec.b) || has(object.spec.a)", True),
        ("'x' in object.metadata.annotations", True),
        ("object.metadata.annotations['x'] == '1'", True),
        ("object.metadata.name.startsWith('a')", True),
        ("object.spec.list.all(i, i < 2)", False),
        ("request.operation == 'CREATE' && object.spec.a > 0", True),
        ("object == oldObject", True),
        ("'object.spec.a' == 'x'", False),
    ],
)
def test_a_decision_is_the_evaluation(rules: Rules, text: str, holds: bool) -> None:
    values = {"object": OBJECT, "oldObject": OBJECT, "request": {"operation": "CREATE"}}
    assert rules.decide(text, values) is holds
    assert rules.decide(text, values) is holds


@pytest.mark.parametrize(
    ("text", "change", "before", "after"),
    [
        ("object.spec.a == 1", {"spec": {"a": 2}}, True, False),
        ("has(object.spec.b)", {"spec": {"b": None}}, False, True),
        ("object.metadata.name.size() == 2", {"metadata": {"name": "abc"}}, True, False),
        ("object.spec.list[1] == 2", {"spec": {"list": [1, 3]}}, True, False),
        ("size(object.spec) == 2", {"spec": {}}, True, False),
        (
            "'y' in object.metadata.annotations",
            {"metadata": {"annotations": {"y": ""}}},
            False,
            True,
        ),
        (
            "'x' in object.metadata.annotations && object.metadata.annotations['x'] == '1'",
            {"metadata": {"annotations": {"x": "2"}}},
            True,
            False,
        ),
    ],
)
def test_what_an_expression_reads_decides_anew_when_it_changes(
    rules: Rules, text: str, change: dict[str, Any], before: bool, after: bool
) -> None:
    assert rules.decide(text, {"object": OBJECT}) is before
    assert rules.decide(text, {"object": {**OBJECT, **change}}) is after


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("object.spec.a == 1", {"status": {"number": 0}}),
        ("'y' in object.metadata.annotations", {"metadata": {"annotations": {"z": "0"}}}),
        ("has(object.spec.b)", {"spec": {"a": 2}}),
    ],
)
def test_what_an_expression_does_not_read_costs_no_evaluation(
    monkeypatch, text: str, change: dict[str, Any]
) -> None:
    rules, evaluations = Rules(), 0
    evaluate = rules.evaluate

    def counted(text: str, variables: dict[str, Any]) -> Any:
        nonlocal evaluations
        evaluations += 1
        return evaluate(text, variables)

    monkeypatch.setattr(rules, "evaluate", counted)
    first = rules.decide(text, {"object": OBJECT})
    assert rules.decide(text, {"object": {**OBJECT, **change}}) is first
    assert evaluations == 1


def test_an_error_is_an_error_each_time(rules: Rules) -> None:
    for _ in range(2):
        with pytest.raises(RuleError):
            rules.decide("object.spec.nothing == 1", {"object": OBJECT})


@pytest.mark.parametrize(
    ("new", "old", "are_equal"),
    [
        (8, 12.5, False),
        (8, 8.0, True),
        (8, "8", False),
        ("a", None, False),
        ([1, 2], [1, 2.5], False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": [{"b": 1}]}, {"a": [{"b": 1}]}, True),
        (True, False, False),
        ([], {}, False),
    ],
)
def test_values_of_any_two_types_can_be_compared(
    rules: Rules, new: Any, old: Any, are_equal: bool
) -> None:
    values = {"object": {"spec": {"x": new}}, "oldObject": {"spec": {"x": old}}}
    assert rules.decide("object.spec == oldObject.spec", values) is are_equal
    assert rules.decide("object.spec != oldObject.spec", values) is not are_equal


def test_literals_compare_with_values(rules: Rules) -> None:
    values = {"object": {"n": 8, "f": 1.5, "s": "x"}}
    for text in (
        "object.n == 8",
        "8 == object.n",
        "object.s == 'x'",
        "object.f > 1.0",
        "object.n + 1 == 9",
    ):
        assert rules.decide(text, values), text

"""Kartas: which definition counts, what the two forms make of a workload, how its scale is read."""

from __future__ import annotations

import copy
import logging
from typing import Any

import pytest

from queues.grouping.karta import karta as karta_rules
from queues.grouping.karta.jq import Evaluator
from tests.queues.grouping.owned_pods import decision_of, error_of, owner, pod, spec_of

Json = dict[str, Any]
ROLE = '.metadata.labels["role"]'
PLAIN = {"queue": "default-queue", "priorityClassName": "train", "minMember": 1}


def part(name: str, parent: str = "ring", *, value: str | None = "", **fields: Any) -> Json:
    selector: Json = {"keyPath": ROLE}
    if value is not None:
        selector["value"] = value or name
    return {
        "name": name,
        "ownerRef": parent,
        "scaleDefinition": {"replicasPath": f".spec.{name}.replicas"},
        "podSelector": {"componentTypeSelector": selector},
        **fields,
    }


def karta(*parts: Json, name: str = "k", **gang: Any) -> Json:
    root = {"name": "ring", "kind": {"group": "example.test", "version": "v1", "kind": "Ring"}}
    return {
        "apiVersion": "run.ai/v1alpha1",
        "kind": "Karta",
        "metadata": {
            "name": name,
            "labels": {
                "run.ai/karta-group": "example.test",
                "run.ai/karta-version": "v1",
                "run.ai/karta-kind": "Ring",
            },
        },
        "spec": {
            "structureDefinition": {"rootComponent": root, "childComponents": list(parts)},
            "optimizationInstructions": {"gangScheduling": gang},
        },
    }


def ring(**spec: Any) -> Json:
    return owner("example.test/v1", "Ring", spec)


def grouped(*names: str, **fields: Any) -> Json:
    return {"name": "g", "subGroups": [{"componentName": name} for name in names], **fields}


def member(role: str, the_ring: Json, **metadata: Any) -> Json:
    return pod(the_ring, labels={"role": role}, **metadata)


def test_each_listed_part_is_a_flat_subgroup_and_takes_in_what_hangs_below_it() -> None:
    """minMember of a part = its own scale times its children's."""
    rule = karta(part("a"), part("b"), part("c", "b"), podGroup=grouped("a", "b"))
    the_ring = ring(a={"replicas": 2}, b={"replicas": 3}, c={"replicas": 4})
    decision = decision_of(member("c", the_ring), the_ring, rule)
    assert (decision.pod_group, decision.sub_group) == ("pg-u-own-g", "b")
    assert decision.body is not None
    assert decision.body["spec"] == {
        "queue": "default-queue",
        "priorityClassName": "train",
        "minSubGroup": 2,
        "subGroups": [{"name": "a", "minMember": 2}, {"name": "b", "minMember": 12}],
    }
    assert decision_of(member("other", the_ring), the_ring, rule).sub_group == ""


def test_minimum_replicas_come_before_replicas_and_a_zero_says_nothing() -> None:
    scale = {"minReplicasPath": ".spec.b.least", "replicasPath": ".spec.b.replicas"}
    rule = karta(part("b", scaleDefinition=scale), part("c", "b"), podGroup=grouped("b"))
    for spec, members in (
        ({"b": {"least": 2, "replicas": 3}, "c": {"replicas": 5}}, 10),
        ({"b": {"least": 0, "replicas": 3}, "c": {"replicas": 5}}, 15),
        ({"b": {"replicas": 3}, "c": {"replicas": 0}}, 3),
        ({"b": {}, "c": {"replicas": 5}}, 5),
    ):
        the_ring = ring(**spec)
        (sub_group,) = spec_of(member("b", the_ring), the_ring, rule)["subGroups"]
        assert sub_group["minMember"] == members


def test_a_part_without_a_scale_cannot_be_a_subgroup() -> None:
    message = "component a must expose a replica scale definition"
    unscaled = karta(part("a", scaleDefinition={}), podGroup=grouped("a"))
    the_ring = ring(a={"replicas": 1})
    assert error_of(member("a", the_ring), the_ring, unscaled) == message
    scaled = karta(part("a"), podGroup=grouped("a"))
    assert error_of(member("a", ring()), ring(), scaled) == message
    broken = ring(a={"replicas": "two"})
    assert error_of(member("a", broken), broken, scaled) == (
        "scale of component a must be a whole number, got 'two'"
    )


def test_without_listed_parts_the_whole_tree_is_the_gang() -> None:
    rule = karta(part("a"), part("b"), podGroup={"name": "all"})
    the_ring = ring(a={"replicas": 2}, b={"replicas": 3})
    decision = decision_of(member("a", the_ring), the_ring, rule)
    assert decision.pod_group == "pg-u-own-all"
    assert decision.body is not None
    assert decision.body["spec"] == {**PLAIN, "minMember": 5}


def test_where_nothing_has_a_scale_the_leaves_or_their_instances_are_counted() -> None:
    instances = part("b", scaleDefinition={}, instanceIdPath=".spec.names[]")
    rule = karta(part("a", scaleDefinition={}), instances, podGroup={"name": "all"})
    the_ring = ring(names=["x", "y", "z"])
    assert spec_of(member("a", the_ring), the_ring, rule)["minMember"] == 4
    assert spec_of(member("a", ring()), ring(names=[]), rule)["minMember"] == 2


def test_a_place_needs_a_name_and_a_level() -> None:
    place = {"topology": "hall", "requiredTopologyLevel": "rack"}
    requested = grouped("a", topology=place)
    requested["subGroups"][0]["topology"] = {"topology": "hall"}
    rule = karta(part("a"), podGroup=requested)
    the_ring = ring(a={"replicas": 1})
    spec = spec_of(member("a", the_ring), the_ring, rule)
    assert spec["topologyConstraint"] == place
    assert "topologyConstraint" not in spec["subGroups"][0]


def test_the_older_form_makes_groups_by_what_pods_say() -> None:
    members = [
        {"componentName": "a", "groupByKeyPaths": [ROLE, '.metadata.labels["index"]']},
        {"componentName": "b", "filters": ['.metadata.labels["index"] != "9"']},
    ]
    rule = karta(part("a"), part("b"), podGroups=[{"members": members}])
    the_ring = ring(a={"replicas": 2}, b={"replicas": 3})
    first = decision_of(pod(the_ring, labels={"role": "a", "index": "4"}), the_ring, rule)
    assert (first.pod_group, first.sub_group) == ("pg-u-own-a-4", "")
    assert first.body is not None
    assert first.body["spec"] == {**PLAIN, "minMember": 2}
    second = pod(the_ring, labels={"role": "b", "index": "4"})
    assert decision_of(second, the_ring, rule).pod_group == "pg-u-own"
    assert spec_of(second, the_ring, rule)["minMember"] == 3
    second["metadata"]["labels"]["index"] = "9"
    nobody = "pod p belongs to no component of the Karta for Ring"
    assert error_of(second, the_ring, rule) == nobody
    upper = pod(the_ring, labels={"role": "a", "index": "A_B"})
    assert error_of(upper, the_ring, rule) == (
        "pod group name 'pg-u-own-a-A_B' is not a DNS-1123 subdomain"
    )


def test_the_newer_form_wins_over_the_older() -> None:
    older = [{"members": [{"componentName": "a"}]}]
    rule = karta(part("a"), podGroup=grouped("a"), podGroups=older)
    the_ring = ring(a={"replicas": 1})
    assert decision_of(member("a", the_ring), the_ring, rule).pod_group == "pg-u-own-g"


def test_a_selector_without_a_value_asks_only_for_something_and_values_are_compared_as_jq_prints() -> (
    None
):
    rule = karta(part("a", value=None), podGroup=grouped("a"))
    the_ring = ring(a={"replicas": 1})
    assert decision_of(member("any", the_ring), the_ring, rule).sub_group == "a"
    assert decision_of(pod(the_ring), the_ring, rule).sub_group == ""
    selector = {"componentTypeSelector": {"keyPath": f'{ROLE} == "a"', "value": True}}
    rule = karta(part("a", podSelector=selector), podGroup=grouped("a"))
    assert decision_of(member("a", the_ring), the_ring, rule).sub_group == "a"
    assert decision_of(member("b", the_ring), the_ring, rule).sub_group == ""


def test_two_valid_definitions_are_one_too_many_an_invalid_one_does_not_count(
    caplog: pytest.LogCaptureFixture,
) -> None:
    the_ring = ring(a={"replicas": 1})
    good = karta(part("a"), podGroup=grouped("a"))
    twin = karta(part("a"), name="twin", podGroup=grouped("a"))
    with caplog.at_level(logging.WARNING, logger="queues.grouping.karta.karta"):
        decision = decision_of(member("a", the_ring), the_ring, good, twin)
    assert decision.pod_group == "pg-own-u-own"
    assert decision.body is not None
    assert decision.body["spec"] == PLAIN
    assert "2 Karta definitions match" in caplog.text
    bad = karta(part("a"), name="bad", podGroup=grouped("nobody"))
    assert decision_of(member("a", the_ring), the_ring, good, bad).pod_group == "pg-u-own-g"


def spoilt(change: str) -> Json:
    """Return a definition with one thing wrong."""
    rule = karta(part("a"), part("b"), name=change, podGroup=grouped("a"))
    structure = rule["spec"]["structureDefinition"]
    first = structure["childComponents"][0]
    match change:
        case "another-kind":
            structure["rootComponent"]["kind"]["kind"] = "Chain"
        case "no-gang":
            rule["spec"]["optimizationInstructions"] = {}
        case "same-name":
            structure["childComponents"][1]["name"] = "a"
        case "no-parent":
            first["ownerRef"] = "nobody"
        case "loop":
            first["ownerRef"] = "b"
            structure["childComponents"][1]["ownerRef"] = "a"
        case "nameless":
            first["name"] = ""
        case "group-nameless":
            rule["spec"]["optimizationInstructions"]["gangScheduling"]["podGroup"]["name"] = ""
        case "no-jq":
            first["scaleDefinition"] = {"replicasPath": ".spec.["}
        case "bad-word":
            first["podSelector"]["componentTypeSelector"]["keyPath"] = "env.HOME"
    return rule


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("another-kind", ""),
        ("no-gang", ""),
        ("same-name", "two components share a name"),
        ("no-parent", "component a does not hang below the root component"),
        ("loop", "component a does not hang below the root component"),
        ("nameless", "a component has no name"),
        ("group-nameless", "gangScheduling.podGroup has no name"),
        ("no-jq", "jq expression '.spec.[': jq: error: syntax error"),
        ("bad-word", "unsupported jq expression 'env.HOME': env may not be used"),
    ],
)
def test_a_definition_that_does_not_fit_is_skipped_and_the_log_says_why_once(
    change: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    karta_rules._warn_once.cache_clear()
    rule, the_ring = spoilt(change), ring(a={"replicas": 1})
    with caplog.at_level(logging.WARNING, logger="queues.grouping.karta.karta"):
        for _ in range(3):
            decision = decision_of(member("a", the_ring), the_ring, copy.deepcopy(rule))
    assert decision.pod_group == "pg-own-u-own"
    assert decision.body is not None
    assert decision.body["spec"] == PLAIN
    log_messages = [record.getMessage() for record in caplog.records]
    if not reason:
        assert log_messages == []
        return
    (message,) = log_messages
    assert message.startswith(f"Karta {change} is skipped: {reason}")


def test_an_expression_that_fails_on_a_pod_is_an_error_of_that_pod(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    selector = {"componentTypeSelector": {"keyPath": ".metadata.labels[]", "value": "a"}}
    rule = karta(part("a", podSelector=selector), podGroup=grouped("a"))
    the_ring = ring(a={"replicas": 1})
    bare = pod(the_ring)
    assert error_of(bare, the_ring, rule) == (
        "jq expression '.metadata.labels[]': Cannot iterate over null (null)"
    )
    slow = Evaluator(deadline_s=0.3)
    monkeypatch.setattr("queues.grouping.karta.jq._EVALUATOR", slow)
    endless = f"[{'|'.join(['(., .)'] * 40)}] | length"
    selector["componentTypeSelector"]["keyPath"] = endless
    try:
        message = error_of(member("a", the_ring), the_ring, rule)
    finally:
        slow.close()
    assert message == f"jq expression {endless!r} took longer than 0.3 s"

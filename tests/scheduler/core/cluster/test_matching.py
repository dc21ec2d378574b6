"""Labels, taints and ports match as in Kubernetes."""

from __future__ import annotations

import pytest

from scheduler.core.cluster.constraints import (
    Expression,
    HostPort,
    LabelSelector,
    NodeTerm,
    Operator,
    Taint,
    TaskConstraints,
    Toleration,
)
from scheduler.core.cluster.inputs import NodeInput
from scheduler.core.cluster.matching import (
    matches_expression,
    matches_node,
    matches_selector,
    ports_clash,
    tolerates,
    tolerates_node,
)

LABELS = {"zone": "a", "count": "8", "odd": "x"}


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        ("zone", Operator.IN, ("a", "b"), True),
        ("zone", Operator.IN, ("b",), False),
        ("none", Operator.IN, ("a",), False),
        ("zone", Operator.NOT_IN, ("a",), False),
        ("none", Operator.NOT_IN, ("a",), True),
        ("zone", Operator.EXISTS, (), True),
        ("none", Operator.EXISTS, (), False),
        ("none", Operator.DOES_NOT_EXIST, (), True),
        ("zone", Operator.DOES_NOT_EXIST, (), False),
        ("count", Operator.GT, ("7",), True),
        ("count", Operator.GT, ("8",), False),
        ("count", Operator.LT, ("9",), True),
        ("odd", Operator.GT, ("1",), False),
        ("none", Operator.LT, ("1",), False),
        ("count", Operator.GT, (), False),
    ],
)
def test_expressions(key: str, operator: Operator, values: tuple[str, ...], expected: bool) -> None:
    assert matches_expression(LABELS, Expression(key, operator, values)) is expected


def test_an_empty_selector_matches_all_and_an_absent_one_nothing() -> None:
    assert matches_selector(LABELS, LabelSelector())
    assert not matches_selector(LABELS, LabelSelector(nothing=True))


def test_node_terms_are_joined_by_or_and_an_empty_one_matches_nothing() -> None:
    node = NodeInput(name="n1", labels=LABELS)
    wrong = NodeTerm(labels=(Expression("zone", Operator.IN, ("b",)),))
    by_name = NodeTerm(fields=(Expression("metadata.name", Operator.IN, ("n1",)),))
    assert not matches_node(node, TaskConstraints(node_affinity=(wrong,)))
    assert matches_node(node, TaskConstraints(node_affinity=(wrong, by_name)))
    assert not matches_node(node, TaskConstraints(node_affinity=(NodeTerm(),)))
    assert not matches_node(node, TaskConstraints(node_affinity=()))
    assert not matches_node(node, TaskConstraints(node_selector=(("zone", "b"),)))
    assert matches_node(node, TaskConstraints(node_selector=(("zone", "a"),)))


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration(key="gpu", value="yes"), True),
        (Toleration(key="gpu", value="no"), False),
        (Toleration(key="gpu", operator=Operator.EXISTS), True),
        (Toleration(operator=Operator.EXISTS), True),
        (Toleration(key="gpu", operator=Operator.EXISTS, effect="NoExecute"), False),
        (Toleration(key="cpu", operator=Operator.EXISTS), False),
        (Toleration(), False),
    ],
)
def test_tolerations(toleration: Toleration, expected: bool) -> None:
    assert tolerates([toleration], Taint("gpu", "yes", "NoSchedule")) is expected


def test_a_preference_against_a_node_does_not_keep_tasks_away() -> None:
    node = NodeInput(name="n", taints=(Taint("soft", "", "PreferNoSchedule"),))
    assert tolerates_node(node, TaskConstraints())
    hard = NodeInput(name="n", taints=(Taint("hard", "", "NoExecute"),))
    assert not tolerates_node(hard, TaskConstraints())


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (HostPort(80), HostPort(80), True),
        (HostPort(80), HostPort(81), False),
        (HostPort(80), HostPort(80, "UDP"), False),
        (HostPort(80, address="10.0.0.1"), HostPort(80, address="10.0.0.2"), False),
        (HostPort(80, address="10.0.0.1"), HostPort(80), True),
    ],
)
def test_ports(left: HostPort, right: HostPort, expected: bool) -> None:
    assert ports_clash(left, right) is expected
    assert ports_clash(right, left) is expected

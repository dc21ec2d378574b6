"""Selectors and affinities as the core compares them."""

from __future__ import annotations

import pytest

from kube.errors import BadValueError
from scheduler.core.cluster.constraints import (
    Expression,
    LabelSelector,
    NodeTerm,
    Operator,
    PodTerm,
    TaskConstraints,
)
from scheduler.load.terms import MAX_COMPARISONS, require_bounded


def node_affinity(values: int) -> TaskConstraints:
    names = tuple(f"host-{number}" for number in range(values))
    expression = Expression("kubernetes.io/hostname", Operator.IN, names)
    return TaskConstraints(node_affinity=(NodeTerm(labels=(expression,), fields=()),))


def pod_anti_affinity(terms: int) -> TaskConstraints:
    selector = LabelSelector(expressions=(Expression("app", Operator.EXISTS, ()),))
    term = PodTerm(topology_key="zone", selector=selector, namespaces=(), namespace_selector=None)
    return TaskConstraints(pod_anti_affinity=(term,) * terms)


@pytest.mark.parametrize(
    "constraints", [node_affinity(MAX_COMPARISONS - 2), pod_anti_affinity(MAX_COMPARISONS // 2)]
)
def test_constraints_up_to_the_bound_are_taken_as_they_are(constraints: TaskConstraints) -> None:
    assert require_bounded(constraints) is constraints


@pytest.mark.parametrize(
    ("constraints", "size"),
    [
        (node_affinity(MAX_COMPARISONS - 1), MAX_COMPARISONS + 1),
        (pod_anti_affinity(MAX_COMPARISONS // 2 + 1), MAX_COMPARISONS + 2),
    ],
)
def test_more_terms_and_values_than_the_bound_are_refused(
    constraints: TaskConstraints, size: int
) -> None:
    with pytest.raises(BadValueError, match=f"at most {MAX_COMPARISONS} .* got {size}"):
        require_bounded(constraints)

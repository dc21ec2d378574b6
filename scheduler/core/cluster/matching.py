"""How Kubernetes matches labels, node terms, taints and ports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

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

ALL_ADDRESSES = "0.0.0.0"  # compared, never bound
REPELLING = ("NoSchedule", "NoExecute")
#: Leading zeros are allowed; the length is bounded because `int` takes quadratic time.
_INTEGER = re.compile(r"[+-]?[0-9]{1,400}")


def matches_expression(labels: Mapping[str, str], expression: Expression) -> bool:
    """Return whether labels match an expression; a missing label matches NotIn and DoesNotExist only."""
    value = labels.get(expression.key)
    match expression.operator:
        case Operator.IN | Operator.EQUAL:
            return value is not None and value in expression.values
        case Operator.NOT_IN:
            return value is None or value not in expression.values
        case Operator.EXISTS:
            return value is not None
        case Operator.DOES_NOT_EXIST:
            return value is None
        case Operator.GT | Operator.LT:
            return _compares(value, expression)


def _compares(value: str | None, expression: Expression) -> bool:
    left = _integer(value or "")
    right = _integer(expression.values[0]) if expression.values else None
    if left is None or right is None:
        return False
    return left > right if expression.operator is Operator.GT else left < right


def _integer(text: str) -> int | None:
    """Return a number as Go's strconv reads it; Python's `int` also takes spaces, underscores and other digits."""
    number = int(text) if _INTEGER.fullmatch(text) else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


def matches_selector(labels: Mapping[str, str], selector: LabelSelector) -> bool:
    """Return whether labels match a selector; a missing one matches nothing, an empty one everything."""
    if selector.nothing:
        return False
    return all(matches_expression(labels, expression) for expression in selector.expressions)


def matches_node_term(node: NodeInput, term: NodeTerm) -> bool:
    """Return whether a node matches one term of node affinity; an empty term matches nothing."""
    if not term.labels and not term.fields:
        return False
    fields = {"metadata.name": node.name}
    return all(matches_expression(node.labels, expression) for expression in term.labels) and all(
        matches_expression(fields, expression) for expression in term.fields
    )


def matches_any_term(node: NodeInput, terms: Iterable[NodeTerm]) -> bool:
    """Return whether a node matches any of the terms."""
    return any(matches_node_term(node, term) for term in terms)


def matches_node(node: NodeInput, constraints: TaskConstraints) -> bool:
    """Return whether a node matches the node selector and the required node affinity."""
    for key, value in constraints.node_selector:
        if node.labels.get(key) != value:
            return False
    return constraints.node_affinity is None or matches_any_term(node, constraints.node_affinity)


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Return whether any toleration covers a taint."""
    return any(
        (not toleration.effect or toleration.effect == taint.effect)
        and (not toleration.key or toleration.key == taint.key)
        and (
            toleration.operator is Operator.EXISTS
            or (
                toleration.operator is Operator.EQUAL
                and bool(toleration.key)
                and toleration.value == taint.value
            )
        )
        for toleration in tolerations
    )


def tolerates_node(node: NodeInput, constraints: TaskConstraints) -> bool:
    """Return whether every taint that repels pods is tolerated."""
    return all(
        taint.effect not in REPELLING or tolerates(constraints.tolerations, taint)
        for taint in node.taints
    )


def ports_clash(left: HostPort, right: HostPort) -> bool:
    """Return whether two ports cannot be open on one node."""
    if left.port != right.port or left.protocol != right.protocol:
        return False
    first, second = left.address or ALL_ADDRESSES, right.address or ALL_ADDRESSES
    return first == second or ALL_ADDRESSES in (first, second)

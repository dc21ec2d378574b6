"""Selectors, affinities and tolerations of the API, normalised into the core's hashable terms."""

from __future__ import annotations

from collections.abc import Iterable

from kube.errors import BadValueError
from kube.objects import meta as api
from kube.objects import pod as pods
from kube.objects.node import Taint as ApiTaint
from scheduler.core.cluster.constraints import (
    Expression,
    HostPort,
    LabelSelector,
    NodeTerm,
    Operator,
    PodTerm,
    Taint,
    TaskConstraints,
    Toleration,
)

NOTHING = LabelSelector(nothing=True)

#: What the affinities and tolerations of one pod may add up to. Each is compared with every node or with the
#: pods on it; the largest real ones list some thousand host names.
MAX_COMPARISONS = 10_000


def node_terms(selector: pods.NodeSelector | None) -> tuple[NodeTerm, ...] | None:
    """Return the alternatives of a required node selector; None when there is none."""
    if selector is None:
        return None
    return tuple(
        NodeTerm(
            labels=_expressions(term.match_expressions), fields=_expressions(term.match_fields)
        )
        for term in selector.node_selector_terms
    )


def required_node_affinity(affinity: pods.Affinity | None) -> tuple[NodeTerm, ...] | None:
    """Return the node affinity a pod requires."""
    if affinity is None or affinity.node_affinity is None:
        return None
    return node_terms(affinity.node_affinity.required)


def label_selector(selector: api.LabelSelector | None) -> LabelSelector:
    """Convert a label selector; an absent one selects nothing, an empty one everything."""
    if selector is None:
        return NOTHING
    exact = (
        Expression(key, Operator.IN, (value,))
        for key, value in sorted(selector.match_labels.items())
    )
    return LabelSelector(expressions=(*exact, *_expressions(selector.match_expressions)))


def required_pod_terms(affinity: pods.PodAffinity | None) -> tuple[PodTerm, ...]:
    """Return the neighbours a pod requires (or refuses)."""
    return tuple(_pod_term(term) for term in affinity.required) if affinity else ()


def preferred_pod_terms(affinity: pods.PodAffinity | None) -> tuple[PodTerm, ...]:
    """Return the neighbours a pod prefers, with their weights."""
    if affinity is None:
        return ()
    return tuple(_pod_term(item.pod_affinity_term, item.weight) for item in affinity.preferred)


def tolerations(items: Iterable[pods.Toleration]) -> tuple[Toleration, ...]:
    return tuple(
        Toleration(item.key, Operator(item.operator or "Equal"), item.value, item.effect)
        for item in items
        if item.operator in ("", "Equal", "Exists")
    )


def taints(items: Iterable[ApiTaint]) -> tuple[Taint, ...]:
    return tuple(Taint(item.key, item.value, item.effect) for item in items)


def host_ports(pod: pods.Pod) -> tuple[HostPort, ...]:
    """Return the node ports a pod takes while it runs (ordinary init containers have none)."""
    lasting = [
        *pod.spec.containers,
        *(item for item in pod.spec.init_containers if item.is_sidecar),
    ]
    return tuple(
        HostPort(port.host_port, port.protocol or "TCP", "" if _is_any(port) else port.host_ip)
        for container in lasting
        for port in container.ports
        if port.host_port > 0
    )


def require_bounded(constraints: TaskConstraints) -> TaskConstraints:
    """Return the constraints of a pod unless comparing them would take too long.

    Raises
    ------
    kube.errors.BadValueError : terms, expressions and values add up to more than `MAX_COMPARISONS`
    """
    node_terms = constraints.node_affinity or ()
    pod_terms = (
        *constraints.pod_affinity,
        *constraints.pod_anti_affinity,
        *constraints.preferred_pod_affinity,
        *constraints.preferred_pod_anti_affinity,
    )
    comparisons = (
        len(constraints.tolerations)
        + sum(1 + _size(term.labels) + _size(term.fields) for term in node_terms)
        + sum(1 + len(term.namespaces) + _size(_expressions_of(term)) for term in pod_terms)
    )
    if comparisons > MAX_COMPARISONS:
        raise BadValueError(
            "affinity and tolerations: expected at most "
            f"{MAX_COMPARISONS} terms, expressions and values in all, got {comparisons}"
        )
    return constraints


def _expressions_of(term: PodTerm) -> tuple[Expression, ...]:
    namespaces = term.namespace_selector
    return (*term.selector.expressions, *(namespaces.expressions if namespaces else ()))


def _size(expressions: tuple[Expression, ...]) -> int:
    return sum(1 + len(expression.values) for expression in expressions)


def _is_any(port: pods.ContainerPort) -> bool:
    return port.host_ip in ("", "0.0.0.0", "::")


def _pod_term(term: pods.PodAffinityTerm, weight: int = 0) -> PodTerm:
    has_selector = term.namespace_selector is not None
    return PodTerm(
        topology_key=term.topology_key,
        selector=label_selector(term.label_selector),
        namespaces=tuple(term.namespaces),
        namespace_selector=label_selector(term.namespace_selector) if has_selector else None,
        weight=weight,
    )


def _operator(text: str) -> Operator:
    try:
        return Operator(text)
    except ValueError as error:
        raise BadValueError(f"unknown operator {text[:40]!r}") from error


def _expressions(
    requirements: Iterable[pods.NodeSelectorRequirement | api.LabelSelectorRequirement],
) -> tuple[Expression, ...]:
    return tuple(
        Expression(item.key, _operator(item.operator), tuple(item.values)) for item in requirements
    )

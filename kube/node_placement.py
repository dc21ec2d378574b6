"""Which nodes a pod may use by its own demands: node selector, required node affinity and tolerations.

The scheduler decides with arrays over all nodes (scheduler/core); this is the same rule for one pod and one node,
for those who only explain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kube.label_selectors import meets
from kube.objects.meta import KubeStruct
from kube.objects.node import Taint
from kube.objects.pod import NodeSelectorTerm, PodSpec, Toleration

#: Effects that keep a pod away; `PreferNoSchedule` does not.
REPELLING = ("NoSchedule", "NoExecute")


class Placement(KubeStruct, frozen=True, kw_only=True):
    """What a pod demands of its node; `terms` is None without a required node affinity."""

    node_selector: Mapping[str, str] = {}
    terms: tuple[NodeSelectorTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()


def placement_of(spec: PodSpec) -> Placement:
    """Return what a pod demands of its node."""
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = affinity.required if affinity is not None else None
    return Placement(
        node_selector=spec.node_selector,
        terms=required.node_selector_terms if required is not None else None,
        tolerations=spec.tolerations,
    )


def allows(
    placement: Placement, name: str, labels: Mapping[str, str], taints: Iterable[Taint]
) -> bool:
    """Return whether a pod may use a node with this name, these labels and taints."""
    if any(labels.get(key) != value for key, value in placement.node_selector.items()):
        return False
    if placement.terms is not None and not any(
        meets_term(name, labels, term) for term in placement.terms
    ):
        return False
    return all(_tolerates(placement.tolerations, taint) for taint in taints)


def meets_term(name: str, labels: Mapping[str, str], term: NodeSelectorTerm) -> bool:
    """Return whether a node meets a term; an empty term matches no node."""
    if not term.match_expressions and not term.match_fields:
        return False
    return meets(labels, term.match_expressions) and meets(
        {"metadata.name": name}, term.match_fields
    )


def _tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    if taint.effect not in REPELLING:
        return True
    return any(
        toleration.effect in ("", taint.effect) and _matches(toleration, taint)
        for toleration in tolerations
    )


def _matches(toleration: Toleration, taint: Taint) -> bool:
    """Return whether a toleration matches a taint by key and value; one with an unknown operator matches none."""
    match toleration.operator:
        case "Exists":
            return toleration.key in ("", taint.key)
        case "" | "Equal":
            return (toleration.key, toleration.value) == (taint.key, taint.value)
    return False

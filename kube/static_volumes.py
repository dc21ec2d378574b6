"""Volumes made by hand: which of them could serve a claim, and which nodes reach them.

Scheduler and binder both ask: the one must not choose a node without such a volume, the other must not join
the claim with a volume that the node does not reach.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from kube.numbers import int_or_none
from kube.objects.node import Node
from kube.objects.pod import NodeSelectorTerm
from kube.objects.storage import PersistentVolume, PersistentVolumeClaim
from kube.quantity import parse

NO_PROVISIONER = "kubernetes.io/no-provisioner"


class Requirement(Protocol):
    """What label selectors and node selectors have in common."""

    @property
    def key(self) -> str: ...

    @property
    def operator(self) -> str: ...

    @property
    def values(self) -> tuple[str, ...]: ...


def is_reserved_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Tell whether a volume already names this claim, by an administrator or by an earlier attempt of ours."""
    reference, meta = volume.spec.claim_ref, claim.metadata
    return (
        reference is not None
        and (reference.namespace, reference.name) == (meta.namespace, meta.name)
        and reference.uid in ("", meta.uid)
    )


def could_serve(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Tell whether a volume has what an unbound claim asks for and belongs to nobody else."""
    if volume.metadata.deletion_timestamp is not None:
        return False
    is_ours = is_reserved_for(volume, claim)
    if not is_ours and (volume.spec.claim_ref or volume.status.phase not in ("", "Available")):
        return False
    wanted = claim.spec
    return (
        volume.spec.storage_class_name == wanted.storage_class_name
        and volume.spec.volume_mode == wanted.volume_mode
        and set(wanted.access_modes) <= set(volume.spec.access_modes)
        and size(volume) >= parse(wanted.resources.requests.get("storage", 0))
        and _is_selected(volume, claim)
    )


def is_reached_from(volume: PersistentVolume, node: Node) -> bool:
    """Tell whether a node may mount a volume."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    return any(_matches(node, term) for term in affinity.required.node_selector_terms)


def size(volume: PersistentVolume) -> float:
    """Return how many bytes a volume holds."""
    return float(parse(volume.spec.capacity.get("storage", 0)))


def _is_selected(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    selector, labels = claim.spec.selector, volume.metadata.labels
    if selector is None:
        return True
    is_labelled = all(labels.get(key) == value for key, value in selector.match_labels.items())
    return is_labelled and _meets(labels, selector.match_expressions)


def _matches(node: Node, term: NodeSelectorTerm) -> bool:
    """A term that asks nothing matches nothing."""
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {"metadata.name": node.metadata.name}
    return _meets(node.metadata.labels, term.match_expressions) and _meets(
        fields, term.match_fields
    )


def _meets(labels: Mapping[str, str], requirements: Iterable[Requirement]) -> bool:
    return all(_holds(labels.get(one.key), one) for one in requirements)


def _holds(value: str | None, one: Requirement) -> bool:
    match one.operator:
        case "In":
            return value in one.values
        case "NotIn":
            return value not in one.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(value, one)
    return False


def _compares(value: str | None, one: Requirement) -> bool:
    left, right = int_or_none(value), int_or_none(one.values[0] if one.values else None)
    if left is None or right is None:
        return False
    return left > right if one.operator == "Gt" else left < right

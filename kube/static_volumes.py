"""Static (pre-provisioned) volumes: which of them could serve a claim, and which nodes can mount them.

The scheduler must not choose a node without such a volume, and the binder must not bind the claim to a
volume that the node cannot mount.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from kube.objects.node import Node
from kube.objects.pod import NodeSelectorTerm
from kube.objects.storage import PersistentVolume, PersistentVolumeClaim
from kube.values.numbers import int_or_none
from kube.values.quantity import parse_quantity

NO_PROVISIONER = "kubernetes.io/no-provisioner"


class Requirement(Protocol):
    """The fields that requirements of label selectors and of node selectors share."""

    @property
    def key(self) -> str: ...

    @property
    def operator(self) -> str: ...

    @property
    def values(self) -> tuple[str, ...]: ...


def is_reserved_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return whether a volume already names this claim: set by an administrator, or by an earlier attempt."""
    reference, meta = volume.spec.claim_ref, claim.metadata
    return (
        reference is not None
        and (reference.namespace, reference.name) == (meta.namespace, meta.name)
        and reference.uid in ("", meta.uid)
    )


def could_serve(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return whether a volume meets an unbound claim's request and is not bound to another claim."""
    if volume.metadata.deletion_timestamp is not None:
        return False
    is_ours = is_reserved_for(volume, claim)
    if not is_ours and (volume.spec.claim_ref or volume.status.phase not in ("", "Available")):
        return False
    claim_spec = claim.spec
    return (
        volume.spec.storage_class_name == claim_spec.storage_class_name
        and volume.spec.volume_mode == claim_spec.volume_mode
        and set(claim_spec.access_modes) <= set(volume.spec.access_modes)
        and capacity_bytes(volume)
        >= parse_quantity(claim_spec.resources.requests.get("storage", 0))
        and _is_selected(volume, claim)
    )


def is_reached_from(volume: PersistentVolume, node: Node) -> bool:
    """Return whether a node may mount a volume."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    return any(_matches(node, term) for term in affinity.required.node_selector_terms)


def capacity_bytes(volume: PersistentVolume) -> float:
    """Return the capacity of a volume in bytes."""
    return float(parse_quantity(volume.spec.capacity.get("storage", 0)))


def _is_selected(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    selector, labels = claim.spec.selector, volume.metadata.labels
    if selector is None:
        return True
    is_labelled = all(labels.get(key) == value for key, value in selector.match_labels.items())
    return is_labelled and _meets(labels, selector.match_expressions)


def _matches(node: Node, term: NodeSelectorTerm) -> bool:
    """Return whether a node meets a term; an empty term matches no node."""
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {"metadata.name": node.metadata.name}
    return _meets(node.metadata.labels, term.match_expressions) and _meets(
        fields, term.match_fields
    )


def _meets(labels: Mapping[str, str], requirements: Iterable[Requirement]) -> bool:
    return all(_holds(labels.get(item.key), item) for item in requirements)


def _holds(value: str | None, requirement: Requirement) -> bool:
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(value, requirement)
    return False


def _compares(value: str | None, requirement: Requirement) -> bool:
    values = requirement.values
    left, right = int_or_none(value), int_or_none(values[0] if values else None)
    if left is None or right is None:
        return False
    return left > right if requirement.operator == "Gt" else left < right

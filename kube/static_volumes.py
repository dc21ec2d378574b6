"""Static (pre-provisioned) volumes: which of them could serve a claim, and which nodes can mount them.

The scheduler must not choose a node without such a volume, and the binder must not bind the claim to a
volume that the node cannot mount.
"""

from __future__ import annotations

from kube.label_selectors import selects
from kube.node_placement import meets_term
from kube.objects.node import Node
from kube.objects.storage import PersistentVolume, PersistentVolumeClaim
from kube.values.quantity import parse_quantity

#: Annotation of an unbound claim: the node that its volume is made for. The provisioner removes it if it cannot.
SELECTED_NODE = "volume.kubernetes.io/selected-node"
NO_PROVISIONER = "kubernetes.io/no-provisioner"


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


def preference(volume: PersistentVolume, claim: PersistentVolumeClaim) -> tuple[bool, float, str]:
    """Return the sort key of volumes that could serve a claim: reserved for it, then the smallest, first."""
    is_reserved = is_reserved_for(volume, claim)
    return (not is_reserved, capacity_bytes(volume), volume.metadata.name)


def is_reached_from(volume: PersistentVolume, node: Node) -> bool:
    """Return whether a node may mount a volume."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    meta = node.metadata
    return any(
        meets_term(meta.name, meta.labels, term) for term in affinity.required.node_selector_terms
    )


def capacity_bytes(volume: PersistentVolume) -> float:
    """Return the capacity of a volume in bytes."""
    return float(parse_quantity(volume.spec.capacity.get("storage", 0)))


def _is_selected(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    selector, labels = claim.spec.selector, volume.metadata.labels
    return selector is None or selects(selector, labels)

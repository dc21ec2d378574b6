"""Persistent volume claims for the core: where their volumes are or can be provisioned, and storage capacity."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace

from kube.objects.storage import (
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from kube.process.set_aside import SetAside
from kube.static_volumes import (
    NO_PROVISIONER,
    SELECTED_NODE,
    capacity_bytes,
    could_serve,
    preference,
)
from kube.values.quantity import to_units
from scheduler.core.cluster.constraints import Expression, NodeTerm, Operator
from scheduler.core.cluster.inputs import StaticVolume, StorageCapacity, VolumeClaim, VolumeInputs
from scheduler.load.terms import label_selector, node_terms


def volume_inputs(
    claims: Iterable[PersistentVolumeClaim],
    volumes: Mapping[str, PersistentVolume],
    classes: Mapping[str, StorageClass],
    drivers: Mapping[str, CSIDriver],
    capacities: Iterable[CSIStorageCapacity],
    live_pods: Mapping[str, bool],
    aside: SetAside | None = None,
    node_names: Container[str] = frozenset(),
) -> VolumeInputs:
    """Return the volume part of the core's input: claims, static volumes, storage capacity.

    Parameters
    ----------
    volumes, classes, drivers : by name; a driver has the name of the provisioner of its classes
    live_pods : uid of each pod -> whether it is not being deleted
    aside : sets objects aside that cannot be read
    node_names : the existing nodes; a claim whose selected node is none of them may go to any node
    """
    aside = aside or SetAside("snapshot")
    # Classes for whose claims the capacity of the chosen node is checked.
    tracked = tuple(
        name
        for name, item in sorted(classes.items())
        if item.volume_binding_mode == "WaitForFirstConsumer" and item.provisioner in drivers
    )
    # Classes whose driver publishes how much it can still provision.
    capacity_classes = {
        name
        for name, item in classes.items()
        if item.provisioner in drivers and drivers[item.provisioner].spec.storage_capacity
    }
    readable = {
        name: item
        for name, item in volumes.items()
        if aside.read("PersistentVolume", item, _volume_terms) is not None
    }
    storage_capacities = tuple(
        item
        for item in capacities
        if aside.read("CSIStorageCapacity", item, _storage_capacity) is not None
    )

    def convert(item: PersistentVolumeClaim) -> VolumeClaim:
        claim = _volume_claim(item, readable, classes, live_pods)
        selected_node = item.metadata.annotations.get(SELECTED_NODE, "")
        if selected_node in node_names and claim.waits_for_consumer and not item.spec.volume_name:
            # Its provisioner is making the volume for this node; it may appear nowhere else.
            return replace(claim, allowed_terms=(_only_node_term(selected_node),))
        if claim.storage_class not in capacity_classes:
            return claim
        return _with_roomy_terms(claim, storage_capacities, _static_places(item, readable.values()))

    claim_inputs = tuple(aside.each("PersistentVolumeClaim", claims, convert))
    static_names = {name for claim in claim_inputs for name in claim.static_volumes or ()}
    return VolumeInputs(
        claims=claim_inputs,
        capacities=tuple(_storage_capacity(item) for item in storage_capacities),
        tracked_classes=tracked,
        static_volumes=tuple(_static_volume(readable[name]) for name in sorted(static_names)),
    )


def _static_volume(volume: PersistentVolume) -> StaticVolume:
    affinity = volume.spec.node_affinity
    return StaticVolume(
        name=volume.metadata.name, node_terms=node_terms(affinity.required) if affinity else None
    )


def _usable_static_volumes(
    claim: PersistentVolumeClaim,
    storage_class: StorageClass | None,
    volumes: Iterable[PersistentVolume],
) -> tuple[str, ...] | None:
    """Return the volumes that could serve an unbound claim, in the binder's order.

    None if the claim names its volume already or its class has a provisioner: then it does not depend on them.
    """
    is_static = storage_class is not None and storage_class.provisioner == NO_PROVISIONER
    if claim.spec.volume_name or not is_static:
        return None
    fitting = [volume for volume in volumes if could_serve(volume, claim)]
    fitting.sort(key=lambda volume: preference(volume, claim))
    return tuple(volume.metadata.name for volume in fitting)


def _volume_terms(volume: PersistentVolume) -> tuple[NodeTerm, ...]:
    """Read the fields that the claims need, so that an unreadable volume is set aside itself, not its claims."""
    capacity_bytes(volume)
    affinity = volume.spec.node_affinity
    return (node_terms(affinity.required) if affinity else None) or ()


def _only_node_term(node: str) -> NodeTerm:
    """Return the term that only one node meets."""
    name = Expression(key="metadata.name", operator=Operator.IN, values=(node,))
    return NodeTerm(fields=(name,))


def _with_roomy_terms(
    claim: VolumeClaim,
    capacities: tuple[CSIStorageCapacity, ...],
    static_places: tuple[NodeTerm, ...] | None,
) -> VolumeClaim:
    """Add `roomy_terms`: where static volumes are, and where the driver has room to provision a new one."""
    if not claim.waits_for_consumer or claim.phase == "Bound" or static_places is None:
        return claim
    roomy = list(static_places)
    for item in capacities:
        limit = float(to_units(item.maximum_volume_size)) or float(to_units(item.capacity))
        is_of_class = item.storage_class_name == claim.storage_class
        if is_of_class and item.node_topology is not None and claim.size_bytes <= limit:
            term = _storage_capacity(item).node_selector
            if not term.labels:
                return claim
            roomy.append(term)
    return replace(claim, roomy_terms=tuple(roomy))


def _volume_claim(
    claim: PersistentVolumeClaim,
    volumes: Mapping[str, PersistentVolume],
    classes: Mapping[str, StorageClass],
    live_pods: Mapping[str, bool],
) -> VolumeClaim:
    meta, spec = claim.metadata, claim.spec
    volume = volumes.get(spec.volume_name) if spec.volume_name else None
    storage_class = classes.get(spec.storage_class_name)
    waits = storage_class is not None and (
        storage_class.volume_binding_mode == "WaitForFirstConsumer"
    )
    # An ephemeral volume's claim is owned by its pod alone.
    owners = [owner for owner in meta.owner_references if owner.kind == "Pod"]
    owner_uid = owners[0].uid if len(owners) == 1 and len(meta.owner_references) == 1 else ""
    affinity = volume.spec.node_affinity.required if volume and volume.spec.node_affinity else None
    return VolumeClaim(
        name=meta.name,
        namespace=meta.namespace,
        storage_class=spec.storage_class_name,
        size_bytes=float(to_units(spec.resources.requests.get("storage", 0))),
        phase=claim.status.phase or "Pending",
        problem=_problem(claim, waits=waits),
        volume_terms=node_terms(affinity),
        waits_for_consumer=waits,
        allowed_terms=_allowed_terms(claim, storage_class, volumes) if waits else None,
        static_volumes=_usable_static_volumes(claim, storage_class, volumes.values())
        if waits
        else None,
        is_volume_missing=volume is None and bool(spec.volume_name),
        owner_uid=owner_uid,
        is_owner_deleted=bool(owner_uid) and not live_pods.get(owner_uid, False),
    )


def _allowed_terms(
    claim: PersistentVolumeClaim,
    storage_class: StorageClass | None,
    volumes: Mapping[str, PersistentVolume],
) -> tuple[NodeTerm, ...] | None:
    """Return on which nodes an unbound claim can get its volume; None for all, and for a bound claim."""
    if claim.spec.volume_name or storage_class is None:
        return None
    if storage_class.provisioner == NO_PROVISIONER:
        return _static_places(claim, volumes.values())
    if not storage_class.allowed_topologies:
        return None
    static_places = _static_places(claim, volumes.values())
    if static_places is None:
        return None
    return static_places + tuple(
        NodeTerm(
            labels=tuple(
                Expression(key=expression.key, operator=Operator.IN, values=expression.values)
                for expression in term.match_label_expressions
            )
        )
        for term in storage_class.allowed_topologies
    )


def _static_places(
    claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume]
) -> tuple[NodeTerm, ...] | None:
    """Return which nodes reach the existing volumes that could serve a claim; None if all nodes reach one."""
    places: list[NodeTerm] = []
    for volume in volumes:
        if could_serve(volume, claim):
            affinity = volume.spec.node_affinity
            terms = node_terms(affinity.required) if affinity else None
            if terms is None:
                return None
            places += terms
    return tuple(places)


def _problem(claim: PersistentVolumeClaim, *, waits: bool) -> str:
    name = claim.metadata.name
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{name}" is being deleted'
    if claim.status.phase == "Lost":
        missing = claim.spec.volume_name
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{missing}"'
    if not claim.spec.volume_name and not waits:
        return "pod has unbound immediate PersistentVolumeClaims"
    return ""


def _storage_capacity(item: CSIStorageCapacity) -> StorageCapacity:
    selector = label_selector(item.node_topology)
    return StorageCapacity(
        name=item.metadata.name,
        storage_class=item.storage_class_name,
        capacity_bytes=float(to_units(item.capacity)),
        node_selector=NodeTerm(labels=selector.expressions),
    )

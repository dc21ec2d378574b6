"""The volumes and capacities of a claim in the core's input."""

from __future__ import annotations

from typing import Any

from kube.objects.meta import convert
from kube.objects.storage import (
    CSIDriver,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from kube.static_volumes import SELECTED_NODE
from scheduler.core.cluster.constraints import Expression, NodeTerm, Operator
from scheduler.core.cluster.inputs import VolumeClaim
from scheduler.load.volumes import volume_inputs

BY_HAND = {"provisioner": "kubernetes.io/no-provisioner"}


def _in_zones(*zones: str) -> NodeTerm:
    return NodeTerm(labels=(Expression(key="zone", operator=Operator.IN, values=zones),))


def _volume(name: str, zone: str = "", size: str = "10Gi") -> PersistentVolume:
    spec: dict[str, Any] = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "sc",
    }
    if zone:
        term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    body = {"metadata": {"name": name}, "spec": spec, "status": {"phase": "Available"}}
    return convert(body, PersistentVolume)


def _read(
    storage_class: dict[str, Any],
    *volumes: PersistentVolume,
    chosen: str = "",
    drivers: dict[str, CSIDriver] | None = None,
    **spec: Any,
) -> VolumeClaim:
    marks = {SELECTED_NODE: chosen} if chosen else {}
    claim = {
        "metadata": {"name": "c", "namespace": "ns", "uid": "uid-c", "annotations": marks},
        "spec": {
            "storageClassName": "sc",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "5Gi"}},
            **spec,
        },
    }
    kind = {
        "metadata": {"name": "sc"},
        "volumeBindingMode": "WaitForFirstConsumer",
        **storage_class,
    }
    volume_list = volume_inputs(
        [convert(claim, PersistentVolumeClaim)],
        {volume.metadata.name: volume for volume in volumes},
        {"sc": convert(kind, StorageClass)},
        drivers or {},
        (),
        {},
        node_names={"n1", "n2"},
    )
    return volume_list.claims[0]


def test_without_a_provisioner_the_claim_goes_where_a_volume_that_fits_is():
    volume_list = _read(
        BY_HAND, _volume("v1", "a"), _volume("v2", "b"), _volume("v3", "c", size="1Gi")
    )
    assert volume_list.allowed_terms == (_in_zones("a"), _in_zones("b"))


def test_without_a_provisioner_and_a_volume_it_can_go_nowhere():
    assert _read(BY_HAND).allowed_terms == ()


def test_a_volume_without_node_affinity_is_reached_from_anywhere():
    assert _read(BY_HAND, _volume("v1", "a"), _volume("v2")).allowed_terms is None


def test_a_provisioner_makes_volumes_where_its_class_allows():
    zones = [{"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}]
    volume_list = _read({"provisioner": "disk.example.test", "allowedTopologies": zones})
    assert volume_list.allowed_terms == (_in_zones("a", "b"),)
    assert _read({"provisioner": "disk.example.test"}).allowed_terms is None


def test_a_bound_claim_asks_only_for_its_volume():
    volume_list = _read(BY_HAND, _volume("v1", "a"), volumeName="v1")
    assert volume_list.allowed_terms is None
    assert volume_list.volume_terms == (_in_zones("a"),)


def test_static_volumes_count_beside_what_a_provisioner_can_make():
    allowed = [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}]
    storage_class = {"provisioner": "shelves.test", "allowedTopologies": allowed}
    claim = _read(storage_class, _volume("v", "b"), _volume("small", "c", "1Gi"))
    assert claim.allowed_terms == (_in_zones("b"), _in_zones("a"))
    assert _read(storage_class, _volume("anywhere")).allowed_terms is None


def test_a_driver_without_room_leaves_the_places_of_static_volumes():
    driver = convert({"spec": {"storageCapacity": True}}, CSIDriver)
    storage_class, drivers = {"provisioner": "shelves.test"}, {"shelves.test": driver}
    assert _read(storage_class, drivers=drivers).roomy_terms == ()
    assert _read(storage_class, _volume("v", "b"), drivers=drivers).roomy_terms == (_in_zones("b"),)
    assert _read(storage_class, _volume("anywhere"), drivers=drivers).roomy_terms is None


def test_a_volume_that_is_being_made_for_a_node_keeps_the_claim_there():
    storage_class = {"provisioner": "shelves.test"}
    only = Expression(key="metadata.name", operator=Operator.IN, values=("n2",))
    assert _read(storage_class, chosen="n2").allowed_terms == (NodeTerm(fields=(only,)),)


def test_a_choice_of_a_node_that_is_gone_does_not_count():
    assert _read({"provisioner": "shelves.test"}, chosen="n9").allowed_terms is None


def test_a_claim_without_a_provisioner_lists_its_volumes_in_the_binders_order():
    volumes = (_volume("big", "a", "20Gi"), _volume("fits", "b"), _volume("small", "a", "1Gi"))
    assert _read(BY_HAND, *volumes).static_volumes == ("fits", "big")
    assert _read({"provisioner": "shelves.test"}, *volumes).static_volumes is None
    assert _read(BY_HAND, *volumes, volumeName="fits").static_volumes is None

"""The volumes and capacities of a claim in the core's input."""

from __future__ import annotations

from typing import Any

from kube.objects.meta import convert
from kube.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
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


def _read(storage_class: dict[str, Any], *volumes: PersistentVolume, **spec: Any) -> VolumeClaim:
    claim = {
        "metadata": {"name": "c", "namespace": "ns", "uid": "uid-c"},
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
        {one.metadata.name: one for one in volumes},
        {"sc": convert(kind, StorageClass)},
        {},
        (),
        {},
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

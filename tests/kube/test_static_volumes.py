"""Which hand-made volume serves which claim, and from where."""

from __future__ import annotations

from typing import Any

import pytest

from kube.objects.meta import convert
from kube.objects.node import Node
from kube.objects.storage import PersistentVolume, PersistentVolumeClaim
from kube.static_volumes import could_serve, is_reached_from, is_reserved_for

NODE = convert({"metadata": {"name": "n1", "labels": {"zone": "a", "slots": "12"}}}, Node)


def volume(**changes: Any) -> PersistentVolume:
    metadata = {"name": "v", "labels": {"kind": "fast"}, **changes.pop("metadata", {})}
    status = {"phase": changes.pop("phase", "Available")}
    spec = {
        "capacity": {"storage": "10Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "by-hand",
        **changes,
    }
    return convert({"metadata": metadata, "spec": spec, "status": status}, PersistentVolume)


def claim(**changes: Any) -> PersistentVolumeClaim:
    spec = {
        "storageClassName": "by-hand",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "10Gi"}},
        **changes,
    }
    metadata = {"name": "c", "namespace": "ns", "uid": "uid-c"}
    return convert({"metadata": metadata, "spec": spec}, PersistentVolumeClaim)


def test_a_free_volume_that_meets_the_claim_could_serve():
    assert could_serve(volume(), claim()) is True


@pytest.mark.parametrize(
    "candidate",
    [
        volume(phase="Released"),
        volume(phase="Pending"),
        volume(storageClassName="other"),
        volume(volumeMode="Block"),
        volume(accessModes=["ReadOnlyMany"]),
        volume(capacity={"storage": "9Gi"}),
        volume(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        volume(claimRef={"namespace": "ns", "name": "another", "uid": "uid-another"}),
    ],
    ids=["Released", "Pending", "class", "mode", "access", "size", "deleted", "taken"],
)
def test_a_volume_that_is_taken_or_does_not_fit_could_not_serve(candidate: PersistentVolume):
    assert could_serve(candidate, claim()) is False


def test_a_volume_reserved_for_the_claim_could_serve_it_in_any_phase():
    mine = volume(phase="Bound", claimRef={"namespace": "ns", "name": "c", "uid": "uid-c"})
    by_hand = volume(claimRef={"namespace": "ns", "name": "c"})
    earlier = volume(claimRef={"namespace": "ns", "name": "c", "uid": "uid-of-an-earlier-claim"})
    assert [is_reserved_for(volume_, claim()) for volume_ in (mine, by_hand, earlier)] == [
        True,
        True,
        False,
    ]
    assert [could_serve(volume_, claim()) for volume_ in (mine, by_hand, earlier)] == [
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("selector", "serves"),
    [
        ({"matchLabels": {"kind": "fast"}}, True),
        ({"matchLabels": {"kind": "slow"}}, False),
        ({"matchExpressions": [{"key": "kind", "operator": "NotIn", "values": ["slow"]}]}, True),
        ({"matchExpressions": [{"key": "kind", "operator": "DoesNotExist"}]}, False),
    ],
)
def test_a_claim_may_choose_volumes_by_their_labels(selector: dict[str, Any], serves: bool):
    assert could_serve(volume(), claim(selector=selector)) is serves


@pytest.mark.parametrize(
    ("key", "operator", "values", "reached"),
    [
        ("zone", "In", ["a", "b"], True),
        ("zone", "In", ["b"], False),
        ("zone", "NotIn", ["b"], True),
        ("rack", "Exists", [], False),
        ("rack", "DoesNotExist", [], True),
        ("slots", "Gt", ["8"], True),
        ("slots", "Lt", ["8"], False),
        ("zone", "Gt", ["8"], False),
        ("zone", "Near", ["a"], False),
    ],
)
def test_node_affinity_decides_which_nodes_can_mount_a_volume(
    key: str, operator: str, values: list[str], reached: bool
):
    term = {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}
    affinity = {"required": {"nodeSelectorTerms": [term]}}
    assert is_reached_from(volume(nodeAffinity=affinity), NODE) is reached


def test_one_matching_term_is_enough_and_an_empty_term_matches_no_node():
    field = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    elsewhere = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}

    def reached(*terms: dict[str, Any]) -> bool:
        candidate = volume(nodeAffinity={"required": {"nodeSelectorTerms": list(terms)}})
        return is_reached_from(candidate, NODE)

    assert [reached(elsewhere, field), reached({**elsewhere, **field}), reached({})] == [
        True,
        False,
        False,
    ]
    assert is_reached_from(volume(), NODE) is True

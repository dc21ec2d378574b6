"""What must hold: after every step no device is overcommitted; at the end nothing is left over."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kube.keys import GPU_GROUP, GPU_GROUP_PREFIX, RESERVED_DEVICE
from kube.resources import BINDREQUESTS, CONFIGMAPS, RESOURCE_CLAIMS
from tests.binder.machine.cluster import (
    DEVICE_MIB,
    FRACTIONS,
    GPU_NODES,
    MIG_SLICES,
    SHARED_CLAIM,
    WHOLE,
    DeviceCluster,
    is_finished,
    kind_of,
    node_of,
)


def is_live(body: dict[str, Any]) -> bool:
    """Return whether a pod is on a node and holds what it got there."""
    return bool(node_of(body)) and not is_finished(body)


def devices_of_user(cluster: DeviceCluster, body: dict[str, Any]) -> list[str]:
    """Return the devices that the container of a shared-GPU pod sees."""
    name = f"{body['metadata']['name']}-abcdefg-shared-gpu-0"
    maps = [item for item in cluster.bodies(CONFIGMAPS) if item["metadata"]["name"] == name]
    assert maps, f"{body['metadata']['name']} is bound without its ConfigMap {name}"
    owners = {owner["uid"] for owner in maps[0]["metadata"]["ownerReferences"]}
    assert body["metadata"]["uid"] in owners, f"{name} belongs to {owners}"
    return [device for device in maps[0]["data"]["NVIDIA_VISIBLE_DEVICES"].split(",") if device]


def check_devices(cluster: DeviceCluster) -> None:
    """Check that no device holds more than it has."""
    live = [body for body in cluster.users() if is_live(body)]
    _check_whole_gpus(cluster, live)
    _check_shared_gpus(cluster, live)
    slices = sum(kind_of(body) == "mig" for body in live)
    assert slices <= MIG_SLICES, f"{slices} MIG slices are in use, {MIG_SLICES} exist"
    _check_claims(cluster, live)


def _check_whole_gpus(cluster: DeviceCluster, live: list[dict[str, Any]]) -> None:
    used = Counter(node_of(holder) for holder in cluster.holders())
    for body in live:
        used[node_of(body)] += WHOLE.get(kind_of(body), 0)
    overcommitted = {name: count for name, count in used.items() if count > GPU_NODES.get(name, 0)}
    assert not overcommitted, (
        f"GPUs of pods and reservations: {overcommitted}, existing: {GPU_NODES}"
    )


def _check_shared_gpus(cluster: DeviceCluster, live: list[dict[str, Any]]) -> None:
    """Check each user's devices against the reservations of its groups, and add up their memory in MiB."""
    reserved = {
        holder["metadata"]["labels"][GPU_GROUP]: holder["metadata"]["annotations"].get(
            RESERVED_DEVICE, ""
        )
        for holder in cluster.holders()
    }
    used: Counter[str] = Counter()
    for body in live:
        if kind_of(body) not in FRACTIONS:
            continue
        name, (count, mib) = body["metadata"]["name"], FRACTIONS[kind_of(body)]
        devices = devices_of_user(cluster, body)
        expected = sorted(reserved.get(item, f"no reservation of {item}") for item in groups(body))
        assert sorted(devices) == expected, f"{name} sees {devices}, reserved: {expected}"
        assert len(set(devices)) == count, f"{name} sees {devices} instead of {count} devices"
        for device in devices:
            used[device] += mib
    overcommitted = {name: mib for name, mib in used.items() if mib > DEVICE_MIB}
    assert not overcommitted, f"MiB used per device: {overcommitted}, each has {DEVICE_MIB}"


def groups(body: dict[str, Any]) -> list[str]:
    """Return the GPU groups that the labels of a pod name."""
    labels = body["metadata"].get("labels") or {}
    return sorted(
        value
        for key, value in labels.items()
        if key == GPU_GROUP or key.startswith(GPU_GROUP_PREFIX)
    )


def _check_claims(cluster: DeviceCluster, live: list[dict[str, Any]]) -> None:
    claims = cluster.bodies(RESOURCE_CLAIMS)
    holders = Counter(device for claim in claims for device in _devices(claim))
    shared_devices = [device for device, count in holders.items() if count > 1]
    assert not shared_devices, f"devices in several claims: {shared_devices}"
    for body in live:
        if kind_of(body) in ("claim", "shared-claim", "extended"):
            uid = body["metadata"]["uid"]
            claims_of_pod = [claim for claim in claims if uid in _consumer_uids(claim)]
            name = body["metadata"]["name"]
            assert len(claims_of_pod) == 1, f"{name} has {len(claims_of_pod)} claims"
            assert len(_devices(claims_of_pod[0])) == 1, f"{name} has a claim without a device"


def _devices(claim: dict[str, Any]) -> list[str]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return [item["device"] for item in allocation.get("devices", {}).get("results", [])]


def _consumer_uids(claim: dict[str, Any]) -> list[str]:
    status = claim.get("status") or {}
    return [item["uid"] for item in status.get("reservedFor") or []]


def check_nothing_is_left_over(cluster: DeviceCluster) -> None:
    """Check, when all is quiet, that whatever was prepared has a pod that uses it."""
    live = [body for body in cluster.users() if is_live(body)]
    used = {name for body in live for name in groups(body)}
    reserved = [holder["metadata"]["labels"][GPU_GROUP] for holder in cluster.holders()]
    assert sorted(reserved) == sorted(used), (
        f"reservations {sorted(reserved)}, in use {sorted(used)}"
    )
    for holder in cluster.holders():
        assert "kaiweb.dev/unused" not in holder["metadata"]["annotations"]
    bound = {body["metadata"]["uid"] for body in cluster.users() if node_of(body)}
    for request in cluster.bodies(BINDREQUESTS):
        phase = (request.get("status") or {}).get("phase", "")
        owner = request["metadata"]["ownerReferences"][0]["uid"]
        assert phase == "Succeeded", f"bind request {request['metadata']['name']} is {phase!r}"
        assert owner in bound, f"bind request {request['metadata']['name']} succeeded, unbound"
    for body in cluster.users():
        if not node_of(body):
            assert not groups(body), f"{body['metadata']['name']} keeps the labels {groups(body)}"
    existing = {body["metadata"]["uid"] for body in cluster.users()}
    for config_map in cluster.bodies(CONFIGMAPS):
        owners = {owner["uid"] for owner in config_map["metadata"]["ownerReferences"]}
        # A binder that was paused may leave the map of a pending pod, which the next attempt uses.
        assert owners <= existing, f"{config_map['metadata']['name']} is of no pod"
    for claim in cluster.bodies(RESOURCE_CLAIMS):
        name = claim["metadata"]["name"]
        users = {body["metadata"]["uid"] for body in live}
        assert set(_consumer_uids(claim)) <= users, (
            f"claim {name} is reserved for {_consumer_uids(claim)}"
        )
        if name != SHARED_CLAIM and not name.startswith("of-"):
            owner = claim["metadata"]["ownerReferences"][0]["uid"]
            assert owner in bound, f"claim {name} is of no bound pod"

"""What kubelets and Kubernetes' controllers do: start pods, end them, give devices back."""

from __future__ import annotations

from typing import Any

from kube.keys import RESERVED_DEVICE
from kube.resources import PODS, RESOURCE_CLAIMS
from tests.binder.machine.checks import devices_of_user, is_live
from tests.binder.machine.cluster import (
    FRACTIONS,
    GPU_NODES,
    RESERVATIONS,
    SHARED_CLAIM,
    WHOLE,
    DeviceCluster,
    is_finished,
    kind_of,
    node_of,
)


class Kubelet:
    """The kubelets of all nodes; `held` are the devices that they gave to pods, by uid of the pod."""

    def __init__(self, cluster: DeviceCluster) -> None:
        self.cluster = cluster
        self.held: dict[str, list[str]] = {}

    def step(self) -> None:
        """End what was deleted, start what was bound, take claims back from pods that ended."""
        for body in self.cluster.bodies(PODS):
            if body["metadata"].get("deletionTimestamp"):
                meta = body["metadata"]
                self.cluster.delete(
                    PODS, meta["name"], namespace=meta["namespace"], grace_period_s=0
                )
        self.start_reservations()
        for body in self.cluster.users():
            if is_live(body) and body["status"]["phase"] == "Pending":
                self._start(body)
        self._release_claims()

    def start_reservations(self) -> None:
        for body in self.cluster.holders():
            if RESERVED_DEVICE not in body["metadata"]["annotations"]:
                self._start_reservation(body)

    def finish(self, body: dict[str, Any], phase: str) -> None:
        self._set_phase(body, phase)
        self.held.pop(body["metadata"]["uid"], None)

    def _start_reservation(self, body: dict[str, Any]) -> None:
        devices = self._take(body, 1)
        if not devices:
            self._set_phase(body, "Failed")
            return
        self._set_phase(body, "Running")
        patch = {"metadata": {"annotations": {RESERVED_DEVICE: devices[0]}}}
        self.cluster.patch(PODS, body["metadata"]["name"], patch, namespace=RESERVATIONS)

    def _start(self, body: dict[str, Any]) -> None:
        kind = kind_of(body)
        if kind in WHOLE:
            devices = self._take(body, WHOLE[kind])
            assert devices, f"the kubelet has no device for {body['metadata']['name']}"
        if kind in FRACTIONS:
            names = devices_of_user(self.cluster, body)
            assert len(names) == FRACTIONS[kind][0], f"{body['metadata']['name']} sees {names}"
        self._set_phase(body, "Running")

    def _take(self, body: dict[str, Any], count: int) -> list[str]:
        live = {item["metadata"]["uid"] for item in self.cluster.bodies(PODS) if is_live(item)}
        self.held = {uid: names for uid, names in self.held.items() if uid in live}
        node = node_of(body)
        used_names = {name for names in self.held.values() for name in names}
        every = [f"{node}-gpu{index}" for index in range(GPU_NODES[node])]
        free = [name for name in every if name not in used_names]
        if len(free) < count:
            return []
        self.held[body["metadata"]["uid"]] = free[:count]
        return free[:count]

    def _set_phase(self, body: dict[str, Any], phase: str) -> None:
        meta = body["metadata"]
        self.cluster.patch(
            PODS,
            meta["name"],
            {"status": {"phase": phase}},
            namespace=meta["namespace"],
            sub="status",
        )

    def _release_claims(self) -> None:
        """Do what Kubernetes' claim controller does for pods that are gone or finished."""
        users = {body["metadata"]["uid"] for body in self.cluster.users() if not is_finished(body)}
        for body in self.cluster.bodies(RESOURCE_CLAIMS):
            meta, status = body["metadata"], body.get("status") or {}
            consumers = [item for item in status.get("reservedFor") or [] if item["uid"] in users]
            if consumers == (status.get("reservedFor") or []):
                continue
            change: dict[str, Any] = {"reservedFor": consumers or None}
            if not consumers:
                change["allocation"] = None
            self.cluster.patch(
                RESOURCE_CLAIMS, meta["name"], {"status": change}, namespace="ns", sub="status"
            )
            if not consumers and meta["name"] != SHARED_CLAIM:
                self.cluster.patch(
                    RESOURCE_CLAIMS,
                    meta["name"],
                    {"metadata": {"finalizers": None}},
                    namespace="ns",
                )

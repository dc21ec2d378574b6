"""Volumes that never become bound, on a real kube-apiserver: the attempt ends in time and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from binder.errors import BindError
from binder.params import StepConfig
from binder.steps.base import BindJob
from binder.steps.volumes import Volumes
from kube.client import HttpGateway, connect
from kube.errors import AlreadyExistsError
from kube.objects.bindrequest import BindRequest
from kube.objects.meta import convert
from kube.objects.pod import Pod
from kube.objects.storage import PersistentVolume, PersistentVolumeClaim
from kube.resources import NAMESPACES, NODES, PVCS, PVS, STORAGE_CLASSES
from kube.static_volumes import SELECTED_NODE
from tests.binder.objects import pod, request
from tests.real_cluster.cluster import RealCluster

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]
TIMEOUT = StepConfig(name="volumebinding", priority=300, arguments={"bindTimeoutSeconds": "1"})


@pytest.fixture(scope="module")
def gateway(real_cluster: RealCluster) -> Iterator[HttpGateway]:
    """A gateway to a server with a node, and with two classes of volumes for which nobody works."""
    gateway = connect(real_cluster.kubeconfig)
    gateway.create(NAMESPACES, {"metadata": {"name": "ns"}})
    with suppress(AlreadyExistsError):
        gateway.create(NODES, {"metadata": {"name": "n1", "labels": {"name": "n1"}}})
    for name, provisioner in (
        ("nobody", "nobody.example.test"),
        ("by-hand", "kubernetes.io/no-provisioner"),
    ):
        body = {"metadata": {"name": name}, "provisioner": provisioner}
        gateway.create(STORAGE_CLASSES, {**body, "volumeBindingMode": "WaitForFirstConsumer"})
    yield gateway
    gateway.close()


def attempt(gateway: HttpGateway, claim: str, storage_class: str) -> tuple[Volumes, BindJob]:
    """Create a claim; return the step and an attempt of a pod with that claim."""
    spec: dict[str, Any] = {
        "storageClassName": storage_class,
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    gateway.create(PVCS, {"metadata": {"name": claim}, "spec": spec}, namespace="ns")
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]
    body = pod(spec={"volumes": volumes})
    job = BindJob(convert(request(), BindRequest), convert(body, Pod), "n1")
    return Volumes(gateway, TIMEOUT), job


def claim_named(gateway: HttpGateway, name: str) -> PersistentVolumeClaim:
    return gateway.get(PVCS, name, as_type=PersistentVolumeClaim, namespace="ns")


def test_a_node_chosen_for_a_provisioner_that_never_answers_is_taken_back(
    gateway: HttpGateway,
) -> None:
    step, job = attempt(gateway, "scratch", "nobody")
    text = "VolumeBinding failed Bind .* timed out waiting for claims to be bound: scratch"
    with pytest.raises(BindError, match=text):
        step.prepare(job)
    assert claim_named(gateway, "scratch").metadata.annotations[SELECTED_NODE] == "n1"
    step.roll_back(job)
    assert SELECTED_NODE not in claim_named(gateway, "scratch").metadata.annotations


def test_a_static_volume_that_is_never_bound_is_free_again(gateway: HttpGateway) -> None:
    term = {"matchExpressions": [{"key": "name", "operator": "In", "values": ["n1"]}]}
    spec = {
        "capacity": {"storage": "10Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "by-hand",
        "local": {"path": "/data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
    }
    gateway.create(PVS, {"metadata": {"name": "shelf"}, "spec": spec})
    gateway.patch(PVS, "shelf", {"status": {"phase": "Available"}}, sub="status")
    step, job = attempt(gateway, "books", "by-hand")

    def volume() -> PersistentVolume:
        return gateway.get(PVS, "shelf", as_type=PersistentVolume)

    with pytest.raises(BindError, match="timed out waiting for claims to be bound: books"):
        step.prepare(job)
    reference = volume().spec.claim_ref
    assert reference is not None
    assert reference.uid == claim_named(gateway, "books").metadata.uid
    step.roll_back(job)
    assert volume().spec.claim_ref is None

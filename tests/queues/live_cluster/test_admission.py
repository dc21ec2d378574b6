"""The webhooks of a live cluster, asked by its API server over HTTPS."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from kube.errors import AlreadyExistsError, ConflictError, KubeError
from kube.gateway import Gateway
from kube.resources import PODGROUPS, PODS, QUEUES, TOPOLOGIES, Resource
from queues.admission.install.registration import (
    MUTATING,
    Registration,
    UrlTarget,
    configurations,
)
from queues.admission.routes import ListedTree, Routes
from queues.admission.server.server import AdmissionServer
from queues.admission.settings import AdmissionSettings
from queues.grouping.offline.manifests import read_manifests
from tests.queues.live_cluster.waiting import eventually

MANIFESTS = Path(__file__).parent.parent / "manifests"
POD_HOOK = 'admission webhook "admission.kai-scheduler.svc" denied the request: '


RUNTIME_CLASSES = Resource(
    group="node.k8s.io",
    version="v1",
    plural="runtimeclasses",
    kind="RuntimeClass",
    namespaced=False,
)


@contextmanager
def webhooks(gateway: Gateway, folder: Path, **options: Any) -> Iterator[AdmissionServer]:
    settings = AdmissionSettings(gpu_sharing=True, **options)
    server = AdmissionServer(
        gateway=gateway,
        routes=Routes(tree=ListedTree(gateway), settings=settings),
        folder=folder,
        registration=Registration(
            target=UrlTarget(base=""),
            bundle=b"",
            asks_about_every_pod=settings.block_visible_devices,
        ),
    )
    runtime = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "nvidia"},
        "handler": "nvidia",
    }
    with suppress(AlreadyExistsError):
        gateway.create(RUNTIME_CLASSES, runtime)
    server.start()
    try:
        eventually(lambda: _is_registered(gateway, server.port), "the webhooks are registered")
        eventually(lambda: _is_asked(gateway), "the API server asks")
        yield server
    finally:
        for resource, body in configurations(server.registration):
            gateway.delete(resource, body["metadata"]["name"])
        server.stop()


def _is_registered(gateway: Gateway, port: int) -> bool:
    try:
        body = gateway.get(MUTATING, "mutating-kai-admission", as_type=dict)
    except KubeError:
        return False
    return f":{port}/" in body["webhooks"][0]["clientConfig"]["url"]


def _is_asked(gateway: Gateway) -> bool:
    """A real API server takes a second to follow a new configuration."""
    probe = {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": "probe"},
        "spec": {},
    }
    try:
        gateway.create(QUEUES, probe, dry_run=True)
    except KubeError:
        return True
    return False


def _group_of(gateway: Gateway, namespace: str, pod: str) -> str:
    metadata = gateway.get(PODS, pod, as_type=dict, namespace=namespace)["metadata"]
    pod_group: str = metadata["annotations"].get("pod-group-name", "")
    return pod_group


def refusal(gateway: Gateway, *arguments: Any, **options: Any) -> str:
    with pytest.raises(KubeError) as caught:
        gateway.create(*arguments, **options)
    return str(caught.value)


def prepared(pod: dict[str, Any]) -> dict[str, Any]:
    """Return the pod as a server accepts it: with an image in every container, in the test's namespace."""
    spec = pod["spec"]
    for container in [*spec["containers"], *spec.get("initContainers", [])]:
        container.setdefault("image", "pause")
    metadata = {key: value for key, value in pod["metadata"].items() if key != "namespace"}
    return {**pod, "metadata": metadata}


def test_parts_of_gpus_pass_or_are_refused(
    gateway: Gateway, namespace: str, tmp_path: Path
) -> None:
    with webhooks(gateway, tmp_path):
        for pod in read_manifests([MANIFESTS / "fractions-refused.yaml"]):
            text = refusal(gateway, PODS, prepared(pod), namespace=namespace)
            assert POD_HOOK + pod["metadata"]["annotations"]["test/expect"] in text
        for pod in read_manifests([MANIFESTS / "fractions.yaml"]):
            gateway.create(PODS, prepared(pod), namespace=namespace, dry_run=True)
        half = gateway.create(
            PODS, prepared(read_manifests([MANIFESTS / "fractions.yaml"])[0]), namespace=namespace
        )
        prefix = half["metadata"]["annotations"]["runai/shared-gpu-configmap"]
        container = half["spec"]["containers"][0]
        assert prefix.startswith("half-")
        assert [entry["name"] for entry in container["env"]] == [
            "NVIDIA_VISIBLE_DEVICES", "RUNAI_NUM_OF_GPUS", "GPU_PORTION",
        ]  # fmt: skip
        # Labels and annotations of the created pod stay editable: nothing is injected a second time.
        eventually(lambda: _group_of(gateway, namespace, "half") != "", "the pod is grouped")
        assert container["envFrom"] == [
            {"configMapRef": {"name": f"{prefix}-0-evar", "optional": False}}
        ]


def test_device_access_is_blocked_on_request(
    gateway: Gateway, namespace: str, tmp_path: Path
) -> None:
    visible = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}
    container: dict[str, Any] = {"name": "main", "image": "pause", "env": [visible]}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "sneaky"},
        "spec": {"schedulerName": "kai-scheduler", "containers": [container]},
    }
    with webhooks(gateway, tmp_path, block_visible_devices=True, fraction_runtime_class=""):
        admitted_pod = gateway.create(PODS, pod, namespace=namespace, dry_run=True)
        assert admitted_pod["spec"]["containers"][0]["env"] == [{**visible, "value": "void"}]
        container["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
        text = refusal(gateway, PODS, pod, namespace=namespace, dry_run=True)
        assert (
            "container main has an environment variable NVIDIA_VISIBLE_DEVICES defined with a value of all."
            in text
        )


def test_objects_of_ours_are_judged(gateway: Gateway, namespace: str, tmp_path: Path) -> None:
    with webhooks(gateway, tmp_path):
        bare = {
            "apiVersion": "scheduling.run.ai/v2",
            "kind": "Queue",
            "metadata": {"name": "bare"},
            "spec": {},
        }
        assert "resources must be specified" in refusal(gateway, QUEUES, bare)
        group = {
            "apiVersion": "scheduling.run.ai/v2alpha2",
            "kind": "PodGroup",
            "metadata": {"name": "g"},
            "spec": {
                "queue": "q",
                "subGroups": [{"name": "a", "parent": "b"}, {"name": "b", "parent": "a"}],
            },
        }
        text = refusal(gateway, PODGROUPS, group, namespace=namespace)
        assert text.endswith(
            'admission webhook "podgroup-validation.kai.scheduler" denied the request: cycle detected in subgroups'
        )
        topology = {
            "apiVersion": "kai.scheduler/v1alpha1",
            "kind": "Topology",
            "metadata": {"name": "t"},
            "spec": {
                "levels": [
                    {"nodeLabel": "block", "alias": "rack"},
                    {"nodeLabel": "row", "alias": "rack"},
                ]
            },
        }
        assert "duplicated: [rack]" in refusal(gateway, TOPOLOGIES, topology)


def test_a_parent_queue_can_be_deleted_before_its_children(
    gateway: Gateway, namespace: str, tmp_path: Path
) -> None:
    def queue(name: str, parent: str = "") -> dict[str, Any]:
        cells = {kind: {"quota": -1, "limit": -1} for kind in ("gpu", "cpu", "memory")}
        spec: dict[str, Any] = {"resources": cells}
        if parent:
            spec["parentQueue"] = parent
        return {
            "apiVersion": "scheduling.run.ai/v2",
            "kind": "Queue",
            "metadata": {"name": name},
            "spec": spec,
        }

    root, child = f"{namespace}-root", f"{namespace}-child"
    with webhooks(gateway, tmp_path):
        gateway.create(QUEUES, queue(root))
        gateway.create(QUEUES, queue(child, root))
        # The queue controller writes the status meanwhile, so a delete may have to be repeated.
        eventually(lambda: _is_deleted(gateway, root), "the parent is gone")
        eventually(lambda: _is_deleted(gateway, child), "the orphan is gone")


def _is_deleted(gateway: Gateway, queue: str) -> bool:
    try:
        gateway.delete(QUEUES, queue)
    except ConflictError:
        return False
    return True


def test_pods_that_need_no_judgement_do_not_depend_on_us(
    gateway: Gateway, namespace: str, tmp_path: Path
) -> None:
    container = {"name": "c", "image": "pause", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    spec = {"schedulerName": "kai-scheduler", "containers": [container]}
    with webhooks(gateway, tmp_path) as server:
        server.stop()
        plain = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plain"}, "spec": spec}
        gateway.create(PODS, plain, namespace=namespace, dry_run=True)
        other = {**plain, "spec": {**spec, "schedulerName": "default-scheduler"}}
        other["metadata"] = {"name": "other", "annotations": {"gpu-fraction": "0.5"}}
        gateway.create(PODS, other, namespace=namespace, dry_run=True)
        half = {**plain, "metadata": {"name": "half", "annotations": {"gpu-fraction": "0.5"}}}
        half["spec"] = {**spec, "containers": [{"name": "c", "image": "pause"}]}
        assert "failed calling webhook" in refusal(gateway, PODS, half, namespace=namespace)

"""Every manifest file on a live cluster: the controllers make of it what `kaiweb group` foretells."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kube.gateway import Gateway
from kube.resources import EVENTS, PODGROUPS, PODS, QUEUES
from queues.controllers.assembly import Controllers
from queues.grouping.base import Settings
from queues.grouping.engine.lookups import KARTAS, Karta
from queues.grouping.offline.manifests import read_manifests
from queues.grouping.offline.report import ExpandedObjects, GroupReport, expand, group_objects
from tests.queues.live_cluster.conftest import define
from tests.queues.live_cluster.objects import create_all, definitions_of
from tests.queues.live_cluster.waiting import eventually

MANIFESTS = Path(__file__).parent.parent / "manifests"
FILES = (
    "pods.yaml", "left-alone.yaml", "batch.yaml", "delays-ignored.yaml", "kubeflow.yaml", "mpi-launcher.yaml",
    "devices.yaml", "ray.yaml", "ray-too-early.yaml", "sets.yaml", "serving.yaml", "others.yaml", "grove.yaml", "dynamo.yaml", "karta.yaml",
)  # fmt: skip


@pytest.mark.parametrize("file", FILES)
def test_a_live_cluster_agrees_with_the_offline_answer(
    file: str, gateway: Gateway, namespace: str, controllers: Controllers
) -> None:
    objects = read_manifests([MANIFESTS / file])
    foretold = group_objects(objects, Settings())
    expanded = expand(objects, Settings())
    everything = list(expanded.cluster.objects.values())
    define(gateway, definitions_of(everything))
    kartas = expanded.cluster.of_kind("run.ai", "Karta")
    create_all(gateway, kartas, namespace)
    # Only pod events start work, so a definition must be known before the pods that need it.
    eventually(lambda: knows_kartas(controllers, len(kartas)), "the Kartas are seen", 60.0)
    uids = create_all(gateway, everything, namespace)
    for name, result in foretold.pods.items():
        pod = name.partition("/")[2]
        if result.error:
            eventually(
                lambda pod=pod: bool(warnings(gateway, namespace, pod)), f"a warning on {pod}"
            )
            assert warnings(gateway, namespace, pod)[0] == result.error.replace(
                "lab/", f"{namespace}/"
            )
        elif not result.skipped:
            eventually(lambda pod=pod: place(gateway, namespace, pod)[0] != "", f"{pod} is grouped")
            group, sub_group = place(gateway, namespace, pod)
            assert sub_group == result.sub_group
            expected_group = expected(foretold, result.pod_group, uids)
            assert group == expected_group["metadata"]["name"]
            eventually(
                lambda expected_group=expected_group: (
                    seen(gateway, namespace, expected_group) == expected_group
                ),
                f"pod group {group} is {expected_group}, not {seen(gateway, namespace, expected_group)}",
            )
    for name, result in foretold.pods.items():
        if result.skipped:
            assert place(gateway, namespace, name.partition("/")[2]) == (
                result.pod_group,
                result.sub_group,
            )
    live = [
        item["metadata"]["name"]
        for item in gateway.list(PODGROUPS, as_type=dict, namespace=namespace).items
    ]
    assert len(live) == len(foretold.pod_groups) + len(groups_of(expanded))


def test_the_status_of_groups_and_queues_follows(
    gateway: Gateway, namespace: str, controllers: Controllers
) -> None:
    for body in (queue(f"{namespace}-root"), queue(f"{namespace}-team", f"{namespace}-root")):
        gateway.create(QUEUES, body)
    labels = {"kai.scheduler/queue": f"{namespace}-team"}
    container = {"name": "c", "image": "pause", "resources": {"limits": {"nvidia.com/gpu": "2"}}}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": labels},
        "spec": {"schedulerName": "kai-scheduler", "containers": [container]},
    }
    gateway.create(PODS, body, namespace=namespace)

    def root() -> dict[str, Any]:
        status: dict[str, Any] = gateway.get(QUEUES, f"{namespace}-root", as_type=dict).get(
            "status", {}
        )
        return status

    eventually(
        lambda: root().get("requested") == {"nvidia.com/gpu": "2"},
        "the root queue shows the request",
    )
    assert root()["childQueues"] == [f"{namespace}-team"]
    assert {c["type"]: c["status"] for c in root()["conditions"]} == {
        "Orphan": "False",
        "OverQuota": "False",
    }
    condition = {"type": "PodScheduled", "status": "True"}
    gateway.patch(
        PODS, "p", {"status": {"conditions": [condition]}}, namespace=namespace, sub="status"
    )
    eventually(
        lambda: root().get("allocated") == {"nvidia.com/gpu": "2"},
        "the root queue shows the allocation",
    )
    gateway.delete(PODS, "p", namespace=namespace, grace_period_s=0)
    eventually(lambda: not root().get("requested"), "the root queue is empty again")


def knows_kartas(controllers: Controllers, count: int) -> bool:
    return len(controllers.store.view().of(KARTAS, Karta)) == count


def queue(name: str, parent: str = "") -> dict[str, Any]:
    cells = {kind: {"quota": -1, "limit": -1} for kind in ("gpu", "cpu", "memory")}
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"parentQueue": parent, "resources": cells} if parent else {"resources": cells},
    }


def warnings(gateway: Gateway, namespace: str, pod: str) -> list[str]:
    value = gateway.list(EVENTS, as_type=dict, namespace=namespace).items
    return [
        event["message"]
        for event in value
        if event["reason"] == "PodGrouperWarning"
        and event["type"] == "Warning"
        and event["involvedObject"]["name"] == pod
    ]


def place(gateway: Gateway, namespace: str, pod: str) -> tuple[str, str]:
    metadata = gateway.get(PODS, pod, as_type=dict, namespace=namespace)["metadata"]
    return (
        metadata.get("annotations", {}).get("pod-group-name", ""),
        metadata.get("labels", {}).get("kai.scheduler/subgroup-name", ""),
    )


def seen(gateway: Gateway, namespace: str, expected_group: dict[str, Any]) -> dict[str, Any]:
    """Return of a live pod group what is wanted of it; a server adds labels to Jobs, others add annotations."""
    body: dict[str, Any] = gateway.get(
        PODGROUPS, expected_group["metadata"]["name"], as_type=dict, namespace=namespace
    )
    metadata = body["metadata"]
    value = {
        part: {key: metadata.get(part, {}).get(key) for key in expected_group["metadata"][part]}
        for part in ("labels", "annotations")
    }
    return {
        "metadata": {
            "name": metadata["name"],
            **value,
            "ownerReferences": metadata["ownerReferences"],
        },
        "spec": body["spec"],
    }


def expected(report: GroupReport, name: str, uids: dict[str, str]) -> dict[str, Any]:
    """Return the foretold pod group with the live uid of its owner in the place of the file's."""
    (group,) = [group for group in report.pod_groups if group["metadata"]["name"] == name]
    metadata = {
        key: group["metadata"][key] for key in ("name", "labels", "annotations", "ownerReferences")
    }
    text = json.dumps({"metadata": metadata, "spec": group["spec"]})
    # Longer uids first: one may be the beginning of another.
    for old in sorted(uids, key=len, reverse=True):
        text = re.sub(
            rf"(?<![-\w]){re.escape(old)}|(?<=-){re.escape(old)}(?=[-\"])", uids[old], text
        )
    value: dict[str, Any] = json.loads(text)
    return value


def groups_of(expanded: ExpandedObjects) -> list[dict[str, Any]]:
    return expanded.cluster.of_kind("scheduling.run.ai", "PodGroup")

"""Sample 72: a pod waits for the volume that is made where it will run."""

from __future__ import annotations

import json

import pytest

from kube.resources import PVCS
from tests.samples.sample import Sample
from tests.samples.shared_gpus import request_of

pytestmark = pytest.mark.timeout(240)
SELECTED_NODE = "volume.kubernetes.io/selected-node"
VOLUME = """
apiVersion: v1
kind: PersistentVolume
metadata: {{name: {name}}}
spec:
  capacity: {{storage: 2Gi}}
  accessModes: [ReadWriteOnce]
  storageClassName: s72-where-it-runs
  hostPath: {{path: /shelf}}
"""


@pytest.fixture(scope="module")
def waiting(sample: Sample) -> Sample:
    sample.apply("72-volume.yaml")
    return sample


def selected_node(sample: Sample) -> str:
    annotations = sample.get(PVCS, "notebook")["metadata"].get("annotations") or {}
    return str(annotations.get(SELECTED_NODE, ""))


def test_the_provisioner_is_told_where_and_waited_for(waiting: Sample) -> None:
    waiting.wait(lambda: selected_node(waiting), f"the annotation {SELECTED_NODE}")
    assert selected_node(waiting) == request_of(waiting, "writer")["selectedNode"]
    waiting.stays(lambda: not waiting.bound("writer"), "writer waits for its volume")


def test_the_pod_is_bound_once_its_volume_is(waiting: Sample) -> None:
    name = f"s72-{waiting.installation.name}"
    waiting.apply_text(VOLUME.format(name=name))
    # What a provisioner and the volume controller would do.
    waiting.kubectl("patch", "pvc", "notebook", "-p", json.dumps({"spec": {"volumeName": name}}))
    status = json.dumps({"status": {"phase": "Bound"}})
    waiting.kubectl("patch", "pvc", "notebook", "--subresource=status", "-p", status)
    waiting.wait_bound("writer", count=1)
    assert waiting.pod("writer")["spec"]["nodeName"] == selected_node(waiting)


def test_it_is_a_pod_group_of_one(waiting: Sample) -> None:
    group = waiting.pod_group_of("writer")
    uid = waiting.pod("writer")["metadata"]["uid"]
    assert group["metadata"]["name"] == f"pg-writer-{uid}"
    spec = group["spec"]
    assert (spec["minMember"], spec["priorityClassName"], spec["queue"]) == (
        1,
        "train",
        "s72-writers",
    )

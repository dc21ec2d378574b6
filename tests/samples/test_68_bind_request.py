"""Sample 68: what the binder makes of a bind request, whoever wrote it."""

from __future__ import annotations

import pytest
import yaml

from kube.resources import BINDREQUESTS
from tests.samples.sample import Json, Sample

pytestmark = pytest.mark.timeout(240)
LOST = "node <no-such-machine> was not found"


def request(sample: Sample, pod: str, node: str, **labels: str) -> str:
    uid = sample.pod(pod)["metadata"]["uid"]
    body = {
        "apiVersion": BINDREQUESTS.api_version,
        "kind": BINDREQUESTS.kind,
        "metadata": {
            "name": pod,
            "labels": {"selected-node": node, **labels},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid}],
        },
        "spec": {
            "podName": pod,
            "selectedNode": node,
            "receivedResourceType": "Regular",
            "receivedGPU": {"count": 1, "portion": "1.00"},
        },
    }
    return yaml.safe_dump(body)


@pytest.fixture(scope="module")
def carried(sample: Sample) -> Sample:
    sample.apply("68-carried.yaml")
    sample.apply_text(request(sample, "carried", "kite-2"))
    # Of another pool, so that no scheduler clears the failed one away.
    labels = {"kai.scheduler/node-pool": "s68-none"}
    sample.apply_text(request(sample, "stranded", "no-such-machine", **labels))
    return sample


def status(sample: Sample, name: str) -> Json:
    status: Json = sample.get(BINDREQUESTS, name).get("status") or {}
    return status


def bound_condition(sample: Sample, pod: str) -> tuple[str, str, str]:
    for condition in sample.pod(pod)["status"].get("conditions") or ():
        if condition["type"] == "PodBound":
            return condition["status"], condition["reason"], condition["message"]
    return "", "", ""


def test_the_pod_is_bound_where_it_says_and_the_request_tells(carried: Sample) -> None:
    carried.wait(lambda: status(carried, "carried").get("phase") == "Succeeded", "Succeeded")
    assert status(carried, "carried") == {"phase": "Succeeded"}
    pod = carried.pod("carried")
    assert pod["spec"]["nodeName"] == "kite-2"
    assert pod["metadata"]["annotations"]["received-resource-type"] == "Regular"
    text = "Pod bound successfully to node kite-2"
    carried.wait(lambda: bound_condition(carried, "carried") == ("True", "Bound", text), text)
    carried.wait(
        lambda: ("Normal", "Bound", text) in carried.events_of("Pod", "carried"), f"event {text}"
    )


def test_the_bind_request_is_deleted_with_its_pod(carried: Sample) -> None:
    carried.wait(lambda: status(carried, "carried").get("phase") == "Succeeded", "Succeeded")
    carried.kubectl("delete", "pod", "carried", "--wait=false")
    carried.wait(lambda: not carried.exists(BINDREQUESTS, "carried"), "the end of the request")


def test_a_machine_that_is_not_there_is_the_reason_of_the_failure(carried: Sample) -> None:
    carried.wait(lambda: status(carried, "stranded").get("phase") == "Failed", "Failed")
    reason = status(carried, "stranded")["reason"]
    assert reason.startswith(LOST)
    text = f"Failed to bind pod {carried.namespace}/stranded to node no-such-machine: {reason}"
    carried.wait(
        lambda: bound_condition(carried, "stranded") == ("False", "BindingError", text), text
    )
    carried.wait(
        lambda: ("Warning", "BindingError", text) in carried.events_of("Pod", "stranded"),
        f"event {text}",
    )
    assert "nodeName" not in carried.pod("stranded")["spec"]

"""A webhook that refuses the binding of one pod for ever, on a running installation."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest

from tests.e2e.rest import Session
from tests.integration.stack import Stack, wait_until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(420)]

NAMESPACE = "refused"
#: Nobody answers at this address, so every binding in the namespace is refused.
WEBHOOK = f"""
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {{name: no-bindings}}
webhooks:
- name: bindings.example.test
  clientConfig: {{url: "https://127.0.0.1:1/refuse"}}
  rules: [{{apiGroups: [""], apiVersions: [v1], resources: [pods/binding], operations: [CREATE]}}]
  namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: {NAMESPACE}}}}}
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
  timeoutSeconds: 2
"""


def pod(name: str, namespace: str, rank: str) -> str:
    """Return a pod that takes the whole node t4-2."""
    labels = {"kai.scheduler/queue": "default-queue", "priorityClassName": rank}
    container = {
        "name": "main",
        "image": "example.test/x:1",
        "resources": {"limits": {"nvidia.com/gpu": "4"}},
    }
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "spec": {
                "schedulerName": "kai-scheduler",
                "nodeSelector": {"kubernetes.io/hostname": "t4-2"},
                "containers": [container],
            },
        }
    )


def node_of(stack: Stack, name: str, namespace: str) -> str:
    (body,) = stack.objects("pod", name, "-n", namespace)
    return str(body["spec"].get("nodeName", ""))


def failed_binds(person: Session) -> dict[str, Any]:
    """Return what REST says about the refused pod's failed binds; {} before the first."""
    answer, _ = person.call("GET", f"workloads?namespace={NAMESPACE}")
    for item in answer["items"]:
        detail, _ = person.call("GET", f"workloads/{NAMESPACE}/{item['name']}")
        failures: dict[str, Any] = detail["podList"][0]["failedBinds"] or {}
        return (
            {**failures, "reason": detail["reason"], "workload": item["name"]} if failures else {}
        )
    return {}


def test_others_are_placed_and_the_refused_pod_says_when_it_is_tried_next(stack: Stack):
    stack.kubectl("create", "namespace", NAMESPACE)
    stack.kubectl("apply", "-f", "-", stdin=WEBHOOK)
    stack.kubectl("apply", "-f", "-", stdin=pod("bad", NAMESPACE, "build-preemptible"))
    person = Session(stack)
    first = wait_until(
        lambda: failed_binds(person), what="the first failed bind", timeout_s=90, stack=stack
    )
    stack.kubectl("apply", "-f", "-", stdin=pod("good", "default", "train"))
    wait_until(
        lambda: node_of(stack, "good", "default"),
        what="a node for others",
        timeout_s=90,
        stack=stack,
    )

    assert (first["reason"], first["nodes"]) == ("BindFailing", ["t4-2"])
    assert "bindings.example.test" in first["error"]
    assert datetime.fromisoformat(first["nextAt"]) > datetime.fromisoformat(first["lastAt"])

    for name in ("scheduling-default", "binding"):
        stack.kill(name)
    stack.kubectl("delete", "pod", "good", "-n", "default", "--wait=false")
    wait_until(
        lambda: failed_binds(person).get("count", 0) > first["count"],
        what="another refused attempt after the restart",
        timeout_s=120,
        stack=stack,
    )

    stack.kubectl("delete", "validatingwebhookconfiguration", "no-bindings")
    path = f"workloads/{NAMESPACE}/{first['workload']}/retry-bind"
    person.send("POST", path)
    wait_until(
        lambda: node_of(stack, "bad", NAMESPACE),
        what="the pod once it may be bound",
        timeout_s=90,
        stack=stack,
    )
    stack.kubectl("delete", "pod", "bad", "-n", NAMESPACE, "--wait=false")

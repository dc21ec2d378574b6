"""While the web process does not answer: what needs its judgement waits, everything else goes on."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.stack import Stack, running_stack, wait_until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

NAMESPACE = "away"
LWS = "leaderworkersets.leaderworkerset.x-k8s.io"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with running_stack(tmp_path_factory.mktemp("away")) as running:
        running.kubectl("create", "namespace", NAMESPACE)
        apply(running, queue("away", 4), leader_worker_set_definition())
        wait_until(
            lambda: "served" in running.kubectl("get", "crd", LWS, "-o", "jsonpath={.spec}"),
            what="the kind LeaderWorkerSet",
        )
        yield running


def apply(stack: Stack, *bodies: dict[str, Any]) -> str:
    items = {"apiVersion": "v1", "kind": "List", "items": list(bodies)}
    return stack.kubectl("apply", "-f", "-", stdin=json.dumps(items), check=False)


def queue(name: str, gpus: float) -> dict[str, Any]:
    unlimited = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    resources = {"gpu": {**unlimited, "quota": gpus}, "cpu": unlimited, "memory": unlimited}
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"resources": resources},
    }


def leader_worker_set_definition() -> dict[str, Any]:
    open_schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": open_schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": LWS},
        "spec": {
            "group": "leaderworkerset.x-k8s.io",
            "scope": "Namespaced",
            "names": {
                "plural": "leaderworkersets",
                "singular": "leaderworkerset",
                "kind": "LeaderWorkerSet",
            },
            "versions": [version],
        },
    }


def pod(name: str, scheduler: str = "kai-scheduler", **meta: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "example.test/x:1"}
    labels = {"kai.scheduler/queue": "away", **meta.pop("labels", {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels, **meta},
        "spec": {"schedulerName": scheduler, "restartPolicy": "Never", "containers": [container]},
    }


def leader_and_worker(stack: Stack) -> list[dict[str, Any]]:
    """Make a LeaderWorkerSet and return its two pods, which form a pod group with a tree."""
    body = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "set", "namespace": NAMESPACE},
        "spec": {"leaderWorkerTemplate": {"size": 2}},
    }
    apply(stack, body)
    (worker_set,) = stack.objects(LWS, "set", "-n", NAMESPACE)
    owner = {
        "apiVersion": body["apiVersion"],
        "kind": body["kind"],
        "name": "set",
        "uid": worker_set["metadata"]["uid"],
    }
    prefix = "leaderworkerset.sigs.k8s.io"
    return [
        pod(
            f"set-{index}",
            labels={f"{prefix}/group-index": "0", f"{prefix}/worker-index": str(index)},
            ownerReferences=[owner],
        )
        for index in range(2)
    ]


def is_placed(stack: Stack, name: str) -> bool:
    (pod,) = stack.objects("pod", name, "-n", NAMESPACE)
    return bool(pod["spec"].get("nodeName"))


def groups_with_a_tree(stack: Stack) -> list[dict[str, Any]]:
    return [g for g in stack.objects("podgroups", "-n", NAMESPACE) if g["spec"].get("subGroups")]


def test_what_needs_no_judgement_goes_on_and_the_rest_waits(stack: Stack) -> None:
    web = stack.pids()["web"]
    os.kill(web, signal.SIGSTOP)
    try:
        apply(stack, pod("plain"), pod("foreign", scheduler="default-scheduler"))
        wait_until(lambda: is_placed(stack, "plain"), what="a plain pod's place", stack=stack)
        assert "foreign" in stack.kubectl("get", "pods", "-n", NAMESPACE, "-o", "name")
        refusal = apply(stack, queue("away", 5))
        assert 'failed calling webhook "queue-validation.kai.scheduler"' in refusal
        assert "away" in stack.kubectl("get", "queues", "-o", "name")
        half = pod("half", annotations={"gpu-fraction": "0.5"})
        assert 'failed calling webhook "admission.kai-scheduler.svc"' in apply(stack, half)
        apply(stack, *leader_and_worker(stack))
        events = wait_until(
            lambda: [
                event["message"]
                for event in stack.objects("events", "-n", NAMESPACE)
                if event["reason"] == "PodGrouperWarning"
            ],
            what="the pod grouper's warning",
            stack=stack,
        )
        assert 'failed calling webhook "podgroup-validation.kai.scheduler"' in events[0]
        assert groups_with_a_tree(stack) == []
    finally:
        os.kill(web, signal.SIGCONT)
    wait_until(
        lambda: groups_with_a_tree(stack), what="the tree of subgroups", timeout_s=60, stack=stack
    )
    for name in ("set-0", "set-1"):
        wait_until(
            lambda name=name: is_placed(stack, name), what=f"a place for {name}", stack=stack
        )
    assert "configured" in apply(stack, queue("away", 5))


def test_a_killed_web_process_is_back_before_anybody_gives_up(stack: Stack) -> None:
    before = stack.kill("web")
    wait_until(
        lambda: "configured" in apply(stack, queue("away", 6)),
        what="an edit of a queue after the kill",
        timeout_s=60,
        every_s=0.5,
        stack=stack,
    )
    assert stack.pids()["web"] != before
    assert "created" in apply(stack, pod("after", annotations={"gpu-fraction": "0.5"}))
    wait_until(lambda: is_placed(stack, "after"), what="a fraction's place", stack=stack)


def test_a_second_start_finds_its_old_registration(stack: Stack) -> None:
    stack.stop()
    stack.start()
    assert "configured" in apply(stack, queue("away", 7))
    port = (Path(stack.home) / "admission" / "port").read_text()
    hooks = stack.objects("validatingwebhookconfiguration", "kai-queue-validation-v2")[0]
    (hook,) = hooks["webhooks"]
    assert f":{port}/" in hook["clientConfig"]["url"]
    assert hook["failurePolicy"] == "Fail"

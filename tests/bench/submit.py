"""Create many pods at once, as many clients would, and wait for what should become of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from kube.client import HttpGateway, connect
from kube.gateway import Gateway
from kube.link import Target
from kube.objects.pod import Pod
from kube.resources import NAMESPACES, PODS
from tests.integration.stack import Stack

CLIENTS = 16


def gateway_to(stack: Stack) -> HttpGateway:
    """Connect to the cluster of an installation."""
    return connect(Target(kubeconfig=stack.kubeconfig, pool_size=CLIENTS))


def make_namespace(gateway: Gateway, name: str) -> None:
    """Create a namespace."""
    gateway.create(NAMESPACES, {"metadata": {"name": name}})


def gpu_pod(name: str, namespace: str, **labels: str) -> dict[str, Any]:
    """Return a pod that wants one GPU and runs on."""
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "schedulerName": "kai-scheduler",
            "containers": [
                {
                    "name": "main",
                    "image": "example.test/x:1",
                    "resources": {
                        "requests": {"cpu": "1", "memory": "1Gi"},
                        "limits": {"nvidia.com/gpu": "1"},
                    },
                }
            ],
        },
    }


def create_all(
    gateway: Gateway, bodies: list[dict[str, Any]], times: dict[str, float] | None = None
) -> float:
    """Create pods from many threads; return the seconds it took.

    times : gets by the name of each pod when its creation was begun, by the monotonic clock
    """
    started = time.monotonic()

    def create(body: dict[str, Any]) -> None:
        meta = body["metadata"]
        if times is not None:
            times[meta["name"]] = time.monotonic()
        gateway.create(PODS, body, namespace=meta["namespace"])

    with ThreadPoolExecutor(CLIENTS) as pool:
        for done in [pool.submit(create, body) for body in bodies]:
            done.result()
    return time.monotonic() - started


def wait_for_pods(
    gateway: Gateway,
    namespace: str,
    holds: Callable[[Pod], bool],
    count: int,
    *,
    timeout_s: float = 600,
) -> list[Pod]:
    """Poll until `count` pods of a namespace satisfy a predicate; return all pods."""
    deadline = time.monotonic() + timeout_s
    while True:
        pods = list(gateway.list(PODS, as_type=Pod, namespace=namespace).items)
        if sum(1 for pod in pods if holds(pod)) >= count:
            return pods
        if time.monotonic() > deadline:
            done = sum(1 for pod in pods if holds(pod))
            raise TimeoutError(f"{done} of {count} pods after {timeout_s:.0f} s")
        time.sleep(0.5)

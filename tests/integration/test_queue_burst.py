"""A client that creates queues one after the other does not hold up pods, nor what else follows the queues."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from kube.client import HttpGateway
from kube.errors import NotFoundError
from kube.gateway import Gateway
from kube.keys import QUEUE
from kube.objects.pod import Pod
from kube.objects.queue import Queue
from kube.resources import NAMESPACES, PODS, QUEUES
from tests.bench.large_tree import plain_queue
from tests.bench.submit import gateway_to, gpu_pod, make_namespace
from tests.integration.stack import Stack, wait_until

pytestmark = pytest.mark.integration

NAMESPACE = "queue-burst"
ROOT = "burst-root"
#: Queues that a burst creates at most.
LONGEST_BURST = 500
WAIT_S = 60.0


@contextmanager
def burst_of_queues(gateway: Gateway) -> Iterator[list[str]]:
    """Create queues below one root all the time; yield the names of those created so far."""
    created: list[str] = []
    stop = threading.Event()

    def create() -> None:
        while not stop.is_set() and len(created) < LONGEST_BURST:
            name = f"burst-{len(created)}"
            gateway.create(QUEUES, plain_queue(name, ROOT))
            created.append(name)

    thread = threading.Thread(target=create, name="burst")
    gateway.create(QUEUES, plain_queue(ROOT, quota=8))
    thread.start()
    try:
        yield created
    finally:
        stop.set()
        thread.join()
        for name in [*created, ROOT]:
            _delete_queue(gateway, name)


def _delete_queue(gateway: Gateway, name: str) -> None:
    try:
        gateway.delete(QUEUES, name)
    except NotFoundError:
        return


@pytest.fixture
def gateway(stack: Stack) -> Iterator[HttpGateway]:
    with closing(gateway_to(stack)) as gateway:
        yield gateway


def test_pods_start_while_queues_are_created(stack: Stack, gateway: HttpGateway) -> None:
    make_namespace(gateway, NAMESPACE)

    def start(name: str, queue: str) -> None:
        body = gpu_pod(name, NAMESPACE, **{QUEUE: queue})
        gateway.create(PODS, body, namespace=NAMESPACE)

    def is_bound(name: str) -> bool:
        pod = gateway.get(PODS, name, as_type=Pod, namespace=NAMESPACE)
        return bool(pod.spec.node_name)

    def has_status(name: str) -> bool:
        return bool(gateway.get(QUEUES, name, as_type=Queue).status.conditions)

    try:
        with burst_of_queues(gateway) as created:
            wait_until(lambda: len(created) > 5, what="five queues", timeout_s=WAIT_S, stack=stack)
            start("known", created[0])
            # No queue of this name yet: its creation, one of many, has to start the pod.
            start("early", "burst-late")
            wait_until(lambda: is_bound("known"), what="a bound pod", timeout_s=WAIT_S, stack=stack)
            assert not is_bound("early")
            gateway.create(QUEUES, plain_queue("burst-late", ROOT))
            wait_until(
                lambda: is_bound("early"),
                what="a pod bound after its queue",
                timeout_s=WAIT_S,
                stack=stack,
            )
            last = created[-1]
            wait_until(
                lambda: has_status(last), what="a queue's status", timeout_s=WAIT_S, stack=stack
            )
    finally:
        _delete_queue(gateway, "burst-late")
        gateway.delete(NAMESPACES, NAMESPACE)

"""One request for each GET of the OpenAPI document, as the dashboard and pipelines send them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

import orjson
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from binder.models import BindRequest
from kaiweb.api import document
from kaiweb.models import ChangeSet, Simulation
from scheduler.models import EvictionRecord, SessionRecord
from tests.fakes.gateway import FakeGateway

NAMES = {
    "namespace": "ns-1",
    "root": "dept-1",
    "username": "bench",
    "node": "node-0001",
    "index": 7,
}
NAME_BELOW = {
    "queues": "team-1",
    "users": "bench",
    "workloads": "job-07601",
    "nodes": "node-0001",
    "topologies": "t",
}
QUERIES = {
    "waitForWorkload": "?for=explained",
    "waitForQueue": "?generation=0",
    "getQueuesHistory": "?queue=team-1,team-2,dept-1",
}
#: A stream does not end, health asks the processes, and these ask the cluster for one object.
LEFT_OUT = frozenset(
    {
        "streamEvents", "getHealth", "getTopology", "getQueueYaml", "getNodeYaml",
        "getWorkloadYaml", "listWorkloadEvents", "getWorkloadTimeline", "getShard", "getSnapshot",
    }
)  # fmt: skip
#: Further requests for lists: how they are filtered, sorted and counted.
MORE = (
    ("listWorkloads", "/api/v1/workloads?limit=1000"),
    ("listWorkloads", "/api/v1/workloads?count=exact&state=pending&sort=-createdAt"),
    ("listWorkloads", "/api/v1/workloads?queue=dept-1&subtree=true&sort=-gpu"),
    ("listWorkloads", "/api/v1/workloads?q=job-49999"),
    ("listQueues", "/api/v1/queues?limit=1000&count=exact"),
    ("listQueues", "/api/v1/queues?root=dept-1"),
    ("getUsage", "/api/v1/usage?by=owner&queue=root-1"),
)


def requests() -> Iterator[tuple[str, str]]:
    """Yield operation and address."""
    rows = {
        "sessions": SessionRecord.objects.order_by("-id").first(),
        "simulations": Simulation.objects.first(),
        "changes": ChangeSet.objects.first(),
        "evictions": EvictionRecord.objects.order_by("-id").first(),
    }
    ids: dict[str, object] = {kind: row.pk if row else 0 for kind, row in rows.items()}
    ids["operations"] = f"simulation-{ids['simulations']}"
    bind_request = BindRequest.objects.order_by("key").first()
    month = timezone.now().strftime("%Y-%m")
    for path, methods in orjson.loads(document.document().body)["paths"].items():
        operation = methods.get("get", {}).get("operationId")
        if operation is None or operation in LEFT_OUT:
            continue
        kind = path.split("/")[3]
        values = {**NAMES, "name": NAME_BELOW.get(kind, ""), "id": ids.get(kind, 0), "month": month}
        if kind == "bind-requests" and bind_request is not None:
            values |= {"namespace": bind_request.namespace, "name": bind_request.name}
        yield operation, path.format(**values) + QUERIES.get(operation, "")
    yield from MORE


@contextmanager
def client(cluster: FakeGateway) -> Iterator[Callable[[str], None]]:
    """Yield a function that sends a GET as a logged-in admin, to views that see this cluster."""
    browser = Client(headers={"host": "127.0.0.1"})
    browser.force_login(User.objects.get(username="bench"))

    def get(address: str) -> None:
        answer = browser.get(address)
        if answer.status_code not in (200, 202):
            print(f"{address}: {answer.status_code} {answer.content[:300]!r}", file=sys.stderr)

    modules = [
        module
        for name, module in tuple(sys.modules.items())
        if name.startswith("kaiweb.") and hasattr(module, "gateway")
    ]
    patches = [patch.object(module, "gateway", lambda: cluster) for module in modules]
    for patch_body in patches:
        patch_body.start()
    try:
        yield get
    finally:
        for patch_body in patches:
            patch_body.stop()

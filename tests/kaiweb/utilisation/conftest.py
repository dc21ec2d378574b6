"""A server on 127.0.0.1 that answers like Prometheus, and a mirror with pods on two nodes."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from kaiweb.utilisation import reader
from queues.models import Node, Pod, PodGroup, WorkloadState
from tests.fakes.gateway import FakeGateway

MIDNIGHT = datetime(2026, 11, 30, tzinfo=UTC)
UTIL, ENGINE = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"


def series(value: object, gpu: object = 0, *, node: str = "n1", **labels: object) -> dict[str, Any]:
    """One series as Prometheus writes it."""
    return {"metric": {"Hostname": node, "gpu": str(gpu), **labels}, "value": [1.0, str(value)]}


@dataclass
class Prometheus:
    """What it answers, by metric, and what it was asked."""

    address: str = ""
    answers: dict[str, list[Any]] = field(default_factory=dict)
    #: If set, the whole body for every query.
    body: bytes | None = None
    status: int = 200
    queries: list[str] = field(default_factory=list)
    authorizations: list[str | None] = field(default_factory=list)

    def answer(self, query: str) -> bytes:
        if self.body is not None:
            return self.body
        result = next((rows for metric, rows in self.answers.items() if metric in query), [])
        data = {"resultType": "vector", "result": result}
        return json.dumps({"status": "success", "data": data}).encode()


@pytest.fixture
def prometheus() -> Iterator[Prometheus]:
    state = Prometheus()

    class Api(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            assert parts.path == "/api/v1/query"
            query = parse_qs(parts.query)["query"][0]
            state.queries.append(query)
            state.authorizations.append(self.headers.get("Authorization"))
            body = state.answer(query)
            self.send_response(state.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    state.address = f"http://127.0.0.1:{server.server_address[1]}"
    yield state
    server.shutdown()
    thread.join()
    server.server_close()


def hold(name: str, gpus: float, devices: list[int], **columns: Any) -> PodGroup:
    """A workload of queue `team` that runs with one pod on n1."""
    group = PodGroup.objects.create(
        key=f"ns/{name}", namespace="ns", name=name, queue="team", user="ada", uid=f"uid-{name}",
        version=1, created_at=MIDNIGHT, gpu=gpus, allocated_gpu=gpus, state=WorkloadState.RUNNING,
    )  # fmt: skip
    pod(f"{name}-0", group=group.key, gpu=gpus, devices=devices, **columns)
    return group


def pod(name: str, **columns: Any) -> None:
    row: dict[str, Any] = {
        "namespace": "ns", "node": "n1", "phase": "Running", "gpu_kind": "whole",
        "uid": f"pod-{name}", "version": 1, "created_at": MIDNIGHT, **columns,
    }  # fmt: skip
    Pod.objects.create(key=f"{row['namespace']}/{name}", name=name, **row)


@pytest.fixture
def nodes(db: None) -> None:
    for name in ("n1", "n2"):
        Node.objects.create(
            name=name, model="NVIDIA-H100", gpus=4, gpus_healthy=4, uid=name, version=1,
            created_at=MIDNIGHT,
        )  # fmt: skip


@pytest.fixture
def read_at(nodes: None, prometheus: Prometheus, settings: Any) -> Callable[[float], int]:
    """Take a reading so many seconds after midnight."""
    settings.KAIWEB_PROMETHEUS_URL = prometheus.address

    def read(seconds: float) -> int:
        gateway = FakeGateway(now=MIDNIGHT)
        return reader.read(gateway, MIDNIGHT + timedelta(seconds=seconds))

    return read

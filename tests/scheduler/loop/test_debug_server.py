"""What a scheduling process tells over HTTP."""

from __future__ import annotations

import io
import json
import socket
import threading
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import pytest

from kube.resources import SHARDS
from scheduler.loop import debug_server
from scheduler.loop.debug_server import (
    PluginServer,
    Reply,
    Turns,
    metrics_page,
    plugin_pages,
    snapshot_page,
)
from tests.scheduler.load.objects import meta
from tests.scheduler.loop.harness import Harness
from tests.scheduler.loop.harness import harness as open_harness


@pytest.fixture
def harness() -> Iterator[Harness]:
    with open_harness() as opened:
        yield opened


TOKEN = "s3cret"


def get(port: int, path: str, token: str = TOKEN) -> tuple[int, bytes]:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=5) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def test_pages_of_a_shard(harness: Harness) -> None:
    spec = {"plugins": {"reflectjoborder": {"enabled": True}}}
    harness.seed(SHARDS, {"metadata": meta("default"), "spec": spec})
    harness.cluster(gpus=1).pending("a", gpus=2).pending("b").pending("late", queue="nowhere")
    harness.watch()
    harness.worker.is_ready()
    pages = {**plugin_pages(harness.worker), "/metrics": metrics_page}
    server = PluginServer("127.0.0.1", 0, pages, token=TOKEN)
    port = server.start()
    try:
        assert get(port, "/get-job-order") == (503, b"Job order data not ready")
        harness.cycle()
        status, body = get(port, "/get-job-order")
        entries = [{"id": "ns/a", "priority": 50}, {"id": "ns/b", "priority": 50}]
        assert (status, json.loads(body)) == (
            200,
            {"global_order": entries, "queue_order": {"q": entries}},
        )
        status, body = get(port, "/get-snapshot")
        saved = json.loads(zipfile.ZipFile(io.BytesIO(body)).read("snapshot.json"))
        assert (status, len(saved["rawObjects"]["podGroups"])) == (200, 3)
        status, body = get(port, "/metrics?x=1")
        lines = body.decode().splitlines()
        assert any(line.startswith("kai_e2e_scheduling_latency_milliseconds ") for line in lines)
        assert any(
            line.startswith('kai_queue_fair_share_gpu{queue_display_name="The queue"')
            for line in lines
        )
        assert any(line.startswith("kai_podgroups_scheduled_by_action{") for line in lines)
        assert get(port, "/other") == (404, b"plugin not found")
    finally:
        server.stop()


@contextmanager
def serving(token: str = TOKEN) -> Iterator[int]:
    pages = {"/secret": lambda: Reply(200, "text/plain", b"all"), "/metrics": metrics_page}
    server = PluginServer("127.0.0.1", 0, pages, token=token)
    port = server.start()
    try:
        yield port
    finally:
        server.stop()


def test_only_metrics_are_open_to_everybody_on_the_machine() -> None:
    with serving() as port:
        assert get(port, "/secret")[0] == 200
        assert get(port, "/secret", "")[0] == 401
        assert get(port, "/secret", "other")[0] == 401
        assert get(port, "/secret", "\u00e9")[0] == 401
        assert get(port, "/metrics", "")[0] == 200


def test_without_a_token_the_pages_are_off() -> None:
    with serving(token="") as port:
        assert get(port, "/secret", "")[0] == 403
        assert get(port, "/secret", "anything")[0] == 403
        assert get(port, "/metrics", "")[0] == 200


def test_snapshots_are_taken_one_at_a_time_and_after_a_pause(harness: Harness) -> None:
    turns = Turns(pause_s=60.0)
    page = snapshot_page(harness.worker, turns)
    with turns.take() as rest_s:
        assert rest_s == 0
        busy = page()
    assert (busy.status, busy.headers["Retry-After"]) == (429, "1")
    paused = page()
    assert paused.status == 429
    assert 55 <= int(paused.headers["Retry-After"]) <= 60
    assert snapshot_page(harness.worker, Turns())().status == 200


def test_a_snapshot_waits_for_the_end_of_the_cycle(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    in_cycle = threading.Event()
    goes_on = threading.Event()

    def cycle(fence: int) -> None:
        in_cycle.set()
        assert goes_on.wait(10)
        events.append("cycle")

    original = debug_server.read_objects

    def read(*args: Any) -> Any:
        events.append("read")
        return original(*args)

    monkeypatch.setattr(type(harness.worker.runner), "run", lambda _self, *, fence: cycle(fence))
    monkeypatch.setattr(debug_server, "read_objects", read)
    with ThreadPoolExecutor(2) as pool:
        running = pool.submit(harness.worker.cycle)
        assert in_cycle.wait(10)
        snapshot = pool.submit(snapshot_page(harness.worker, Turns()))
        threading.Timer(0.1, goes_on.set).start()
        running.result(10)
        assert snapshot.result(10).status == 200
    assert events == ["cycle", "read"]


def test_silent_connections_beyond_a_few_are_closed_and_then_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(debug_server, "MAX_CONNECTIONS", 2)
    monkeypatch.setattr(debug_server, "SILENCE_S", 0.3)
    with serving() as port, ExitStack() as stack:
        silent = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in "abc"]
        for connection in silent:
            connection.settimeout(5)
            assert connection.recv(1) == b""
        # A place is free a moment after its connection was closed.
        for _ in range(100):
            with suppress(OSError):
                assert get(port, "/metrics")[0] == 200
                return
            time.sleep(0.02)
        pytest.fail("no place is free again")

"""What a scheduling process tells over HTTP."""

from __future__ import annotations

import io
import json
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator

import pytest

from kube.resources import SHARDS
from scheduler.plugin_server import PluginServer, metrics_page, plugin_pages
from tests.scheduler.rig import Rig
from tests.scheduler.rig import rig as open_rig
from tests.scheduler.snapshot.objects import meta


@pytest.fixture
def rig() -> Iterator[Rig]:
    with open_rig() as made:
        yield made


def get(port: int, path: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def test_pages_of_a_shard(rig: Rig) -> None:
    spec = {"plugins": {"reflectjoborder": {"enabled": True}}}
    rig.seed(SHARDS, {"metadata": meta("default"), "spec": spec})
    rig.cluster(gpus=1).pending("a", gpus=2).pending("b").pending("late", queue="nowhere")
    rig.watch()
    rig.worker._reconfigure()
    server = PluginServer("127.0.0.1", 0, {**plugin_pages(rig.worker), "/metrics": metrics_page})
    port = server.start()
    try:
        assert get(port, "/get-job-order") == (503, b"Job order data not ready")
        rig.cycle()
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

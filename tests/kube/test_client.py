"""The HTTP gateway against a scripted server: credentials, errors, streams."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from kube.client import HttpGateway, connect
from kube.errors import (
    ConflictError,
    GoneError,
    ServerError,
    TooManyRequestsError,
    UnauthorizedError,
)
from kube.gateway import EventType
from kube.link import Target
from kube.objects.cluster import ConfigMap
from kube.resources import CONFIGMAPS


class Script(BaseHTTPRequestHandler):
    """Answers from a list of (status, body); a list body is a watch stream of JSON lines."""

    protocol_version = "HTTP/1.1"
    answers: ClassVar[list[tuple[int, Any]]] = []
    seen: ClassVar[list[tuple[str, str, str]]] = []

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        self.rfile.read(length)
        self.seen.append((self.command, self.path, self.headers.get("Authorization", "")))
        status, body = self.answers.pop(0)
        if isinstance(body, list):
            data = b"".join(json.dumps(line).encode() + b"\n" for line in body)
        else:
            data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PATCH = do_DELETE = _answer

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[HttpGateway, Path]]:
    Script.answers, Script.seen = [], []
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Script)
    httpd.daemon_threads = True
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    kubeconfig = tmp_path / "kubeconfig"
    write_kubeconfig(kubeconfig, httpd.server_port, "old-token")
    gateway = connect(Target(kubeconfig=kubeconfig))
    yield gateway, kubeconfig
    gateway.close()
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def write_kubeconfig(path: Path, port: int, token: str) -> None:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }
    path.write_text(json.dumps(config))


def get(gateway: HttpGateway) -> ConfigMap:
    return gateway.get(CONFIGMAPS, "m", as_type=ConfigMap, namespace="ns")


def test_a_401_reloads_the_token_once(server: tuple[HttpGateway, Path]) -> None:
    gateway, kubeconfig = server
    Script.answers = [(200, {"data": {"a": "1"}}), (401, {}), (200, {"data": {"a": "2"}})]
    assert get(gateway).data == {"a": "1"}
    port = int(json.loads(kubeconfig.read_text())["clusters"][0]["cluster"]["server"].split(":")[2])
    write_kubeconfig(kubeconfig, port, "new-token")
    assert get(gateway).data == {"a": "2"}
    assert [entry[2] for entry in Script.seen] == [
        "Bearer old-token",
        "Bearer old-token",
        "Bearer new-token",
    ]


def test_a_second_401_raises_unauthorized(server: tuple[HttpGateway, Path]) -> None:
    gateway, _ = server
    Script.answers = [(401, {}), (401, {"message": "Unauthorized", "reason": "Unauthorized"})]
    with pytest.raises(UnauthorizedError, match="401 Unauthorized"):
        get(gateway)


def test_each_refusal_raises_the_error_class_of_its_status(
    server: tuple[HttpGateway, Path],
) -> None:
    gateway, _ = server
    Script.answers = [
        (409, {"reason": "Conflict", "message": "modified"}),
        (429, {"details": {"retryAfterSeconds": 7}}),
        (500, {"message": "etcd is away"}),
    ]
    with pytest.raises(ConflictError, match="modified"):
        get(gateway)
    with pytest.raises(TooManyRequestsError) as throttled:
        get(gateway)
    assert throttled.value.retry_after_s == 7
    with pytest.raises(ServerError, match="etcd is away") as server_error:
        get(gateway)
    assert server_error.value.status == 500


def test_watch_ends_with_the_stream_and_410_is_gone(server: tuple[HttpGateway, Path]) -> None:
    gateway, _ = server
    lines = [
        {"type": "ADDED", "object": {"metadata": {"name": "a", "resourceVersion": "7"}}},
        {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}}},
    ]
    gone = {"type": "ERROR", "object": {"code": 410, "reason": "Expired", "message": "too old"}}
    Script.answers = [(200, lines), (200, [gone])]
    events = list(gateway.watch(CONFIGMAPS, as_type=ConfigMap, resource_version="5"))
    assert [(event.type, event.resource_version) for event in events] == [
        (EventType.ADDED, "7"),
        (EventType.BOOKMARK, "9"),
    ]
    with pytest.raises(GoneError, match="too old"):
        next(gateway.watch(CONFIGMAPS, as_type=ConfigMap, resource_version="5"))
    assert "resourceVersion=5" in Script.seen[0][1]


def test_null_lists_and_maps_are_read_as_empty(server: tuple[HttpGateway, Path]) -> None:
    gateway, _ = server
    Script.answers = [(200, {"metadata": {"name": "m", "labels": None}, "data": None})]
    assert get(gateway).data == {}


def test_a_missing_kubeconfig_is_named_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match=r"no usable cluster configuration.*nowhere"):
        get(connect(tmp_path / "nowhere"))


def test_a_watch_that_falls_silent_is_given_up_before_its_announced_end(
    server: tuple[HttpGateway, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway, _home = server
    released = threading.Event()

    def answer_nothing_more(handler: Script) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        released.wait(30)

    monkeypatch.setattr(Script, "do_GET", answer_nothing_more)
    monkeypatch.setattr("kube.client.WATCH_SILENCE_S", 0.2)
    stream = gateway.watch(CONFIGMAPS, as_type=ConfigMap, resource_version="1", timeout_s=300)
    try:
        with pytest.raises(ServerError, match="timed out"):
            next(stream)
    finally:
        released.set()

"""How an address of Prometheus is read: it may be named by people who may not reach everything we reach."""

from __future__ import annotations

import threading
import urllib.error
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from scheduler.load import usage
from scheduler.load.usage import UsageError, http_get


class Pages(BaseHTTPRequestHandler):
    """`/ok`, a redirect to it, and an answer that never ends."""

    def do_GET(self) -> None:
        if self.path == "/redirect":
            self.send_response(302)
            self.send_header("Location", "/ok")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.end_headers()
        if self.path == "/ok":
            self.wfile.write(b"fine")
            return
        try:
            while not self.server.is_over.wait(0.005):  # type: ignore[attr-defined]
                self.wfile.write(b"x" * 1000)
        except OSError:
            return

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    server.is_over = threading.Event()  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.is_over.set()  # type: ignore[attr-defined]
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_answer_is_read(address: str) -> None:
    assert http_get(f"{address}/ok", 5.0) == b"fine"


def test_no_redirect_is_followed(address: str) -> None:
    with pytest.raises(urllib.error.HTTPError, match="302") as refusal:
        http_get(f"{address}/redirect", 5.0)
    refusal.value.close()


def test_an_answer_that_is_too_long_is_cut_off(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "MAX_ANSWER", 5000)
    with pytest.raises(OSError, match="expected an answer of at most 5000 bytes, got more"):
        http_get(f"{address}/endless", 60.0)


def test_an_answer_that_takes_too_long_is_cut_off(address: str) -> None:
    with pytest.raises(TimeoutError, match=r"the answer was not complete after 0\.3 s"):
        http_get(f"{address}/endless", 0.3)


@pytest.mark.parametrize("other", ["ftp://127.0.0.1/x", "file:///etc/hostname", "data:,x"])
def test_only_http_is_spoken(other: str) -> None:
    with pytest.raises(UsageError, match="expected an http"):
        http_get(other, 1.0)

"""Requests to receivers: signed, bounded in time, to public addresses only, without redirects."""

from __future__ import annotations

import base64
import hmac
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

from kaiweb.notifications import addresses, signing, transport
from kaiweb.notifications.transport import Message
from kaiweb.settings import env

SECRET = "whsec_" + base64.b64encode(b"k" * 24).decode()
HERE = ["127.0.0.0/8"]


class _Receiver(BaseHTTPRequestHandler):
    got: ClassVar[list[tuple[str, dict[str, str], bytes]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.got.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        if self.path == "/slow":
            time.sleep(1)
        self.send_response({"/moved": 302, "/broken": 500}.get(self.path, 204))
        if self.path == "/moved":
            self.send_header("Location", "/elsewhere")
        self.end_headers()

    def log_message(self, *_args: object) -> None:
        """Print nothing."""


@pytest.fixture
def receiver() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    _Receiver.got.clear()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def post(*urls: str, allowed: list[str]) -> list[Any]:
    return transport.post_all([Message(url, '{"a":1}', {}) for url in urls], allowed)


def test_statuses_tell_what_arrived_and_redirects_are_not_followed(receiver: str) -> None:
    arrived, moved, broken = post(
        f"{receiver}/", f"{receiver}/moved", f"{receiver}/broken", allowed=HERE
    )
    assert (arrived.status, arrived.error) == (204, "")
    assert moved.status == 302
    assert "not followed" in moved.error
    assert (broken.status, broken.error) == (500, "answered 500")
    assert sorted(path for path, *_rest in _Receiver.got) == ["/", "/broken", "/moved"]


def test_a_receiver_that_does_not_answer_is_given_up(
    receiver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "TOTAL_S", 0.3)
    [slow] = post(f"{receiver}/slow", allowed=HERE)
    assert slow.error == "no answer within 0.3 s"


def test_a_name_server_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def getaddrinfo(*_args: object, **_options: object) -> list[Any]:
        time.sleep(2)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(transport, "TOTAL_S", 0.3)
    start = time.monotonic()
    [slow] = post("https://hooks.example/", allowed=[])
    assert slow.error == "no answer within 0.3 s"
    assert time.monotonic() - start < 1.5


def test_private_addresses_are_refused_also_behind_a_name(receiver: str) -> None:
    port = receiver.rpartition(":")[2]
    by_address, by_name = post(f"{receiver}/", f"http://localhost:{port}/", allowed=[])
    for outcome in (by_address, by_name):
        assert "private address; KAIWEB_NOTIFY_NETWORKS" in outcome.error
    assert _Receiver.got == []


def test_a_receiver_can_verify_who_sent_the_message() -> None:
    lines = signing.headers("msg_1", 1_700_000_000, "{}", signing.encrypted(SECRET))
    digest = hmac.digest(b"k" * 24, b"msg_1.1700000000.{}", "sha256")
    assert lines["webhook-signature"] == "v1," + base64.b64encode(digest).decode()
    assert "webhook-signature" not in signing.headers("msg_1", 1, "{}", "")


def test_a_secret_of_another_installation_cannot_be_read(settings: Any) -> None:
    stored = signing.encrypted(SECRET)
    assert SECRET not in stored
    settings.SECRET_KEY = "another"
    with pytest.raises(signing.LostSecretError, match="set it again"):
        signing.decrypted(stored)


@pytest.mark.parametrize(
    "host",
    [
        "10.0.0.1", "127.0.0.1", "169.254.169.254", "192.168.1.1", "172.16.0.1", "100.64.0.1",
        "0.0.0.0", "224.0.0.1", "::1", "::", "fe80::1", "fd00::1", "::ffff:10.0.0.1",
        "64:ff9b::a00:1", "2002:a00:1::",
    ],
)  # fmt: skip
def test_which_addresses_are_private(host: str) -> None:
    with pytest.raises(addresses.RefusedAddressError):
        addresses.refuse_private(host, [])


def test_public_addresses_and_allowed_networks_may_be_reached() -> None:
    for host in ("1.1.1.1", "2606:4700:4700::1111", "64:ff9b::101:101"):
        addresses.refuse_private(host, [])
    addresses.refuse_private("10.1.2.3", ["10.1.0.0/16"])
    addresses.refuse_private("::ffff:10.1.2.3", ["10.1.0.0/16"])


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("ftp://hooks.example", "https://"),
        ("https://", "https://"),
        ("https://me:pw@hooks.example/", "no user name"),
        ("https://hooks.example/a b", "without spaces"),
        ("https://[::1", "expected a URL"),
        ("http://169.254.169.254/latest", "private address"),
        ("https://hooks.example/x", ""),
    ],
)
def test_faults_of_a_url(url: str, fault: str) -> None:
    text = addresses.url_fault(url, [])
    assert (fault in text) if fault else text == ""


def test_the_setting_names_networks() -> None:
    values = {"N": "10.0.0.0/8, 192.168.1.7"}
    assert env.networks("N", env=values) == ["10.0.0.0/8", "192.168.1.7"]
    with pytest.raises(env.EnvError, match="got '10'"):
        env.networks("N", env={"N": "10"})

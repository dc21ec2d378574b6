"""Webhooks that are missing, unreachable, or whose certificates end."""

from __future__ import annotations

import base64
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kaiweb.doctor.webhooks import (
    Address,
    UnresolvedError,
    address_of,
    check_order,
    check_webhooks,
    examine,
    handshake,
)
from queues.admission.install.certificates import ensure_certificates
from queues.admission.install.registration import (
    MUTATING,
    POD_MUTATION,
    Registration,
    UrlTarget,
    configurations,
    install,
)
from tests.fakes.gateway import FakeGateway
from tests.kaiweb.doctor.cluster import NOW, body, lines

HERE = Address(host="127.0.0.1", port=9443)


@contextmanager
def serving(certificate: Path, key: Path) -> Iterator[int]:
    """Answer one TLS handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            plain, _ = server.accept()
            try:
                with context.wrap_socket(plain, server_side=True) as link:
                    link.recv(1)
            except OSError:
                plain.close()

        thread = threading.Thread(target=answer)
        thread.start()
        yield server.getsockname()[1]
        thread.join(5)


def test_a_webhook_that_the_bundle_vouches_for_is_reached(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    issued = ensure_certificates(tmp_path, ["127.0.0.1"], now)
    with serving(issued.certificate, issued.key) as port:
        end = handshake(Address(host="127.0.0.1", port=port), issued.bundle.decode())
    assert timedelta(days=89) < end - now < timedelta(days=91)


def test_a_webhook_of_another_authority_is_not_trusted(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    ours = ensure_certificates(tmp_path / "a", ["127.0.0.1"], now)
    other = ensure_certificates(tmp_path / "b", ["127.0.0.1"], now)
    with serving(ours.certificate, ours.key) as port, pytest.raises(ssl.SSLError):
        handshake(Address(host="127.0.0.1", port=port), other.bundle.decode())


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (NOW + timedelta(days=60), ""),
        (NOW + timedelta(days=3), "fault: its certificate ends on 2026-03-04"),
        (ConnectionRefusedError("refused"), "fault: does not answer: refused."),
        (UnresolvedError("unknown"), "note: is a Service, which cannot be reached from here"),
    ],
)
def test_an_address_is_judged_by_its_answer(answer: datetime | OSError, text: str) -> None:
    def connect(_address: Address, _bundle: str) -> datetime:
        if isinstance(answer, OSError):
            raise answer
        return answer

    results = [f"{item.severity}: {item.text}" for item in examine("hook", HERE, "", NOW, connect)]
    assert [line[: len(text)] for line in results] == ([text] if text else [])


def test_an_authority_that_ends_and_a_bundle_that_is_none_are_faults(tmp_path: Path) -> None:
    bundle = ensure_certificates(tmp_path, ["127.0.0.1"], NOW).bundle.decode()
    later = NOW + timedelta(days=3645)

    def connect(_address: Address, _bundle: str) -> datetime:
        return later + timedelta(days=60)

    (ends,) = examine("hook", HERE, bundle, later, connect)
    assert ends.text == "its authority ends on 2036-02-27"
    (unreadable,) = examine("hook", HERE, "unreadable", NOW, connect)
    assert "its CA bundle cannot be read" in unreadable.text


def test_an_address_is_that_of_the_service_or_the_url() -> None:
    service = {"service": {"name": "admission", "namespace": "gpu", "port": 443}}
    assert address_of(service) == Address(host="admission.gpu.svc", port=443)
    assert address_of({"url": "https://127.0.0.1:9443/mutate"}) == HERE


def test_webhooks_that_are_not_registered_are_named() -> None:
    assert [line.split(":")[1] for line in lines(check_webhooks, FakeGateway())] == [
        " webhook mutating-kai-admission",
        " webhook validating-kai-admission",
        " webhook kai-queue-validation-v2",
        " webhook kai-podgroup-validation-v2alpha2",
    ]


def test_each_address_of_our_webhooks_is_tried_once() -> None:
    gateway = FakeGateway()
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    install(gateway, Registration(target=UrlTarget(base=f"https://127.0.0.1:{port}"), bundle=b""))
    (line,) = lines(check_webhooks, gateway)
    assert line.startswith("fault: webhook mutating-kai-admission at 127.0.0.1")
    assert len(configurations(Registration(target=UrlTarget(base=""), bundle=b""))) == 4


def test_other_webhooks_of_pods_are_named_by_their_order() -> None:
    pods = [{"apiGroups": [""], "resources": ["pods"], "operations": ["CREATE"]}]
    jobs = [{"apiGroups": ["batch"], "resources": ["jobs"], "operations": ["CREATE"]}]
    client = {"url": "https://other", "caBundle": base64.b64encode(b"x").decode()}
    gateway = FakeGateway()
    for name, rules in (
        ("a-first", pods), (POD_MUTATION, pods), ("z-last", pods), ("z-of-jobs", jobs)
    ):  # fmt: skip
        hooks = [{"name": f"{name}.example.com", "rules": rules, "clientConfig": client}]
        gateway.seed(MUTATING, body(MUTATING, name, webhooks=hooks))
    assert lines(check_order, gateway) == [
        "note: webhook a-first: a-first.example.com sees pods before ours has added volumes and variables"
        " for parts of GPUs",
        "note: webhook z-last: z-last.example.com changes pods after ours, which is asked again",
    ]

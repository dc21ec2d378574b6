"""Unauthenticated clients get cheap answers, no metrics, and only known host names."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import uvicorn
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from drf_spectacular.generators import SchemaGenerator

from kaiweb.api import document
from kaiweb.management.commands import serve
from queues.access import tokens
from queues.access.http_guard import GuardedProtocol
from queues.admission.server.withdrawal import AdmissionWithdrawal
from tests.fakes.gateway import FakeGateway

OPENAPI = "/api/v1/openapi.json"


def test_the_openapi_document_is_generated_once_under_concurrent_first_calls(
    monkeypatch: pytest.MonkeyPatch, db: None
) -> None:
    starts = threading.Barrier(4)
    generated: list[object] = []
    original = SchemaGenerator.get_schema

    def counted(self: SchemaGenerator, *args: Any, **kwargs: Any) -> Any:
        generated.append(self)
        return original(self, *args, **kwargs)

    def first_call(_number: int) -> tuple[int, bytes]:
        starts.wait(10)
        response = Client().get(OPENAPI)
        return response.status_code, response.content

    monkeypatch.setattr(SchemaGenerator, "get_schema", counted)
    monkeypatch.setattr(document, "_document", None)
    with ThreadPoolExecutor(4) as pool:
        answers = set(pool.map(first_call, range(4)))
    assert len(generated) == 1
    assert [status for status, _body in answers] == [200]


def test_the_openapi_document_may_be_kept_and_asked_for_by_tag() -> None:
    response = Client().get(OPENAPI)
    assert (response["Cache-Control"], response["Content-Type"]) == (
        "public, max-age=300", "application/vnd.oai.openapi+json",
    )  # fmt: skip
    again = Client().get(OPENAPI, headers={"If-None-Match": response["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_answers_of_the_api_belong_to_the_caller(db: None) -> None:
    response = Client().get("/api/v1/queues")
    assert response.status_code == 401
    assert response["Cache-Control"] == "no-store"
    names = {name.strip() for name in response["Vary"].split(",")}
    assert {"Accept", "Authorization", "Cookie"} <= names


@pytest.mark.parametrize(
    ("address", "headers", "status"),
    [
        ("127.0.0.1", {}, 200),
        ("::1", {}, 200),
        ("192.0.2.1", {}, 401),
        ("127.0.0.1", {"X-Forwarded-For": "192.0.2.1"}, 401),
        ("", {}, 401),
    ],
)
def test_without_a_token_only_this_machine_may_scrape(
    db: None, address: str, headers: dict[str, str], status: int
) -> None:
    response = Client(REMOTE_ADDR=address).get("/metrics", headers=headers)
    assert response.status_code == status


@pytest.mark.parametrize(
    ("header", "status"),
    [("Bearer s3cret", 200), ("Bearer other", 401), ("Bearer é", 401), ("", 401)],
)
def test_with_a_token_every_scrape_needs_it(
    db: None, settings: Any, header: str, status: int
) -> None:
    settings.KAIWEB_METRICS_TOKEN = "s3cret"
    response = Client().get("/metrics", headers={"Authorization": header} if header else {})
    assert response.status_code == status


def test_an_unknown_host_gets_a_problem_and_one_log_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = Client(HTTP_HOST="evil.example" + "x" * 2000)
    with caplog.at_level(logging.INFO):
        answers = [client.get("/api/v1/queues") for _ in range(20)]
    assert {answer.status_code for answer in answers} == {400}
    assert answers[0]["Content-Type"] == "application/problem+json"
    assert answers[0].json()["type"] == "https://kaiweb.dev/problems/bad-request"
    lines = [record.getMessage() for record in caplog.records]
    assert [len(line) < 150 for line in lines] == [True]
    page = client.get("/login")
    assert (page.status_code, page["Content-Type"]) == (400, "text/plain")


def test_only_our_own_live_socket_may_be_opened_by_pages(settings: Any, db: None) -> None:
    policy = Client().get("/login")["Content-Security-Policy"]
    assert "connect-src 'self' ws://testserver;" in policy
    policy = Client().get("/login", secure=True)["Content-Security-Policy"]
    assert "connect-src 'self' wss://testserver;" in policy


def test_a_wrong_token_costs_one_look_up(django_assert_num_queries: Any, db: None) -> None:
    user = User.objects.create(username="ada")
    tokens.issue_ticket(user=user, token=None, now=user.date_joined)
    with django_assert_num_queries(1):
        response = Client().get("/api/v1/queues", headers={"Authorization": "Bearer kw_wrong"})
    assert response.status_code == 401


def test_serve_bounds_connections_and_believes_no_forwarded_address(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    calls: list[uvicorn.Config] = []

    class Served(serve.Server):
        """Starts and ends at once."""

        def run(self, *_args: Any) -> None:
            calls.append(self.config)
            self.started = True

    monkeypatch.setattr(serve, "admission_server", lambda: AdmissionWithdrawal(FakeGateway()))
    monkeypatch.setattr(serve, "raise_file_limit", lambda: 1024)
    monkeypatch.setattr(serve, "Server", Served)
    call_command("serve")
    settings.KAIWEB_TRUSTED_PROXIES = ["192.0.2.1"]
    call_command("serve")
    protocol = calls[0].http
    assert isinstance(protocol, type)
    assert issubclass(protocol, GuardedProtocol)
    assert (protocol.guard.limits.total, protocol.guard.limits.per_address) == (624, 500)
    assert [config.proxy_headers for config in calls] == [False, True]
    assert calls[1].forwarded_allow_ips == ["192.0.2.1"]


def test_production_settings_pass_the_deployment_check() -> None:
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "kaiweb.settings.production",
        "KAIWEB_SECRET_KEY": "".join(map(chr, range(40, 120))),
        "DATABASE_URL": "sqlite:///unused.sqlite3",
        "REDIS_URL": "redis://127.0.0.1:1/0",
        "KAIWEB_HOSTS": "kaiweb.example",
    }
    check = subprocess.run(
        [sys.executable, "-m", "django", "check", "--deploy", "--fail-level=WARNING"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (check.returncode, check.stderr) == (0, "")

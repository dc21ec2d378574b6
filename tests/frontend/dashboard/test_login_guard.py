"""Wrong passwords are throttled, and a flood of them does not delay other log-ins."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from asgiref.testing import ApplicationCommunicator
from django.contrib.auth.models import User
from django.core.cache import caches
from django.core.handlers.asgi import ASGIHandler
from django.test import Client

from frontend.dashboard import login_guard
from frontend.dashboard.login_guard import (
    ADDRESS_FAILURES,
    PAIR_FAILURES,
    WINDOW_S,
    HashSlots,
    LoginAttempt,
)

HERE, THERE = "192.0.2.1", "192.0.2.2"
PASSWORD = "a-long-password"


@pytest.fixture(autouse=True)
def _no_failures_yet() -> Iterator[None]:
    caches["login"].clear()
    yield
    caches["login"].clear()


@pytest.fixture
def user(db: None) -> User:
    return User.objects.create_user("ada", password=PASSWORD)


def log_in(name: str, password: str, address: str = HERE) -> Any:
    return Client(REMOTE_ADDR=address).post("/login", {"username": name, "password": password})


def test_forty_wrong_passwords_are_throttled_and_keep_nobody_out_elsewhere(user: User) -> None:
    statuses = [log_in("ada", "wrong").status_code for _ in range(40)]
    assert statuses == [200] * PAIR_FAILURES + [429] * (40 - PAIR_FAILURES)
    refused = log_in("ada", PASSWORD)
    assert refused.status_code == 429
    assert refused.headers["RateLimit-Policy"] == '"failures";q=5;w=300;qu="failed-log-ins"'
    assert refused.headers["RateLimit"] == f'"failures";r=0;t={refused.headers["Retry-After"]}'
    assert log_in("ada", PASSWORD, THERE).status_code == 302


def test_a_locked_answer_says_when_to_try_again(user: User) -> None:
    for _ in range(PAIR_FAILURES):
        log_in("ada", "wrong")
    response = log_in("ada", PASSWORD)
    assert WINDOW_S - 30 <= int(response["Retry-After"]) <= WINDOW_S
    assert (
        b"Too many failed attempts from your address. Try again in 5 minutes." in response.content
    )
    assert b'value="ada"' in response.content


def test_the_lock_ends_with_its_window(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(PAIR_FAILURES):
        log_in("ada", "wrong")
    later = time.time() + WINDOW_S + 1
    monkeypatch.setattr(time, "time", lambda: later)
    assert log_in("ada", PASSWORD).status_code == 302


def test_success_forgets_the_failures_of_the_pair_but_not_those_of_the_address(user: User) -> None:
    for _ in range(PAIR_FAILURES - 1):
        log_in("ada", "wrong")
    assert log_in("ada", PASSWORD).status_code == 302
    for _ in range(PAIR_FAILURES - 1):
        assert log_in("ada", "wrong").status_code == 200
    _pair, (address, _allowed) = LoginAttempt("ada", HERE).limits
    assert caches["login"].get(address) == 2 * (PAIR_FAILURES - 1)


def test_an_address_that_tries_many_names_is_locked_for_all_of_them(user: User) -> None:
    for number in range(ADDRESS_FAILURES):
        assert log_in(f"user-{number}", "wrong").status_code == 200
    assert log_in("ada", PASSWORD).status_code == 429
    assert log_in("ada", PASSWORD, THERE).status_code == 302


def test_addresses_of_one_ipv6_network_are_one() -> None:
    near, far = LoginAttempt("ada", "2001:db8::1"), LoginAttempt("ada", "2001:db8:0:1::1")
    assert near.limits == LoginAttempt("ada ", "2001:db8::ffff").limits
    assert near.limits != far.limits


def test_failures_are_logged_with_a_clipped_name(
    user: User, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger=login_guard.__name__):
        for _ in range(PAIR_FAILURES + 3):
            log_in("x\ny" + "z" * 500, "wrong")
    lines = [
        (record.getMessage(), vars(record)["user"], vars(record)["address"])
        for record in caplog.records
    ]
    name = "'x\\ny" + "z" * 61 + "'"
    assert lines == [
        *[("log-in failed", name, HERE)] * PAIR_FAILURES,
        ("log-in locked for this pair", name, HERE),
    ]


def test_an_address_checks_one_password_at_a_time_and_others_still_find_a_place() -> None:
    slots = HashSlots(total=2)
    here, there = LoginAttempt("ada", HERE), LoginAttempt("ada", THERE)
    with slots.take(here) as first, slots.take(here) as second, slots.take(there) as other:
        assert (first, second, other) == (True, False, True)
        with slots.take(LoginAttempt("ada", "192.0.2.3")) as third:
            assert third is False
    with slots.take(here) as again:
        assert again is True


@pytest.mark.django_db(transaction=True)
async def test_while_passwords_are_checked_other_attempts_and_requests_are_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    goes_on, checking = threading.Event(), threading.Semaphore(0)

    def slow_check(request: object, **credentials: object) -> None:
        checking.release()
        assert goes_on.wait(60)

    monkeypatch.setattr("django.contrib.auth.forms.authenticate", slow_check)
    application = ASGIHandler()
    try:
        attempts = [
            asyncio.create_task(_status(application, "POST", "/login", f"192.0.2.{number % 8}"))
            for number in range(64)
        ]
        while len([attempt for attempt in attempts if attempt.done()]) < 62:
            await asyncio.wait(
                [attempt for attempt in attempts if not attempt.done()],
                return_when="FIRST_COMPLETED",
            )
        assert [attempt.result() for attempt in attempts if attempt.done()] == [429] * 62
        # Two passwords are still being checked.
        assert [checking.acquire(timeout=5) for _ in range(2)] == [True, True]
        assert await _status(application, "GET", "/login", THERE) == 200
        assert await _status(application, "GET", "/api/v1/queues", THERE) == 401
    finally:
        goes_on.set()
    assert sorted(await asyncio.gather(*attempts)) == [200] * 2 + [429] * 62


async def _status(application: Any, method: str, path: str, address: str) -> int:
    body = urlencode({"username": "ada", "password": "wrong", "csrfmiddlewaretoken": "a" * 32})
    headers = [
        (b"host", b"testserver"),
        (b"content-type", b"application/x-www-form-urlencoded"),
        (b"content-length", str(len(body)).encode()),
        (b"cookie", b"csrftoken=" + b"a" * 32),
    ]
    scope = {
        "type": "http", "method": method, "path": path, "query_string": b"", "headers": headers,
        "client": (address, 1), "server": ("testserver", 80), "scheme": "http",
    }  # fmt: skip
    exchange = ApplicationCommunicator(application, scope)
    await exchange.send_input({"type": "http.request", "body": body.encode()})
    start = await exchange.receive_output(timeout=60)
    await exchange.receive_output(timeout=60)
    await exchange.wait(60)
    return int(start["status"])

"""Tokens that may be used from some networks only, and the command that creates tokens."""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone
from rest_framework.test import APIClient

from kaiweb.live.access import authenticate
from queues.access import tokens
from queues.access.networks import may_be_used_from
from queues.models import ApiToken, QuotaChange
from tests.kaiweb.api.conftest import token_client

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("networks", "address", "is_allowed"),
    [
        ([], "", True),
        (["10.0.0.0/8"], "10.255.0.1", True),
        (["10.0.0.0/8"], "11.0.0.1", False),
        (["10.0.0.0/8"], "::ffff:10.0.0.1", True),
        (["10.0.0.0/8", "2001:db8::/32"], "2001:db8::7", True),
        (["2001:db8::/32"], "10.0.0.1", False),
        (["0.0.0.0/0"], "", False),
        (["0.0.0.0/0"], "unix:", False),
    ],
)
def test_which_addresses_are_in_the_networks(
    networks: list[str], address: str, is_allowed: bool
) -> None:
    assert may_be_used_from(networks, address) is is_allowed


def create(admin: User, networks: Any) -> Any:
    browser = APIClient()
    browser.force_login(admin)
    return browser.post("/api/v1/tokens", {"name": "ci", "networks": networks}, format="json")


def test_a_token_is_refused_elsewhere_and_a_header_does_not_help(admin: User) -> None:
    created = create(admin, ["10.0.0.0/8", "192.0.2.7"])
    assert created.json()["networks"] == ["10.0.0.0/8", "192.0.2.7/32"]
    script = APIClient()
    script.credentials(HTTP_AUTHORIZATION=f"Bearer {created.json()['token']}")
    for address in ("10.1.2.3", "192.0.2.7"):
        assert script.get("/api/v1/me", REMOTE_ADDR=address).status_code == 200
    # The server has put the address of the client there, from a trusted proxy or the connection.
    refused = script.get("/api/v1/me", REMOTE_ADDR="192.0.2.8", HTTP_X_FORWARDED_FOR="10.1.2.3")
    assert (refused.status_code, "192.0.2.8" in refused.json()["detail"]) == (403, True)
    assert ApiToken.objects.get().last_used_at is not None
    assert QuotaChange.objects.get().diff[0]["after"]["networks"] == ["10.0.0.0/8", "192.0.2.7/32"]


def test_a_ticket_of_such_a_token_opens_no_socket_from_elsewhere(admin: User) -> None:
    row, _secret = tokens.create(
        user=admin, name="t", scopes=["read"], subtree="", expires_at=None, now=timezone.now(),
        networks=["10.0.0.0/8"],
    )  # fmt: skip

    def opened_from(address: str) -> bool:
        ticket = tokens.issue_ticket(user=admin, token=row, now=timezone.now())
        scope = {
            "query_string": f"ticket={ticket}".encode(),
            "headers": [(b"host", b"testserver")],
            "client": (address, 4711),
        }
        return authenticate(scope) is not None

    assert (opened_from("10.1.2.3"), opened_from("192.0.2.8")) == (True, False)


@pytest.mark.parametrize(
    ("networks", "pointer"),
    [("10.0.0.0/8", "/networks"), (["10.0.0.1/8"], "/networks/0"), (["x"], "/networks/0"),
     ([7], "/networks/0"), (["10.0.0.0/8"] * 33, "/networks")],
)  # fmt: skip
def test_what_is_no_list_of_networks_is_refused(admin: User, networks: Any, pointer: str) -> None:
    answer = create(admin, networks)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer)


def test_a_token_without_networks_may_be_used_from_anywhere(admin: User) -> None:
    script = token_client(admin, ["read"])
    assert script.get("/api/v1/me", REMOTE_ADDR="203.0.113.9").status_code == 200


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("token", *arguments, stdout=out)
    return out.getvalue().strip()


def test_the_command_prints_the_secret_of_a_new_token(admin: User) -> None:
    secret = run("ada", "ci", "--scope", "read", "--scope", "simulate", "--network", "10.0.0.0/8", "--days", "7")  # fmt: skip
    row = ApiToken.objects.get()
    assert (row.scopes, row.networks) == (["read", "simulate"], ["10.0.0.0/8"])
    script = APIClient()
    script.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    assert script.get("/api/v1/me", REMOTE_ADDR="10.1.2.3").json()["username"] == "ada"
    assert QuotaChange.objects.get().reason == "the command `kaiweb token`"


@pytest.mark.parametrize(
    "arguments",
    [["nobody", "ci"], ["ada", "ci", "--network", "x"], ["ada", "ci", "--subtree", "none"],
     ["ada", "ci", "--days", "0"], ["ada", "ci", "--days", "4000"]],
)  # fmt: skip
def test_the_command_refuses_what_rest_refuses(admin: User, arguments: list[str]) -> None:
    with pytest.raises(CommandError):
        run(*arguments)
    assert not ApiToken.objects.exists()

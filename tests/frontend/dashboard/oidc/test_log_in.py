"""Log-in through an identity provider on 127.0.0.1: code flow, checks of the ID token, roles from groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from django.contrib.auth.models import User
from django.core.cache import cache, caches
from django.test import Client
from rest_framework.test import APIClient

from kaiweb.settings.oidc import BACKENDS, OIDC_BACKEND
from queues.models import ExternalIdentity, QuotaChange, RoleBinding
from tests.frontend.dashboard.oidc.provider import (
    CLIENT_ID,
    CLIENT_SECRET,
    Provider,
    running_provider,
)
from tests.kaiweb.api.conftest import token_client

pytestmark = pytest.mark.django_db
BEGIN, CALLBACK = "/login/oidc", "/login/oidc/callback"
RULES = (("gpu-admins", "admin", ""), ("physics", "editor", "physics"), ("staff", "viewer", ""))


@pytest.fixture
def provider(settings: Any) -> Iterator[Provider]:
    """A provider with the user emmy, who is in the group physics."""
    for store in (cache, caches["login"]):
        store.clear()
    with running_provider(
        preferred_username="emmy", name="Emmy Noether", groups=["physics", "other"]
    ) as served:
        settings.KAIWEB_OIDC_ISSUER = served.url
        settings.KAIWEB_OIDC_ROLES = RULES
        settings.KAIWEB_OIDC_NAME = "Example ID"
        settings.AUTHENTICATION_BACKENDS = [*BACKENDS, OIDC_BACKEND]
        settings.OIDC_RP_CLIENT_ID, settings.OIDC_RP_CLIENT_SECRET = CLIENT_ID, CLIENT_SECRET
        yield served


def log_in(provider: Provider, browser: Client, query: str = "") -> Any:
    begun = browser.get(BEGIN + query)
    assert begun.status_code == 302
    return browser.get(provider.authorize(begun["Location"]))


def roles(username: str) -> set[tuple[str, str, bool]]:
    rows = RoleBinding.objects.filter(user__username=username)
    return set(rows.values_list("role", "subtree", "is_provided"))


def test_the_log_in_page_offers_the_provider_only_if_there_is_one(provider: Provider) -> None:
    assert "Log in with Example ID" in Client().get("/login?next=/queues").content.decode()


def test_without_a_provider_there_is_neither_a_button_nor_an_address() -> None:
    assert "login-other" not in Client().get("/login").content.decode()
    assert (Client().get(BEGIN).status_code, Client().get(CALLBACK).status_code) == (404, 404)


def test_the_browser_is_sent_with_state_nonce_and_the_challenge_of_pkce(provider: Provider) -> None:
    address = urlsplit(Client().get(BEGIN)["Location"])
    query = {name: values[0] for name, values in parse_qs(address.query).items()}
    assert f"{address.scheme}://{address.netloc}{address.path}" == f"{provider.url}/authorize"
    assert query["redirect_uri"] == f"http://testserver{CALLBACK}"
    assert query["code_challenge_method"] == "S256"
    assert min(len(query["state"]), len(query["nonce"]), len(query["code_challenge"])) >= 32


def test_a_log_in_creates_the_user_with_the_roles_of_the_groups(provider: Provider) -> None:
    browser = Client()
    answer = log_in(provider, browser, "?next=/queues")
    assert (answer.status_code, answer["Location"]) == (302, "/queues")
    assert browser.get("/api/v1/me").json()["roles"] == [{"role": "editor", "subtree": "physics"}]
    user = User.objects.get()
    assert (user.username, user.get_full_name()) == ("emmy", "Emmy Noether")
    assert not user.has_usable_password()
    assert 0 < browser.session.get_expiry_age() <= 12 * 3600
    entries = QuotaChange.objects.values_list("kind", "action", "target", "actor")
    assert set(entries) == {
        ("user", "create", "emmy", "emmy"), ("roleBinding", "create", "emmy", "emmy"),
    }  # fmt: skip


def test_changed_groups_change_the_roles_and_those_of_an_admin_stay(provider: Provider) -> None:
    log_in(provider, Client())
    user = User.objects.get()
    RoleBinding.objects.create(user=user, role="editor", subtree="biology")
    provider.claims |= {"groups": ["gpu-admins"], "preferred_username": "renamed"}
    assert log_in(provider, Client()).status_code == 302
    assert roles("emmy") == {("admin", "", True), ("editor", "biology", False)}
    assert User.objects.count() == 1


def test_a_user_without_a_role_gets_a_readable_page_and_may_nothing(provider: Provider) -> None:
    provider.claims["groups"] = []
    browser = Client()
    answer = log_in(provider, browser)
    assert answer.status_code == 403
    assert "The account &#x27;emmy&#x27; has no role in kaiweb." in answer.content.decode()
    assert browser.get("/api/v1/me").status_code == 401
    RoleBinding.objects.create(user=User.objects.get(), role="viewer")
    assert log_in(provider, browser).status_code == 302


def test_who_has_lost_every_role_reads_nothing_with_an_old_token(provider: Provider) -> None:
    log_in(provider, Client())
    script: APIClient = token_client(User.objects.get(), ["read", "simulate"])
    assert script.get("/api/v1/queues").status_code == 200
    provider.claims["groups"] = []
    assert log_in(provider, Client()).status_code == 403
    assert script.get("/api/v1/queues").status_code == 403
    assert script.post("/api/v1/live/tickets").status_code == 403
    assert script.post("/api/v1/simulations", {}, format="json").status_code == 403


def test_a_locked_user_is_refused(provider: Provider) -> None:
    log_in(provider, Client())
    User.objects.update(is_active=False)
    answer = log_in(provider, Client())
    assert (answer.status_code, b"is locked" in answer.content) == (403, True)


def test_nobody_takes_over_a_local_account_by_its_name(provider: Provider) -> None:
    User.objects.create_superuser("emmy", password="a-long-password")
    answer = log_in(provider, Client())
    assert (answer.status_code, b"another account" in answer.content) == (403, True)
    assert not ExternalIdentity.objects.exists()


@pytest.mark.parametrize(
    "name", [None, "", 7, "a b", "x" * 151], ids=["none", "empty", "number", "blank", "long"]
)
def test_a_name_that_cannot_be_used_is_refused(provider: Provider, name: Any) -> None:
    provider.claims["preferred_username"] = name
    assert log_in(provider, Client()).status_code == 403
    assert not User.objects.exists()


@pytest.mark.parametrize(
    "wrong",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"aud": "another-client"},
        {"aud": None},
        {"aud": [CLIENT_ID, "x"], "azp": "x"},
        {"iss": "https://elsewhere.example"},
        {"exp": 1_700_000_000},
        {"exp": None},
        {"iat": 4_000_000_000},
        {"sub": "somebody-else"},
    ],
    ids=str,
)
def test_an_id_token_for_others_is_refused(provider: Provider, wrong: dict[str, Any]) -> None:
    provider.wrong = wrong
    browser = Client()
    assert log_in(provider, browser).status_code == 502
    assert browser.get("/api/v1/me").status_code == 401
    assert not User.objects.exists()


def test_an_id_token_signed_with_another_key_is_refused(provider: Provider) -> None:
    provider.signing_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    assert log_in(provider, Client()).status_code == 502


def test_a_state_that_was_not_given_to_this_browser_is_refused(provider: Provider) -> None:
    victim = Client()
    of_the_attacker = provider.authorize(Client().get(BEGIN)["Location"])
    assert victim.get(of_the_attacker).status_code == 403
    victim.get(BEGIN)
    assert victim.get(of_the_attacker).status_code == 403
    assert victim.get("/api/v1/me").status_code == 401


def test_a_code_counts_once(provider: Provider) -> None:
    browser = Client()
    address = provider.authorize(browser.get(BEGIN)["Location"])
    assert browser.get(address).status_code == 302
    assert browser.get(address).status_code == 403


def test_the_answer_that_the_user_did_not_agree_is_shown(provider: Provider) -> None:
    answer = Client().get(f"{CALLBACK}?error=access_denied&state=x")
    assert (answer.status_code, b"access_denied" in answer.content) == (403, True)


def test_a_next_address_elsewhere_is_ignored(provider: Provider) -> None:
    answer = log_in(provider, Client(), "?next=https://evil.example/")
    assert answer["Location"] == "/"


def test_a_provider_that_is_away_or_another_one_is_a_readable_page(provider: Provider) -> None:
    provider.issuer_in_document = "https://another.example"
    answer = Client().get(BEGIN)
    assert (answer.status_code, b"does not answer" in answer.content) == (502, True)


def test_many_failed_log_ins_from_one_address_are_refused(provider: Provider) -> None:
    browser = Client()
    for _ in range(5):
        browser.get(f"{CALLBACK}?error=x")
    refused = browser.get(BEGIN)
    assert (refused.status_code, "RateLimit" in refused.headers) == (429, True)


def test_the_log_in_with_a_password_never_asks_the_provider(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(*_args: Any, **_options: Any) -> None:
        raise AssertionError("the provider was asked")

    monkeypatch.setattr("requests.post", asked)
    form = {"username": "emmy", "password": "wrong"}
    assert Client().post("/login?state=a&code=b", form).status_code == 200


@pytest.fixture
def as_emmy(provider: Provider) -> Callable[[], Client]:
    def logged_in() -> Client:
        browser = Client()
        log_in(provider, browser)
        return browser

    return logged_in


def test_a_session_outlives_a_provider_that_is_away(
    as_emmy: Callable[[], Client], settings: Any
) -> None:
    browser = as_emmy()
    cache.clear()
    settings.KAIWEB_OIDC_ISSUER = "http://127.0.0.1:9"
    assert browser.get("/api/v1/me").status_code == 200

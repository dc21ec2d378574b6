"""The exchange of ID tokens of pipelines, against a CI system on 127.0.0.1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from django.contrib.auth.models import User
from django.core.cache import cache, caches
from django.utils import timezone
from rest_framework.test import APIClient

from kaiweb.settings.ci import CiRule
from kaiweb.tasks import trim_history
from queues.models import ApiToken, QuotaChange, Role, RoleBinding
from tests.kaiweb.api.pipelines.issuer import AUDIENCE, Issuer, running_issuer

pytestmark = pytest.mark.django_db
URL = "/api/v1/tokens:exchange"


@pytest.fixture
def issuer(settings: Any) -> Iterator[Issuer]:
    """A CI system whose pipelines of acme/quotas on main may edit below science, as far as `ci` may."""
    for store in (cache, caches["login"]):
        store.clear()
    user = User.objects.create_user("ci")
    RoleBinding.objects.create(user=user, role=Role.EDITOR, subtree="science")
    with running_issuer() as served:
        settings.KAIWEB_CI_RULES = (rule(served),)
        yield served


def rule(issuer: Issuer, **changed: Any) -> CiRule:
    base = CiRule(
        issuer=issuer.url,
        audience=AUDIENCE,
        claims=(("ref", ("refs/heads/main", "refs/tags/v*")), ("repository", ("acme/quotas",))),
        user="ci",
        scopes=("read", "queues:write"),
        subtree="science",
    )
    return replace(base, **changed)


def send(id_token: object, **more: Any) -> Any:
    return APIClient().post(URL, {"token": id_token}, format="json", **more)


def test_a_pipeline_gets_a_token_with_the_rights_of_its_rule_for_a_quarter_of_an_hour(
    issuer: Issuer,
) -> None:
    answer = send(issuer.id_token())
    assert (answer.status_code, answer["Cache-Control"]) == (201, "no-store")
    body = answer.json()
    assert (body["owner"], body["scopes"], body["subtree"]) == (
        "ci",
        ["queues:write", "read"],
        "science",
    )
    script = APIClient()
    script.credentials(HTTP_AUTHORIZATION=f"Bearer {body['token']}")
    me = script.get("/api/v1/me").json()
    assert (me["username"], me["kind"], me["isAdmin"]) == ("ci", "token", False)
    row = ApiToken.objects.get()
    assert row.expires_at is not None
    assert row.expires_at - row.created_at == timedelta(minutes=15)
    assert row.origin == f"{issuer.url} repo:acme/quotas:ref:refs/heads/main"
    entry = QuotaChange.objects.get()
    assert (entry.actor, entry.action, entry.queue) == ("ci", "create", "science")
    assert entry.diff[0]["after"]["origin"] == row.origin


@pytest.mark.parametrize(
    "changed",
    [{"ref": "refs/heads/feature"}, {"ref": "refs/heads/main/x"}, {"repository": "evil/quotas"},
     {"repository": None}, {"repository": "acme/quotas2"}, {"ref": ["refs/heads/x"]}],
    ids=str,
)  # fmt: skip
def test_a_pipeline_that_no_rule_is_for_gets_nothing(issuer: Issuer, changed: Any) -> None:
    answer = send(issuer.id_token(**changed))
    assert (answer.status_code, ApiToken.objects.exists()) == (403, False)


@pytest.mark.parametrize(
    "changed",
    [{"aud": "https://another.example"}, {"aud": None}, {"exp": 1_700_000_000}, {"exp": None},
     {"iss": "https://token.example"}, {"iat": 4_000_000_000}, {"sub": None}, {"nbf": 4_000_000_000}],
    ids=str,
)  # fmt: skip
def test_an_id_token_for_others_or_of_another_time_is_refused(issuer: Issuer, changed: Any) -> None:
    answer = send(issuer.id_token(**changed))
    assert (answer.status_code, ApiToken.objects.exists()) == (401, False)


def test_an_id_token_signed_with_another_key_is_refused(issuer: Issuer) -> None:
    assert send(issuer.id_token(key=ec.generate_private_key(ec.SECP256R1()))).status_code == 401
    unsigned = "eyJhbGciOiJub25lIiwia2lkIjoiazEifQ." + issuer.id_token().split(".")[1] + "."
    assert send(unsigned).status_code == 401


@pytest.mark.parametrize("body", [None, 7, "", "x", "a.b.c", "x" * 20_000, ["a"]])
def test_what_is_no_token_is_refused(issuer: Issuer, body: object) -> None:
    assert send(body).status_code in (401, 422)


def test_a_rule_may_fit_by_a_pattern_and_by_one_of_several_audiences(issuer: Issuer) -> None:
    id_token = issuer.id_token(ref="refs/tags/v1.2", aud=["x", AUDIENCE])
    assert send(id_token).status_code == 201


def test_the_first_rule_that_fits_decides(issuer: Issuer, settings: Any) -> None:
    protected = rule(issuer, claims=(("ref_protected", ("true",)),), scopes=("read",), minutes=5)
    settings.KAIWEB_CI_RULES = (rule(issuer, audience="https://other"), protected, rule(issuer))
    body = send(issuer.id_token()).json()
    assert (body["scopes"], len(body["token"]) > 40) == (["read"], True)


def test_the_account_of_the_rule_must_be_there_and_may_be_locked(issuer: Issuer) -> None:
    User.objects.filter(username="ci").update(is_active=False)
    answer = send(issuer.id_token())
    assert (answer.status_code, "locked" in answer.json()["detail"]) == (403, True)


def test_the_networks_of_a_rule_are_those_of_its_tokens(issuer: Issuer, settings: Any) -> None:
    settings.KAIWEB_CI_RULES = (rule(issuer, networks=("10.0.0.0/8",)),)
    body = send(issuer.id_token()).json()
    assert body["networks"] == ["10.0.0.0/8"]
    script = APIClient()
    script.credentials(HTTP_AUTHORIZATION=f"Bearer {body['token']}")
    assert script.get("/api/v1/me").status_code == 403
    assert script.get("/api/v1/me", REMOTE_ADDR="10.1.2.3").status_code == 200


def test_keys_are_read_once_and_again_after_a_rotation(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [send(issuer.id_token()).status_code for _ in range(2)] == [201, 201]
    assert issuer.reads == 1
    issuer.keys["k2"] = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    assert (send(issuer.id_token(kid="k2")).status_code, issuer.reads) == (401, 1)
    monkeypatch.setattr("kaiweb.pipelines.issuers.RETRY_S", 0)
    assert (send(issuer.id_token(kid="k2")).status_code, issuer.reads) == (201, 2)


def test_an_issuer_that_is_another_one_or_away_is_a_503(issuer: Issuer) -> None:
    issuer.name = "https://another.example"
    answer = send(issuer.id_token())
    assert (answer.status_code, answer.json()["type"].rsplit("/", 1)[1]) == (503, "unavailable")


def test_many_failures_from_one_address_are_throttled(issuer: Issuer) -> None:
    statuses = [send("a.b.c").status_code for _ in range(31)]
    assert (statuses[0], statuses[-1]) == (401, 429)
    assert send(issuer.id_token()).status_code == 429
    assert send(issuer.id_token(), REMOTE_ADDR="192.0.2.7").status_code == 201


def test_the_methods_of_the_address_are_told_without_a_log_in() -> None:
    assert [APIClient().options(URL).status_code, APIClient().get(URL).status_code] == [200, 405]


def test_without_rules_there_is_no_exchange() -> None:
    assert send("a.b.c").status_code == 404


def test_exchanged_tokens_leave_the_list_when_they_end_and_the_database_a_day_later(
    issuer: Issuer, admin: User
) -> None:
    send(issuer.id_token())
    browser = APIClient()
    browser.force_login(admin)
    (item,) = browser.get("/api/v1/tokens?all=true").json()["items"]
    assert item["origin"].startswith(issuer.url)
    now = timezone.now()
    ApiToken.objects.update(expires_at=now)
    assert browser.get("/api/v1/tokens?all=true").json()["items"] == []
    trim_history()
    assert ApiToken.objects.exists()
    ApiToken.objects.update(expires_at=now - timedelta(days=1, seconds=1))
    trim_history()
    assert not ApiToken.objects.exists()

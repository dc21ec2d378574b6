"""Log-in of the terminal with a kubeconfig, against an API server of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from django.contrib.auth.models import User
from django.core.cache import caches
from django.test import Client

from kaiweb.terminal.access import read_access
from kaiweb.terminal.errors import TerminalError
from kaiweb.terminal.kubeconfig import find_login
from kube.client import connect
from kube.resources import NAMESPACES, SERVICE_ACCOUNTS
from queues.models import ApiToken
from tests.fakes.sandbox_server import SandboxServer, sandbox_server

PAGE = "https://kaiweb.example.com"
GROUP = "system:serviceaccounts:team-a"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxServer]:
    """A cluster with the ServiceAccount `kaiweb` in namespace team-a, which is that of the context."""
    with sandbox_server(tmp_path_factory.mktemp("cluster")) as server:
        gateway = connect(server.kubeconfig)
        gateway.create(NAMESPACES, {"metadata": {"name": "team-a"}})
        gateway.create(SERVICE_ACCOUNTS, {"metadata": {"name": "kaiweb"}}, namespace="team-a")
        gateway.close()
        content = yaml.safe_load(server.kubeconfig.read_text())
        content["contexts"][0]["context"]["namespace"] = "team-a"
        kubeconfig = server.home / "team-a.kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(content))
        yield replace(server, kubeconfig=kubeconfig)


class Pool:
    """Stands for the connection to kaiweb: hands requests to Django."""

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def request(self, method: str, url: str, *, body: str, **_options: Any) -> SimpleNamespace:
        assert (method, url) == ("POST", f"{PAGE}/login/kubernetes")
        answer = Client().post("/login/kubernetes", body, content_type="application/json")
        return SimpleNamespace(status=answer.status_code, data=answer.content)


@pytest.fixture
def page(
    cluster: SandboxServer, db: None, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """A kaiweb that accepts tokens for its own address; the accounts of team-a are editors of physics."""
    caches["login"].clear()
    settings.KAIWEB_KUBERNETES_AUDIENCES = [PAGE]
    settings.KAIWEB_KUBERNETES_ROLES = ((GROUP, "editor", "physics"),)
    gateway = connect(cluster.kubeconfig)
    monkeypatch.setattr("frontend.dashboard.kubernetes.review.gateway", lambda: gateway)
    monkeypatch.setattr("kaiweb.terminal.exchange.PoolManager", lambda **_options: Pool())
    yield PAGE
    gateway.close()


def environment(cluster: SandboxServer, url: str, home: Path, **more: str) -> dict[str, str]:
    return {
        "KAIWEB_URL": url,
        "KAIWEB_HOME": str(home / "state"),
        "HOME": str(home),
        "KUBECONFIG": str(cluster.kubeconfig),
        **more,
    }


@pytest.mark.integration
def test_the_account_of_the_namespace_logs_in_with_the_roles_of_its_groups(
    cluster: SandboxServer, page: str, tmp_path: Path
):
    access = read_access(environment(cluster, page, tmp_path))

    me = Client().get("/api/v1/me", headers={"Authorization": f"Bearer {access.token}"}).json()

    assert (me["username"], me["kind"]) == ("kaiweb@team-a", "token")
    assert me["roles"] == [{"role": "editor", "subtree": "physics"}]
    assert me["rights"]["manageTokens"] is False
    assert not User.objects.get(username="kaiweb@team-a").has_usable_password()


@pytest.mark.integration
def test_the_token_is_stored_for_its_owner_only_and_used_again(
    cluster: SandboxServer, page: str, tmp_path: Path
):
    env = environment(cluster, page, tmp_path)

    first, second = read_access(env), read_access(env)

    assert first == second
    assert ApiToken.objects.count() == 1
    (file,) = (tmp_path / ".cache" / "kaiweb").glob("login-*.json")
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.integration
@pytest.mark.parametrize(
    ("audience", "roles", "message"),
    [
        (None, ((GROUP, "viewer", ""),), "it is not set up there (404)"),
        ("https://other", ((GROUP, "viewer", ""),), "was not made for kaiweb. (401)"),
        ("", (("others", "viewer", ""),), "The account 'kaiweb@team-a' has no role in kaiweb."),
    ],
    ids=["off", "other audience", "no role"],
)
def test_kaiweb_refuses_what_its_admin_has_not_allowed(
    cluster: SandboxServer, page: str, tmp_path: Path, settings: Any,
    audience: str | None, roles: Any, message: str,
):  # fmt: skip
    settings.KAIWEB_KUBERNETES_AUDIENCES = [] if audience is None else [audience or page]
    settings.KAIWEB_KUBERNETES_ROLES = roles

    with pytest.raises(TerminalError) as refused:
        read_access(environment(cluster, page, tmp_path))

    assert message in refused.value.message
    assert ApiToken.objects.count() == 0


@pytest.mark.integration
def test_an_account_that_is_not_there_is_named(cluster: SandboxServer, page: str, tmp_path: Path):
    env = environment(cluster, page, tmp_path, KAIWEB_SERVICE_ACCOUNT="team-b/robot")

    with pytest.raises(TerminalError, match="no ServiceAccount 'team-b/robot'"):
        read_access(env)


@pytest.mark.integration
def test_the_own_token_of_the_kubeconfig_is_sent_on_request_only_and_not_accepted_by_default(
    cluster: SandboxServer, page: str, tmp_path: Path
):
    env = environment(cluster, page, tmp_path, KAIWEB_KUBECONFIG_TOKEN="1")

    with pytest.raises(TerminalError, match=r"JSON Web Token of the cluster"):
        read_access(env)


@pytest.mark.integration
def test_tokens_that_the_cluster_does_not_know_are_counted_like_wrong_passwords(
    cluster: SandboxServer, page: str, client: Any
):
    answers = [
        client.post("/login/kubernetes", {"token": "a.b.c"}, content_type="application/json")
        for _ in range(31)
    ]

    statuses = [answer.status_code for answer in answers]
    assert statuses[0] == 401
    assert statuses[-1] == 429
    assert "Retry-After" in answers[-1]


@pytest.mark.parametrize("body", ["[", "[]", "{}", '{"token": 5}', '{"token": "opaque"}'])
def test_a_body_without_a_json_web_token_never_reaches_the_cluster(
    body: str, client: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
):
    caches["login"].clear()
    settings.KAIWEB_KUBERNETES_AUDIENCES = [PAGE]
    monkeypatch.setattr(
        "frontend.dashboard.kubernetes.review.gateway", lambda: pytest.fail("asked")
    )

    answer = client.post("/login/kubernetes", body, content_type="application/json")

    assert answer.status_code == 400
    assert "JSON Web Token" in json.loads(answer.content)["detail"]


def test_no_token_is_asked_for_an_address_without_tls(tmp_path: Path):
    file = tmp_path / "config"
    file.write_text("{}")
    env = {"KAIWEB_URL": "http://kai", "KAIWEB_HOME": str(tmp_path), "KUBECONFIG": str(file)}

    with pytest.raises(TerminalError, match="expected https:// for a log-in with the kubeconfig"):
        read_access(env)


def test_an_edited_kubeconfig_is_another_log_in(tmp_path: Path):
    file = tmp_path / "config"
    file.write_text("{}")
    first = find_login(PAGE, {"KUBECONFIG": str(file)})
    assert first is not None
    before = first.key
    file.write_text("{ }")

    assert first.key != before
    assert find_login(PAGE, {"HOME": str(tmp_path)}) is None

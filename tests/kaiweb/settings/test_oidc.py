"""The settings of the identity provider, from environment variables and files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kaiweb.settings.env import EnvError
from kaiweb.settings.oidc import settings_of

CLIENT = {
    "KAIWEB_OIDC_ISSUER": "https://id.example/realms/gpu",
    "KAIWEB_OIDC_CLIENT_ID": "kaiweb",
    "KAIWEB_OIDC_CLIENT_SECRET": "s",
}


def test_without_an_issuer_only_passwords_log_in() -> None:
    settings = settings_of({})
    assert settings["KAIWEB_OIDC_ISSUER"] == ""
    assert settings["AUTHENTICATION_BACKENDS"] == ["django.contrib.auth.backends.ModelBackend"]


def test_the_secret_may_be_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("from-a-file\n")
    settings = settings_of({**CLIENT, "KAIWEB_OIDC_CLIENT_SECRET_FILE": str(file)})
    assert settings["OIDC_RP_CLIENT_SECRET"] == "from-a-file"
    assert len(settings["AUTHENTICATION_BACKENDS"]) == 2


def test_groups_become_roles() -> None:
    rules = [
        {"group": "cn=gpu,ou=groups", "role": "admin"},
        {"group": "physics", "role": "editor", "subtree": "science"},
    ]
    settings = settings_of({**CLIENT, "KAIWEB_OIDC_ROLES": json.dumps(rules)})
    assert settings["KAIWEB_OIDC_ROLES"] == (
        ("cn=gpu,ou=groups", "admin", ""), ("physics", "editor", "science"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"KAIWEB_OIDC_ISSUER": "http://id.example"}, "KAIWEB_OIDC_ISSUER: expected an address"),
        ({"KAIWEB_OIDC_CLIENT_SECRET": ""}, "KAIWEB_OIDC_ISSUER: expected also"),
        ({"KAIWEB_OIDC_CLIENT_SECRET_FILE": "/nonexistent"}, "CLIENT_SECRET_FILE: expected"),
        ({"KAIWEB_OIDC_ROLES": "{"}, "KAIWEB_OIDC_ROLES: expected JSON"),
        ({"KAIWEB_OIDC_ROLES": "{}"}, "KAIWEB_OIDC_ROLES: expected a list"),
        ({"KAIWEB_OIDC_ROLES": '[{"group": "g", "role": "owner"}]'}, "KAIWEB_OIDC_ROLES: expected"),
        ({"KAIWEB_OIDC_ROLES": '[{"role": "admin"}]'}, "KAIWEB_OIDC_ROLES: expected"),
        (
            {"KAIWEB_OIDC_ROLES": '[{"group": "g", "role": "admin", "subtree": "x"}]'},
            "KAIWEB_OIDC_ROLES: expected",
        ),
    ],
)
def test_a_value_that_cannot_be_used_is_named(changed: dict[str, Any], text: str) -> None:
    with pytest.raises(EnvError, match=text):
        settings_of({**CLIENT, **changed})

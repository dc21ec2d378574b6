"""Settings of the log-in through an identity provider (OpenID Connect), which is off if no issuer is set.

Settings that begin with OIDC_ are read by mozilla-django-oidc, those that begin with KAIWEB_OIDC_ by us.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kaiweb.settings import env
from kaiweb.settings.env import ENVIRON, EnvError

ROLES = ("viewer", "editor", "admin")
#: How long a request to the provider may take, in seconds.
TIMEOUT_S = 10
BACKENDS = ["django.contrib.auth.backends.ModelBackend"]
OIDC_BACKEND = "frontend.dashboard.oidc.backend.OidcBackend"


def settings_of(environ: Mapping[str, str] = ENVIRON) -> dict[str, Any]:
    """Return the settings; with an empty issuer the log-in form offers no provider.

    Raises
    ------
    EnvError : a value cannot be used, or the id or the secret of the client is missing
    """
    issuer = _issuer(environ)
    client_id = env.text("KAIWEB_OIDC_CLIENT_ID", env=environ)
    client_secret = _client_secret(environ)
    if issuer and not (client_id and client_secret):
        raise EnvError(
            "KAIWEB_OIDC_ISSUER: expected also KAIWEB_OIDC_CLIENT_ID and KAIWEB_OIDC_CLIENT_SECRET"
            " (or KAIWEB_OIDC_CLIENT_SECRET_FILE); at least one of them is missing or empty"
        )
    return {
        "KAIWEB_OIDC_ISSUER": issuer,
        "KAIWEB_OIDC_NAME": env.text("KAIWEB_OIDC_NAME", "single sign-on", env=environ),
        "KAIWEB_OIDC_USERNAME_CLAIM": env.text(
            "KAIWEB_OIDC_USERNAME_CLAIM", "preferred_username", env=environ
        ),
        "KAIWEB_OIDC_GROUPS_CLAIM": env.text("KAIWEB_OIDC_GROUPS_CLAIM", "groups", env=environ),
        "KAIWEB_OIDC_ROLES": role_rules("KAIWEB_OIDC_ROLES", environ),
        "KAIWEB_OIDC_SESSION_HOURS": env.number("KAIWEB_OIDC_SESSION_HOURS", 12, env=environ),
        "AUTHENTICATION_BACKENDS": [*BACKENDS, OIDC_BACKEND] if issuer else BACKENDS,
        "OIDC_RP_CLIENT_ID": client_id,
        "OIDC_RP_CLIENT_SECRET": client_secret,
        "OIDC_RP_SIGN_ALGO": env.text("KAIWEB_OIDC_ALGORITHM", "RS256", env=environ),
        "OIDC_RP_SCOPES": env.text("KAIWEB_OIDC_SCOPES", "openid profile email", env=environ),
        "OIDC_USE_PKCE": True,
        "OIDC_TIMEOUT": TIMEOUT_S,
        "OIDC_VERIFY_SSL": env.text("KAIWEB_OIDC_CA_FILE", env=environ) or True,
        "OIDC_AUTHENTICATION_CALLBACK_URL": "oidc-callback",
    }


def role_rules(name: str, environ: Mapping[str, str]) -> tuple[tuple[str, str, str], ...]:
    """Return (group, role, subtree) from a JSON list of `{"group", "role", "subtree"}`.

    The group `*` is everybody. The subtree is the queue below which the role applies; an empty one is the whole
    cluster.
    """
    return tuple(_rule(name, entry) for entry in env.json_list(name, env=environ))


def _rule(name: str, entry: Any) -> tuple[str, str, str]:
    values = dict(entry) if isinstance(entry, dict) else {}
    group, role, subtree = (values.get(key, "") for key in ("group", "role", "subtree"))
    has_unknown_keys = bool(values.keys() - {"group", "role", "subtree"})
    is_text = all(isinstance(value, str) for value in (group, role, subtree))
    if (
        has_unknown_keys
        or not is_text
        or not group
        or role not in ROLES
        or (role == "admin" and subtree)
    ):
        expected = (
            '{"group": "G", "role": "viewer|editor|admin", "subtree": "QUEUE, not for admins"}'
        )
        raise EnvError(f"{name}: expected {expected}, got {json.dumps(entry)[:120]}")
    return group, role, subtree


def _issuer(environ: Mapping[str, str]) -> str:
    issuer = env.text("KAIWEB_OIDC_ISSUER", env=environ)
    if not issuer:
        return ""
    if not env.is_private_address(issuer):
        raise EnvError(f"KAIWEB_OIDC_ISSUER: expected an address with https://, got '{issuer}'")
    return issuer


def _client_secret(environ: Mapping[str, str]) -> str:
    file = env.text("KAIWEB_OIDC_CLIENT_SECRET_FILE", env=environ)
    if not file:
        return env.text("KAIWEB_OIDC_CLIENT_SECRET", env=environ)
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise EnvError(
            f"KAIWEB_OIDC_CLIENT_SECRET_FILE: expected a readable file, got '{file}' ({error})"
        ) from error

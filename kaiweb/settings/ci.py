"""Settings of the exchange of ID tokens of CI systems for API tokens, which is off without a rule."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any

from kaiweb.settings import env
from kaiweb.settings.env import ENVIRON, EnvError

NAME = "KAIWEB_CI_RULES"
#: Those of `queues.access.rights`, which cannot be imported before the settings are there.
SCOPES = ("read", "queues:write", "workloads:write", "simulate", "apply:force", "admin")
FIELDS = {"issuer", "audience", "claims", "user", "scopes", "subtree", "networks", "minutes"}
DEFAULT_MINUTES, MAX_MINUTES = 15, 60
EXAMPLE = (
    '{"issuer": "https://...", "audience": "https://...", "claims": {"repository": "acme/quotas"},'
    ' "user": "ci", "scopes": ["read"]}'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CiRule:
    """Which pipelines get which token.

    Attributes
    ----------
    claims : (name, patterns): each of these claims must fit one of its patterns, in which `*` stands for any text
    user : the account whose rights the token has at most
    subtree : the queue below which the token may write; empty for all that the account may
    """

    issuer: str
    audience: str
    claims: tuple[tuple[str, tuple[str, ...]], ...]
    user: str
    scopes: tuple[str, ...]
    subtree: str = ""
    networks: tuple[str, ...] = ()
    minutes: int = DEFAULT_MINUTES


def ci_rules(environ: Mapping[str, str] = ENVIRON) -> tuple[CiRule, ...]:
    """Return the rules of KAIWEB_CI_RULES, a JSON list.

    Raises
    ------
    EnvError : a rule cannot be used
    """
    return tuple(_rule(entry) for entry in env.json_list(NAME, env=environ))


def _rule(entry: Any) -> CiRule:
    values = dict(entry) if isinstance(entry, dict) else {}
    unknown = sorted(values.keys() - FIELDS)
    if not values or unknown:
        got = f"the field '{unknown[0]}'" if unknown else json.dumps(entry)[:80]
        raise EnvError(f"{NAME}: expected rules like {EXAMPLE}, got {got}")
    return CiRule(
        issuer=_issuer(values.get("issuer")),
        audience=_text(values, "audience"),
        claims=_claims(values.get("claims")),
        user=_text(values, "user"),
        scopes=_scopes(values.get("scopes")),
        subtree=_text(values, "subtree") if values.get("subtree") else "",
        networks=_networks(values.get("networks", [])),
        minutes=_minutes(values.get("minutes", DEFAULT_MINUTES)),
    )


def _text(values: Mapping[str, Any], field: str) -> str:
    value = values.get(field)
    if not isinstance(value, str) or not value:
        raise _fault(field, "a text", value)
    return value


def _issuer(value: Any) -> str:
    if not isinstance(value, str) or not env.is_private_address(value):
        raise _fault("issuer", "an address with https://", value)
    return value


def _claims(value: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    claims = dict(value) if isinstance(value, dict) else {}
    patterns = {name: tuple(_texts(f"claims.{name}", wanted)) for name, wanted in claims.items()}
    # Everybody can get an ID token of a public CI system, so a rule must tell pipelines apart.
    if not any(set(pattern) - {"*"} for texts in patterns.values() for pattern in texts):
        raise _fault("claims", 'at least one claim with a value, such as "repository"', value)
    return tuple(sorted(patterns.items()))


def _texts(field: str, value: Any) -> list[str]:
    texts = [value] if isinstance(value, str) else value
    is_list = isinstance(texts, list) and texts
    if not is_list or not all(isinstance(text, str) and text for text in texts):
        raise _fault(field, "a text, or a list of texts", value)
    return list(texts)


def _scopes(value: Any) -> tuple[str, ...]:
    scopes = value if isinstance(value, list) else []
    if not scopes or any(scope not in SCOPES for scope in scopes):
        raise _fault("scopes", f"a list of {', '.join(SCOPES)}", value)
    return tuple(scopes)


def _networks(value: Any) -> tuple[str, ...]:
    try:
        return tuple(str(ip_network(text)) for text in value)
    except (TypeError, ValueError) as error:
        raise _fault("networks", "a list of networks such as 10.0.0.0/8", value) from error


def _minutes(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_MINUTES:
        raise _fault("minutes", f"a whole number from 1 to {MAX_MINUTES}", value)
    return value


def _fault(field: str, expected: str, value: Any) -> EnvError:
    return EnvError(f"{NAME}: {field}: expected {expected}, got {json.dumps(value)[:80]}")

"""Check the ID token of a pipeline, and decide by the rules of the settings what the pipeline may do.

Signature, issuer, audience and lifetime are checked with PyJWT. The first rule whose claims all fit decides. The token that
a pipeline gets belongs to the account of the rule, so it never has more rights than an admin gave to that account.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import jwt
from django.conf import settings
from django.contrib.auth.models import User

from kaiweb.pipelines.issuers import signing_key
from kaiweb.settings.ci import CiRule
from queues.access.rights import rights_of
from queues.access.tokens import NewToken
from queues.editing.token_writes import create_token
from queues.editing.write_requests import WriteRequest
from queues.models import ApiToken

#: Only algorithms with a public key.
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"]
REQUIRED_CLAIMS = ["iss", "aud", "exp", "iat", "sub"]
CLOCK_SKEW_S = 30
NAME_LENGTH, ORIGIN_LENGTH = 100, 512


class BadIdTokenError(Exception):
    """The text is no ID token of a known issuer for this kaiweb, or has expired."""


class NoRuleError(Exception):
    """The ID token is good, but no rule gives its pipeline a token."""


def claims_of(id_token: str, rules: Sequence[CiRule]) -> dict[str, Any]:
    """Return the claims of an ID token, after all checks.

    Raises
    ------
    BadIdTokenError, kaiweb.pipelines.issuers.IssuerError
    """
    try:
        issuer = jwt.decode(id_token, options={"verify_signature": False}).get("iss")
        key_id = jwt.get_unverified_header(id_token).get("kid")
        audiences = {rule.audience for rule in rules if rule.issuer == issuer}
        if not isinstance(issuer, str) or not audiences:
            raise BadIdTokenError("its issuer is in no rule")
        key = signing_key(issuer, str(key_id))
        if key is None:
            raise BadIdTokenError("its issuer has no such key")
        claims: dict[str, Any] = jwt.decode(
            id_token,
            key,
            algorithms=ALGORITHMS,
            audience=sorted(audiences),
            issuer=issuer,
            leeway=CLOCK_SKEW_S,
            options={"require": REQUIRED_CLAIMS},
        )
    except jwt.PyJWTError as error:
        raise BadIdTokenError(str(error)) from error
    return claims


def rule_for(claims: Mapping[str, Any], rules: Iterable[CiRule]) -> CiRule:
    """Return the first rule that fits checked claims.

    Raises
    ------
    NoRuleError
    """
    audience = claims["aud"]
    audiences = [audience] if isinstance(audience, str) else audience
    for rule in rules:
        is_for_us = rule.issuer == claims["iss"] and rule.audience in audiences
        if is_for_us and all(_fits(claims.get(name), wanted) for name, wanted in rule.claims):
            return rule
    raise NoRuleError(f"no rule is for the pipeline '{claims['sub']}'")


def exchange(id_token: str, now: datetime, request_id: str) -> tuple[ApiToken, str]:
    """Return an API token for the pipeline of an ID token, with its secret.

    Raises
    ------
    BadIdTokenError, NoRuleError, kaiweb.pipelines.issuers.IssuerError
    """
    rules: Sequence[CiRule] = settings.KAIWEB_CI_RULES
    claims = claims_of(id_token, rules)
    rule = rule_for(claims, rules)
    user = User.objects.filter(username=rule.user, is_active=True).first()
    if user is None:
        raise NoRuleError(f"the account '{rule.user}' of the rule does not exist, or is locked")
    token = NewToken(
        name=f"pipeline {claims['sub']}"[:NAME_LENGTH],
        scopes=rule.scopes,
        subtree=rule.subtree,
        expires_at=now + timedelta(minutes=rule.minutes),
        networks=rule.networks,
        origin=f"{claims['iss']} {claims['sub']}"[:ORIGIN_LENGTH],
    )
    write = WriteRequest(
        rights=rights_of(user),
        now=now,
        reason="exchanged for an ID token",
        request_id=request_id,
    )
    return create_token(user, token, write)


def _fits(value: Any, patterns: Sequence[str]) -> bool:
    """Return whether a claim fits one of the patterns; of a claim with several values one is enough."""
    values = value if isinstance(value, list) else [value]
    texts = [text for text in map(_text, values) if text is not None]
    return any(_matches(pattern, text) for pattern in patterns for text in texts)


def _text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int) else None


def _matches(pattern: str, text: str) -> bool:
    parts = (re.escape(part) for part in pattern.split("*"))
    return re.fullmatch(".*".join(parts), text, re.DOTALL) is not None

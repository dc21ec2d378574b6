"""The addresses of the identity provider, from its discovery document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import requests
from django.conf import settings
from django.core.cache import cache
from mozilla_django_oidc.utils import import_from_settings

#: Setting of mozilla-django-oidc -> the key of the discovery document.
DISCOVERED = {
    "OIDC_OP_AUTHORIZATION_ENDPOINT": "authorization_endpoint",
    "OIDC_OP_TOKEN_ENDPOINT": "token_endpoint",
    "OIDC_OP_JWKS_ENDPOINT": "jwks_uri",
    "OIDC_OP_USER_ENDPOINT": "userinfo_endpoint",
}
#: Most providers put what is needed into the ID token, and some have no such endpoint.
OPTIONAL = frozenset({"OIDC_OP_USER_ENDPOINT"})
CACHED_S = 600


class ProviderError(Exception):
    """The identity provider does not answer, or not as the protocol wants."""


def setting(name: str, *default: Any) -> Any:
    """Return a setting of mozilla-django-oidc; those that are addresses come from the discovery document.

    Raises
    ------
    ProviderError
    """
    if name not in DISCOVERED:
        return import_from_settings(name, *default)
    address = document().get(DISCOVERED[name], "")
    if not address and name in OPTIONAL:
        return ""
    is_secure = urlsplit(settings.KAIWEB_OIDC_ISSUER).scheme == "https"
    if not isinstance(address, str) or urlsplit(address).scheme not in _schemes(is_secure):
        raise ProviderError(f"its discovery document has no {DISCOVERED[name]} with https://")
    return address


def _schemes(is_secure: bool) -> tuple[str, ...]:
    return ("https",) if is_secure else ("https", "http")


def document() -> Mapping[str, Any]:
    """Return the discovery document, which is cached for some minutes.

    Raises
    ------
    ProviderError
    """
    issuer: str = settings.KAIWEB_OIDC_ISSUER
    key = f"oidc:{issuer}"
    cached: Mapping[str, Any] | None = cache.get(key)
    if cached is not None:
        return cached
    body = _fetch(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
    if body.get("issuer") != issuer:
        raise ProviderError(f"expected the issuer '{issuer}', it says '{body.get('issuer')}'")
    cache.set(key, body, CACHED_S)
    return body


def _fetch(address: str) -> dict[str, Any]:
    try:
        answer = requests.get(
            address, timeout=settings.OIDC_TIMEOUT, verify=settings.OIDC_VERIFY_SSL
        )
        answer.raise_for_status()
        body = answer.json()
    except (requests.RequestException, ValueError) as error:
        raise ProviderError(f"no discovery document: {error}") from error
    if not isinstance(body, dict):
        raise ProviderError("no discovery document: expected a JSON object")
    return body

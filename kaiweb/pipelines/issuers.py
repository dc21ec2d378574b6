"""The public keys of a CI system, from its discovery document (OpenID Connect); both are cached for some minutes."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import urlsplit

import jwt
import requests
from django.conf import settings
from django.core.cache import cache

CACHED_S = 600
#: Tokens with made-up keys may not cause more requests to the issuer than this.
RETRY_S = 60
TIMEOUT_S = 10


class IssuerError(Exception):
    """The issuer does not answer, or not as the protocol wants."""


def signing_key(issuer: str, key_id: str) -> jwt.PyJWK | None:
    """Return a public key of an issuer; None if it has no such key.

    Raises
    ------
    IssuerError
    """
    for entry in _keys(issuer, key_id):
        if entry.get("kid") == key_id:
            try:
                return jwt.PyJWK(entry)
            except jwt.PyJWTError as error:
                raise IssuerError(
                    f"{issuer}: its key '{key_id}' cannot be used: {error}"
                ) from error
    return None


def _keys(issuer: str, key_id: str) -> list[dict[str, Any]]:
    """Return the keys; those of the cache unless the key is not among them, as after a rotation."""
    place = f"ci-keys:{issuer}"
    stored: tuple[float, list[dict[str, Any]]] | None = cache.get(place)
    if stored is not None:
        read_at, keys = stored
        has_key = any(entry.get("kid") == key_id for entry in keys)
        if has_key or time.time() - read_at < RETRY_S:
            return keys
    keys = _fetch_keys(issuer)
    cache.set(place, (time.time(), keys), CACHED_S)
    return keys


def _fetch_keys(issuer: str) -> list[dict[str, Any]]:
    document = _fetch(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
    if document.get("issuer") != issuer:
        raise IssuerError(f"{issuer}: it calls itself '{document.get('issuer')}'")
    address = document.get("jwks_uri")
    schemes = ("https",) if urlsplit(issuer).scheme == "https" else ("https", "http")
    if not isinstance(address, str) or urlsplit(address).scheme not in schemes:
        raise IssuerError(f"{issuer}: its discovery document has no jwks_uri with https://")
    keys = _fetch(address).get("keys")
    if not isinstance(keys, list):
        raise IssuerError(f"{address}: expected a list of keys")
    return [entry for entry in keys if isinstance(entry, dict)]


def _fetch(address: str) -> dict[str, Any]:
    try:
        answer = requests.get(
            address,
            timeout=TIMEOUT_S,
            verify=settings.KAIWEB_CI_CA_FILE or True,
            allow_redirects=False,
        )
        answer.raise_for_status()
        body = answer.json()
    except (requests.RequestException, ValueError) as error:
        raise IssuerError(f"{address}: {error}") from error
    if not isinstance(body, dict):
        raise IssuerError(f"{address}: expected a JSON object")
    return body

"""Authentication by bearer tokens: those of a file, and those that the server signs for ServiceAccounts.

`<home>/tokens.yaml` maps each token to a user and groups. The first start writes it with one user in
`system:masters`, and a changed file is read again. ServiceAccount tokens are JWTs signed with a key of
the home directory, so they stay valid after a restart without being stored.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import yaml

from kube.process.files import write_private
from sandbox.apiserver.access.pki import new_token
from sandbox.apiserver.model.errors import ApiError
from sandbox.apiserver.model.user import ANONYMOUS, AUTHENTICATED, MASTERS, User

ADMIN = "kaiweb-admin"
#: The audience of this server: that of tokens which name none, and of requests to it.
API_AUDIENCE = "https://kubernetes.default.svc"


class Authenticator:
    """Finds the `User` of an Authorization header."""

    def __init__(self, home: Path) -> None:
        self._file = home / "tokens.yaml"
        key_file = home / "pki" / "serviceaccount.key"
        if not key_file.exists():
            write_private(key_file, new_token())
        self._key = key_file.read_bytes()
        if not self._file.exists():
            entry = {"token": new_token(), "user": ADMIN, "groups": [MASTERS]}
            write_private(self._file, yaml.safe_dump([entry], sort_keys=False))
        #: By token.
        self._users: dict[str, User] = {}
        self._read_at = 0
        self._reload()

    def admin_token(self) -> str:
        """Return the first token of a user in the masters group."""
        for token, user in self._users.items():
            if MASTERS in user.groups:
                return token
        raise ValueError(f"{self._file} names no user of the group {MASTERS}")

    def authenticate(self, header: str) -> User:
        """Return the user of a header; the anonymous user without one.

        Raises
        ------
        ApiError : 401 for an unknown or expired token
        """
        if not header:
            return ANONYMOUS
        scheme, _, token = header.partition(" ")
        if scheme.lower() == "bearer":
            token = token.strip()
            user = self._users.get(token) or self._account(token)
            if user is None and self._reload():
                user = self._users.get(token)
            if user is not None:
                return user
        raise ApiError(401, "Unauthorized", "Unauthorized")

    def review(self, token: str, audiences: Sequence[str]) -> tuple[User, list[str]] | None:
        """Return the user of a token and for which of the audiences it is; None for an unknown one or none of them."""
        requested_audiences = list(audiences) or [API_AUDIENCE]
        if token in self._users:
            user, valid = self._users[token], [API_AUDIENCE]
        else:
            claims = self._claims(token)
            if claims is None:
                return None
            user, valid = _owner(claims), _audiences(claims)
        common = [audience for audience in requested_audiences if audience in valid]
        return (user, common) if common else None

    def issue(
        self,
        namespace: str,
        account: str,
        uid: str,
        expires_at: float,
        audiences: Sequence[str] = (),
    ) -> str:
        """Sign a token for a ServiceAccount; without audiences it is for this server."""
        claims = {
            "iss": "kaiweb-sandbox",
            "aud": list(audiences) or [API_AUDIENCE],
            "sub": f"system:serviceaccount:{namespace}:{account}",
            "exp": int(expires_at),
            "kubernetes.io": {
                "namespace": namespace,
                "serviceaccount": {"name": account, "uid": uid},
            },
        }
        head = _encode(orjson.dumps({"alg": "HS256", "typ": "JWT"}))
        body = _encode(orjson.dumps(claims))
        return f"{head}.{body}.{self._sign(f'{head}.{body}')}"

    def _account(self, token: str) -> User | None:
        """Return the ServiceAccount of a token that is for this server."""
        claims = self._claims(token)
        if claims is None or API_AUDIENCE not in _audiences(claims):
            return None
        return _owner(claims)

    def _claims(self, token: str) -> dict[str, Any] | None:
        """Return what a token says that we signed and that has not expired."""
        signed, dot, signature = token.rpartition(".")
        # As bytes: compare_digest raises TypeError for text with characters outside ASCII.
        if not dot or not hmac.compare_digest(self._sign(signed).encode(), signature.encode()):
            return None
        body = signed.partition(".")[2]
        claims: dict[str, Any] = orjson.loads(urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        return None if claims["exp"] < time.time() else claims

    def _sign(self, text: str) -> str:
        return _encode(hmac.new(self._key, text.encode(), hashlib.sha256).digest())

    def _reload(self) -> bool:
        changed_at = self._file.stat().st_mtime_ns
        if changed_at == self._read_at:
            return False
        self._read_at = changed_at
        self._users = {
            entry["token"]: User(
                entry["user"], frozenset({*entry.get("groups", ()), AUTHENTICATED})
            )
            for entry in yaml.safe_load(self._file.read_text())
        }
        return True


def _audiences(claims: Mapping[str, Any]) -> list[str]:
    audiences: list[str] = claims.get("aud") or [API_AUDIENCE]
    return audiences


def _owner(claims: Mapping[str, Any]) -> User:
    about = claims["kubernetes.io"]
    groups = {"system:serviceaccounts", AUTHENTICATED}
    groups.add(f"system:serviceaccounts:{about['namespace']}")
    return User(claims["sub"], frozenset(groups), about["serviceaccount"]["uid"])


def _encode(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()

"""Log in with the code that the identity provider has sent: exchange it, check the ID token, find the user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jwt
import requests
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest
from mozilla_django_oidc.auth import OIDCAuthenticationBackend

from frontend.dashboard.oidc import provider, sign_in
from frontend.dashboard.oidc.provider import ProviderError

CLOCK_SKEW_S = 30
REQUIRED_CLAIMS = ["iss", "aud", "exp", "iat", "sub", "nonce"]


class OidcBackend(OIDCAuthenticationBackend):  # type: ignore[misc]  # the library has no types
    """Checks issuer, audience and lifetime too, which mozilla-django-oidc leaves to its users."""

    def __init__(self) -> None:
        # Django creates a backend for each request of a session, so nothing is asked of the provider here.
        self.UserModel = get_user_model()
        self.OIDC_RP_CLIENT_ID = settings.OIDC_RP_CLIENT_ID
        self.OIDC_RP_CLIENT_SECRET = settings.OIDC_RP_CLIENT_SECRET
        self.OIDC_RP_SIGN_ALGO = settings.OIDC_RP_SIGN_ALGO
        self.OIDC_RP_IDP_SIGN_KEY = None

    @property
    def OIDC_OP_TOKEN_ENDPOINT(self) -> Any:  # noqa: N802  (a name of the library)
        return provider.setting("OIDC_OP_TOKEN_ENDPOINT")

    @property
    def OIDC_OP_JWKS_ENDPOINT(self) -> Any:  # noqa: N802
        return provider.setting("OIDC_OP_JWKS_ENDPOINT")

    @property
    def OIDC_OP_USER_ENDPOINT(self) -> Any:  # noqa: N802
        return provider.setting("OIDC_OP_USER_ENDPOINT")

    def authenticate(self, request: HttpRequest, *, nonce: str, code_verifier: str) -> User | None:
        """Return the user behind the code in the address of the request.

        The parameters are those of a callback only, so that Django does not ask this backend about passwords.

        Raises
        ------
        ProviderError : the provider does not answer, or its ID token is not acceptable
        SignInError : the user has no role, is locked or has no usable name
        """
        try:
            user: User | None = super().authenticate(
                request, nonce=nonce, code_verifier=code_verifier
            )
        except (
            requests.RequestException,
            jwt.PyJWTError,
            SuspiciousOperation,
            KeyError,
            ValueError,
        ) as error:
            raise ProviderError(f"{type(error).__name__}: {error}") from error
        return user

    def _verify_jws(self, payload: str, key: Any) -> dict[str, Any]:
        if not self.OIDC_RP_SIGN_ALGO.startswith(("RS", "ES", "PS")):
            raise ProviderError("expected an algorithm with a public key")
        claims: dict[str, Any] = jwt.decode(
            payload,
            key,
            algorithms=[self.OIDC_RP_SIGN_ALGO],
            audience=self.OIDC_RP_CLIENT_ID,
            issuer=settings.KAIWEB_OIDC_ISSUER,
            leeway=CLOCK_SKEW_S,
            options={"require": REQUIRED_CLAIMS},
        )
        if claims.get("azp", self.OIDC_RP_CLIENT_ID) != self.OIDC_RP_CLIENT_ID:
            raise ProviderError("the ID token was issued to another client (azp)")
        return claims

    def get_or_create_user(
        self, access_token: str, id_token: str, payload: Mapping[str, Any]
    ) -> User:
        """Return the user of the claims, with the roles of its groups."""
        claims = dict(payload)
        if self.OIDC_OP_USER_ENDPOINT:
            info = self.get_userinfo(access_token, id_token, payload)
            if info.get("sub") != claims["sub"]:
                raise ProviderError("user info and ID token are about different users")
            claims |= info
        return sign_in.sign_in(claims)

"""What the claims of an identity provider say about a user who logs in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User

from frontend.dashboard.external_users import ExternalUser, SignInError, admit


def sign_in(claims: Mapping[str, Any]) -> User:
    """Return the user of checked claims, with the roles of its groups.

    Raises
    ------
    SignInError : no role, locked, or a name that cannot be used
    """
    claim: str = settings.KAIWEB_OIDC_USERNAME_CLAIM
    username, display_name = claims.get(claim), claims.get("name")
    if not isinstance(username, str) or not username:
        raise SignInError(f"The identity provider sent no '{claim}', which names the account.")
    external = ExternalUser(
        issuer=settings.KAIWEB_OIDC_ISSUER,
        subject=claims["sub"],
        username=username,
        display_name=display_name if isinstance(display_name, str) else "",
        groups=groups_of(claims.get(settings.KAIWEB_OIDC_GROUPS_CLAIM)),
        reason="log-in through the identity provider",
    )
    return admit(external, settings.KAIWEB_OIDC_ROLES)


def groups_of(claim: Any) -> frozenset[str]:
    """Return the groups in a claim: a list of names, or a single name."""
    if isinstance(claim, str):
        return frozenset({claim})
    if not isinstance(claim, list):
        return frozenset()
    return frozenset(group for group in claim if isinstance(group, str))
